"""Residuals of the priors of several parameters, and their derivatives."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Float

from .parameters import Parameter


class PriorRows(eqx.Module):
    """Residuals of all priors and their derivatives with respect to components of parameters.

    **Attributes:** `shared` (R,) and `shared_jacobian` (R, C), of parameters that all runs share;
    `per_run` (B, Q) and `per_run_jacobian` (B, Q, D), of parameters of each run.
    """

    shared: Float[Array, " R"]
    shared_jacobian: Float[Array, "R C"]
    per_run: Float[Array, "B Q"]
    per_run_jacobian: Float[Array, "B Q D"]

    @property
    def count(self) -> int:
        """Number of residuals."""
        return self.shared.size + self.per_run.size

    @property
    def residuals(self) -> Float[Array, " M"]:
        """All residuals: shared ones, then run by run."""
        return jnp.concatenate([self.shared, self.per_run.reshape(-1)])

    def component_jacobian(self) -> Float[Array, "M K"]:
        """Return derivatives with respect to all components: shared ones, then run by run."""
        return block_diag(self.shared_jacobian, *self.per_run_jacobian)

    def coordinate_jacobian(
        self, shared_chain: Float[Array, "C S"], per_run_chain: Float[Array, "B D P"]
    ) -> Float[Array, "M U"]:
        """Return derivatives with respect to all coordinates.

        **Arguments:** derivatives of shared and per-run components with respect to the coordinates.
        """
        per_run = jax.vmap(jnp.matmul)(self.per_run_jacobian, per_run_chain)
        return block_diag(self.shared_jacobian @ shared_chain, *per_run)


def stack_prior_rows(
    parameters: Sequence[Parameter], leaves: Sequence[Array], dtype: jnp.dtype
) -> tuple[Float[Array, " R"], Float[Array, "R K"]]:
    """Return residuals of the priors and their derivatives with respect to all components."""
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


def append_rows(
    first: tuple[Float[Array, " R"], Float[Array, "R K"]],
    second: tuple[Float[Array, " Q"], Float[Array, "Q K"]],
) -> tuple[Float[Array, " M"], Float[Array, "M K"]]:
    """Return two sets of residuals and their derivatives as one."""
    residuals, jacobian = zip(first, second, strict=True)
    return jnp.concatenate(residuals), jnp.concatenate(jacobian)


def check_no_prior(entry: str, parameters: Sequence[Parameter]) -> None:
    """Raise `ValueError` for parameters with a prior, where a prior would have no meaning."""
    names = [p.name for p in parameters if p.prior is not None]
    if names:
        raise ValueError(f"`{entry}` takes no priors; leave `prior` of {names} out.")


def describe_priors(parameters: Sequence[Parameter]) -> list[str]:
    """Return a note that names the parameters with a prior; no note if there is none."""
    descriptions = [f"{p.name} has {p.prior.text()}" for p in parameters if p.prior is not None]
    if not descriptions:
        return []
    return [
        f"{'; '.join(descriptions)}. Estimates, standard deviations and the verdict are those of "
        "data and priors together."
    ]
