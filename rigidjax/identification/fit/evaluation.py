"""A problem evaluated at one set of coordinates: residuals and sensitivities of all runs."""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Bool, Float

from ...results import RESULTS
from ..linearised_runs import Varied, linearised_run
from ..prior_rows import PriorRows
from .problem import Problem


class Evaluation(eqx.Module):
    """Residuals and derivatives in physical units at one set of parameters.

    **Attributes:**

    - `shared`, `own`: components of all parameters: (C,), and (B, D) for those of each run.
    - `residuals`: weighted, all sensors of a run as one vector, (B, N).
    - `jacobian`: their derivatives by all components that a run depends on, shared ones first,
      (B, N, C + D): by forward mode through the accepted steps of the solver. In a `Minimum`, fewer
      rows with the same products: those of the triangular factor of each run.
    - `shared_chain` (C, S), `own_chain` (B, D, P): of the components by the coordinates.
    - `okay`: which simulations succeed, (B,).
    - `prior`: residuals of the priors, which are not among `residuals`, and their derivatives.
    """

    shared: Float[Array, " C"]
    own: Float[Array, "B D"]
    residuals: Float[Array, "B N"]
    jacobian: Float[Array, "B N E"]
    shared_chain: Float[Array, "C S"]
    own_chain: Float[Array, "B D P"]
    okay: Bool[Array, " B"]
    prior: PriorRows

    @property
    def components(self) -> np.ndarray:
        """Values of all components: shared, then run by run (on the host)."""
        return np.concatenate([np.asarray(self.shared), np.asarray(self.own).reshape(-1)])

    def by_components(self) -> np.ndarray:
        """Derivatives of all residuals by all components: shared, then run by run (on the host).

        Those of the data; for priors see `with_prior`.
        """
        return _dense(np, np.asarray(self.jacobian), self.shared.shape[0])

    def with_prior(self, variance: float = 1.0) -> np.ndarray:
        """The same with the rows of the priors below them, (on the host).

        **Arguments:** `variance` of a weighted residual of the data, where that is not one; those
        of a prior have one.
        """
        of_data = self.by_components()
        if not self.prior.count:
            return of_data
        prior = np.sqrt(variance) * np.asarray(self.prior.by_components())
        return np.concatenate([of_data, prior])

    def by_coordinates(self) -> Float[Array, "M U"]:
        """Derivatives of all residuals by all coordinates: shared, then run by run."""
        chains = jax.vmap(functools.partial(block_diag, self.shared_chain))(self.own_chain)
        return _dense(jnp, self.jacobian @ chains, self.shared_chain.shape[1])


def _dense(xp: Any, rows: Any, shared: int) -> Any:
    """Rows of all runs (B, N, S + P) with columns of the S `shared` unknowns, then run by run.

    **Arguments:** `xp`, NumPy or its like in JAX.
    """
    if len(rows) == 1:
        return rows[0]
    own = rows[..., shared:]
    blocks = xp.einsum("bc,bnp->bncp", xp.eye(len(own), dtype=own.dtype), own)
    blocks = blocks.reshape(*own.shape[:2], -1)
    rows = xp.concatenate([rows[..., :shared], blocks], axis=-1)
    return rows.reshape(rows.shape[0] * rows.shape[1], -1)


# Under `jit` of its own: traced once, for the shape of its results and for the results.
@eqx.filter_jit
def evaluate(problem: Problem, shared: Float[Array, " S"], own: Float[Array, "B P"]) -> Evaluation:
    """Simulate all runs at these coordinates, with derivatives.

    Derivatives are taken by the physical components, those that a transformation holds fixed
    included: so what the data do not determine shows up whatever was held fixed. Those by the
    coordinates follow by the chain rule, without another simulation.
    """

    def one(own, run):
        experiment = problem.experiment(problem.leaves(shared, own, run), run)
        parts = problem.varied(experiment)
        values = [part.values() for part in parts]
        directions = jnp.asarray(problem.directions())
        varied = Varied(experiment, problem.parameters)
        found = linearised_run(
            varied, directions, run.ts, problem.simulation, run.weights, run.values
        )
        jacobian = found.jacobian @ directions if problem.fitted_only else found.jacobian
        okay = found.rest == RESULTS.successful
        priors = [part.prior() for part in parts]
        chain = problem.chain(shared, own, run)
        return values, found.residuals, jacobian, chain, okay, priors

    if problem.num_runs == 1:
        # Not as a batch of one: samples would be saved by scattering, three times as slow.
        only = jax.tree.map(lambda leaf: leaf[0], problem.runs)
        found = jax.tree.map(lambda x: x[None], one(own[0], only))
    else:
        found = jax.vmap(one)(own, problem.runs)
    (first, second), r, J, (shared_chain, own_chain), okay, (of_all, of_run) = found
    prior = PriorRows(of_all[0][0], of_all[1][0], *of_run)
    # A sum is not finite if one of its terms is not, and takes less time than to look at each.
    okay = okay & jnp.isfinite(jnp.sum(r, axis=1)) & jnp.isfinite(jnp.sum(J, axis=(1, 2)))
    finite = [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(prior)]
    okay = okay & jnp.all(jnp.stack(finite))
    return Evaluation(first[0], second, r, J, shared_chain[0], own_chain, okay, prior)
