"""Residuals of the priors of several parameters, and their derivatives."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Float

from .parameters import Parameter


class PriorRows(eqx.Module):
    """Residuals of all priors and their derivatives by the components of the parameters.

    **Attributes:** `shared` (R,) and `by_shared` (R, C), of parameters that all runs have in
    common; `own` (B, Q) and `by_own` (B, Q, D), of those of each run.
    """

    shared: Float[Array, " R"]
    by_shared: Float[Array, "R C"]
    own: Float[Array, "B Q"]
    by_own: Float[Array, "B Q D"]

    @property
    def count(self) -> int:
        """Number of residuals."""
        return self.shared.size + self.own.size

    @property
    def residuals(self) -> Float[Array, " M"]:
        """All residuals: shared, then run by run."""
        return jnp.concatenate([self.shared, self.own.reshape(-1)])

    def by_components(self) -> Float[Array, "M K"]:
        """Derivatives by all components: shared, then run by run."""
        return block_diag(self.by_shared, *self.by_own)

    def by_coordinates(
        self, shared_chain: Float[Array, "C S"], own_chain: Float[Array, "B D P"]
    ) -> Float[Array, "M U"]:
        """Derivatives by all coordinates, with those of the components by the coordinates."""
        own = jax.vmap(jnp.matmul)(self.by_own, own_chain)
        return block_diag(self.by_shared @ shared_chain, *own)


def prior_rows(
    parameters: Sequence[Parameter], leaves: Sequence[Array], dtype: jnp.dtype
) -> tuple[Float[Array, " R"], Float[Array, "R K"]]:
    """Residuals of the priors of these parameters, and their derivatives by all components."""
    residuals, blocks = [jnp.zeros(0, dtype)], [jnp.zeros((0, 0), dtype)]
    for p, leaf in zip(parameters, leaves, strict=True):
        zero = jnp.zeros_like(p.transform.estimates(leaf))
        prior = p.prior
        if prior is None:
            blocks.append(jnp.zeros((0, zero.size), dtype))
            continue

        def rows(change, prior=prior, transform=p.transform, leaf=leaf):
            return prior.rows(transform, transform.perturbed(leaf, change))

        residuals.append(rows(zero))
        blocks.append(jax.jacfwd(rows)(zero))
    return jnp.concatenate(residuals), block_diag(*blocks)


def check_no_prior(entry: str, parameters: Sequence[Parameter]) -> None:
    """Raise `ValueError` for parameters with a prior, where it would have no meaning."""
    names = [p.name for p in parameters if p.prior is not None]
    if names:
        raise ValueError(f"`{entry}` takes no priors; leave `prior` of {names} out.")


def prior_notes(parameters: Sequence[Parameter]) -> list[str]:
    """Which parameters have a prior, in words."""
    found = [f"{p.name} has {p.prior.text()}" for p in parameters if p.prior is not None]
    if not found:
        return []
    return [
        f"{'; '.join(found)}. Estimates, standard deviations and the verdict are those of data and "
        "priors together."
    ]
