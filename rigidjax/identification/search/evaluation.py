"""Residuals and Jacobians of all runs at one point in parameter space."""

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Bool, Float

from ...persistent_jit import persistent_jit
from ...results import RESULTS
from ..experiment.linearised_runs import ParametrisedExperiment, linearise_run, separate_runs
from .problem import FitProblem, RunData


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


class Evaluation(eqx.Module):
    """Residuals and derivatives in physical units at one point in parameter space.

    **Attributes:**

    - `shared` (C,), `per_run` (B, D): components of the shared parameters, and of those of each
      run.
    - `residuals`: weighted, all sensors of a run in one vector, (B, N); of sensors with a noise
      model the innovations, like their derivatives.
    - `jacobian`: their derivatives with respect to all components that a run depends on, shared
      ones first, (B, N, C + D), by forward mode through the accepted steps of the solver. In a
      `Minimum` it is replaced by the triangular factor of each run, which has fewer rows and the
      same $J^T J$.
    - `shared_chain` (C, S), `per_run_chain` (B, D, P): derivatives of components with respect to
      coordinates.
    - `okay`: whether the simulation of each run succeeded, (B,).
    - `prior`: residuals of the priors, which are not among `residuals`, and their derivatives.
    """

    shared: Float[Array, " C"]
    per_run: Float[Array, "B D"]
    residuals: Float[Array, "B N"]
    jacobian: Float[Array, "B N E"]
    shared_chain: Float[Array, "C S"]
    per_run_chain: Float[Array, "B D P"]
    okay: Bool[Array, " B"]
    prior: PriorRows

    @property
    def components(self) -> np.ndarray:
        """Values of all components as a NumPy array: shared ones, then run by run."""
        return np.concatenate([np.asarray(self.shared), np.asarray(self.per_run).reshape(-1)])

    def component_jacobian(self) -> np.ndarray:
        """Return derivatives of the data's residuals with respect to all components.

        Returns a NumPy array with columns for the shared components, then for those of each run.
        Priors are not included.
        """
        return separate_runs(np.asarray(self.jacobian), self.shared.shape[0], np)

    def component_jacobian_with_prior(self, variance: float = 1.0) -> np.ndarray:
        """Return `component_jacobian` with the rows of the priors below it, as a NumPy array.

        **Arguments:** `variance` of the weighted residuals of the data, by which the rows of the
        priors, whose residuals have unit variance, are scaled.
        """
        data_rows = self.component_jacobian()
        if not self.prior.count:
            return data_rows
        prior = np.sqrt(variance) * np.asarray(self.prior.component_jacobian())
        return np.concatenate([data_rows, prior])

    def prior_jacobian(self) -> Float[Array, "M U"]:
        """Return derivatives of the residuals of the priors with respect to all coordinates."""
        per_run = jax.vmap(jnp.matmul)(self.prior.per_run_jacobian, self.per_run_chain)
        return block_diag(self.prior.shared_jacobian @ self.shared_chain, *per_run)

    @property
    def chain(self) -> Float[Array, "K U"]:
        """Derivatives of all components with respect to all coordinates."""
        return block_diag(self.shared_chain, *self.per_run_chain)

    def coordinate_rows(self) -> Float[Array, "B N F"]:
        """Return derivatives of the residuals of each run in the coordinates that it depends on.

        Columns are those of the S shared coordinates, then those of the run.
        """
        chains = jax.vmap(functools.partial(block_diag, self.shared_chain))(self.per_run_chain)
        return self.jacobian @ chains

    def coordinate_jacobian(self) -> Float[Array, "M U"]:
        """Return derivatives of the data's residuals with respect to all coordinates."""
        return separate_runs(self.coordinate_rows(), self.shared_chain.shape[1])


def in_horizon(ts: Float[Array, "*B T"], horizon: Float[Array, ""]) -> Bool[Array, "*B T"]:
    """Return which samples are in the first fraction `horizon` of their run."""
    elapsed = ts - ts[..., :1]
    return elapsed <= horizon * elapsed[..., -1:] * (1 + 1e-9)


def _end_at_horizon(run: RunData, horizon: Float[Array, ""]) -> tuple[RunData, Float[Array, ""]]:
    """Return the run without samples beyond the horizon, and its end, at least the second sample.

    Times of samples that are left out are infinite, and their weights are zero.
    """
    ts = run.ts
    inside = in_horizon(ts, horizon)
    end = jnp.max(jnp.where(inside, ts, ts[:2].max()))
    weights = tuple(jnp.where(inside[:, None], w, 0.0) for w in run.weights)
    kept = dataclasses.replace(run, ts=jnp.where(ts <= end, ts, jnp.inf), weights=weights)
    return kept, end


# A separate `jit` is traced once, both for shapes and for values.
@persistent_jit
def evaluate(
    problem: FitProblem,
    shared: Float[Array, " S"],
    per_run: Float[Array, "B P"],
    horizon: Float[Array, ""] | None = None,
) -> Evaluation:
    """Simulate all runs at these coordinates, with derivatives.

    With a `horizon`, a fraction of each run, runs end at their last sample in the horizon, and
    later residuals are zero.

    Derivatives are taken with respect to all physical components, including those that a
    transformation holds fixed, so that undetermined combinations are found even if one component is
    fixed. Derivatives with respect to the coordinates follow by the chain rule, without another
    simulation.
    """

    def evaluate_run(per_run, run):
        experiment = problem.experiment(problem.run_leaves(shared, per_run, run), run)
        blocks = problem.parametrise(experiment)
        values = [block.values() for block in blocks]
        directions = jnp.asarray(problem.directions())
        parametrised = ParametrisedExperiment(experiment, problem.parameters)
        if problem.predictor is not None:
            linearised = problem.predictor.linearise(parametrised, directions, run)
        else:
            kept, span = run, None
            if horizon is not None:
                kept, end = _end_at_horizon(run, horizon)
                span = run.ts[0], end
            linearised = linearise_run(
                parametrised,
                directions,
                kept.ts,
                problem.simulation,
                kept.weights,
                run.values,
                span,
            )
        jacobian = linearised.jacobian @ directions if problem.fitted_only else linearised.jacobian
        okay = linearised.aux == RESULTS.successful
        priors = [block.prior() for block in blocks]
        if problem.hold is not None:
            holds = problem.hold_rows(experiment, run)
            priors = [
                [jnp.concatenate(parts) for parts in zip(*pair, strict=True)]
                for pair in zip(priors, holds, strict=True)
            ]
        chain = problem.component_derivatives(shared, per_run, run)
        return values, linearised.residuals, jacobian, chain, okay, priors

    if problem.num_runs == 1:
        # A batch of size one would save samples by scattering, which is slow.
        single_run = jax.tree.map(lambda leaf: leaf[0], problem.runs)
        linearised = jax.tree.map(lambda x: x[None], evaluate_run(per_run[0], single_run))
    else:
        linearised = jax.vmap(evaluate_run)(per_run, problem.runs)
    (
        (shared_values, per_run_values),
        r,
        J,
        (shared_chain, per_run_chain),
        okay,
        (shared_prior, per_run_prior),
    ) = linearised
    prior = PriorRows(shared_prior[0][0], shared_prior[1][0], *per_run_prior)
    # A sum is finite only if its terms are, and is cheaper than checking every term.
    okay = okay & jnp.isfinite(jnp.sum(r, axis=1)) & jnp.isfinite(jnp.sum(J, axis=(1, 2)))
    finite = [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(prior)]
    okay = okay & jnp.all(jnp.stack(finite))
    if problem.runs.whitening:
        rows = jnp.concatenate([r[..., None], J], axis=-1)
        rows = jax.vmap(lambda run, rows: run.whiten(rows))(problem.runs, rows)
        r, J = rows[..., 0], rows[..., 1:]
    return Evaluation(
        shared_values[0], per_run_values, r, J, shared_chain[0], per_run_chain, okay, prior
    )
