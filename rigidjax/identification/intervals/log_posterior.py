"""Logarithm of the posterior density of fitted parameters, in whitened coordinates."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..search.evaluation import evaluate
from ..search.losses import AbstractLoss
from ..search.optimum import Optimum
from ..search.problem import FitProblem

# Curvature of the density of a bounded coordinate in its chart, without data.
_BOUND_CURVATURE = 0.25


class BoundChart(eqx.Module):
    r"""Unbounded coordinates x of coordinates u with bounds.

    $u = a + (b - a)/(1 + e^{-x})$ between two bounds, $a + e^x$ or $b - e^x$ at one bound, and x
    without bounds.

    **Attributes:** `lower` a, `upper` b, (U,), infinite without a bound.
    """

    lower: Float[Array, " U"]
    upper: Float[Array, " U"]

    def coordinates(self, x: Float[Array, " U"]) -> Float[Array, " U"]:
        """Return u."""
        below, above = jnp.isfinite(self.lower), jnp.isfinite(self.upper)
        a, b = jnp.where(below, self.lower, 0.0), jnp.where(above, self.upper, 0.0)
        distance = jnp.exp(jnp.where(below ^ above, x, 0.0))
        between = a + (b - a) * jax.nn.sigmoid(x)
        return jnp.select([below & above, below, above], [between, a + distance, b - distance], x)

    def inverse(self, u: Float[Array, " U"]) -> Float[Array, " U"]:
        """Return x of coordinates inside their bounds."""
        below, above = jnp.isfinite(self.lower), jnp.isfinite(self.upper)
        from_lower = jnp.log(jnp.where(below, u - self.lower, 1.0))
        from_upper = jnp.log(jnp.where(above, self.upper - u, 1.0))
        return jnp.select([below, above], [from_lower - from_upper, from_upper], u)

    def slope(self, x: Float[Array, " U"]) -> Float[Array, " U"]:
        """Return |du/dx|."""
        return jnp.abs(jax.jvp(self.coordinates, (x,), (jnp.ones_like(x),))[1])


class LogPosterior(eqx.Module):
    r"""Logarithm of the posterior density in whitened coordinates z, up to a constant.

    The coordinates of `BoundChart` are $x = x_0 + L z$. The density is that of all fitted
    components in physical units: of the data and the priors, times the determinant of the
    derivatives of the components with respect to z. Noise that is estimated is integrated out with
    the prior $1/\sigma$.

    **Attributes:** `problem`; `loss`; `chart`; `origin` (U,), $x_0$; `factor` (U, U), L; `counts`,
    for each sensor the number of residuals whose noise is estimated, 0 for given noise; `fitted`,
    indices of the fitted components among the shared ones and among those of a run.
    """

    problem: FitProblem
    loss: AbstractLoss
    chart: BoundChart
    origin: Float[Array, " U"]
    factor: Float[Array, "U U"]
    counts: tuple[int, ...] = eqx.field(static=True)
    fitted: tuple[tuple[int, ...], tuple[int, ...]] = eqx.field(static=True)

    def __call__(self, z: Float[Array, " U"]) -> Float[Array, ""]:
        """Return the logarithm of the density; minus infinity where a run fails.

        The gradient costs no second simulation: residuals and priors are linear functions of the
        coordinates, with the derivatives that their evaluation returns.
        """
        x = self.origin + self.factor @ z
        u = self.chart.coordinates(x)
        change = u - jax.lax.stop_gradient(u)
        evaluation = evaluate(self.problem, *self._split(jax.lax.stop_gradient(u)))
        okay = jnp.all(evaluation.okay)
        # Values of a failed run would make the gradient NaN.
        evaluation = jax.tree.map(lambda leaf: jnp.where(okay, leaf, 1.0), evaluation)
        shared, per_run = self._split(change)
        of_runs = jnp.hstack([jnp.broadcast_to(shared, (len(per_run), shared.size)), per_run])
        residuals = evaluation.residuals + jnp.einsum(
            "bnf,bf->bn", evaluation.coordinate_rows(), of_runs
        )
        prior = evaluation.prior.residuals + evaluation.prior_jacobian() @ change
        value = self._log_likelihood(residuals) - 0.5 * jnp.sum(prior**2) + self._log_volume(x)
        return jnp.where(okay & jnp.isfinite(value), value, -jnp.inf)

    def components(self, z: Float[Array, " U"]) -> Float[Array, " k"]:
        """Return all fitted components in physical units: shared ones, then run by run."""
        shared, per_run = self._split(self.chart.coordinates(self.origin + self.factor @ z))

        def components_of_run(per_run, run):
            leaves = self.problem.run_leaves(shared, per_run, run)
            blocks = self.problem.parametrise(self.problem.experiment(leaves, run))
            return [b.values()[np.array(k, int)] for b, k in zip(blocks, self.fitted, strict=True)]

        of_shared, of_runs = jax.vmap(components_of_run)(per_run, self.problem.runs)
        return jnp.concatenate([of_shared[0], of_runs.reshape(-1)])

    def _split(self, u: Float[Array, " U"]) -> tuple[Float[Array, " S"], Float[Array, "B P"]]:
        """Return shared and per-run coordinates."""
        size = len(self.fitted[0])
        return u[:size], u[size:].reshape(self.problem.num_runs, -1)

    def _log_likelihood(self, residuals: Float[Array, "B N"]) -> Float[Array, ""]:
        """Return the logarithm of the likelihood as a function of weighted residuals."""
        total, sizes = (
            jnp.zeros((), residuals.dtype),
            [w[0].size for w in self.problem.runs.weights],
        )
        parts = jnp.split(self.loss.root(residuals), np.cumsum(sizes)[:-1], axis=1)
        for part, count in zip(parts, self.counts, strict=True):
            squares = jnp.sum(part**2)
            total -= 0.5 * count * jnp.log(squares) if count else 0.5 * squares
        return total

    def _log_volume(self, x: Float[Array, " U"]) -> Float[Array, ""]:
        """Return the logarithm of the determinant of the components' derivatives by x."""
        shared, per_run = self._split(self.chart.coordinates(x))

        def volumes_of_run(per_run, run):
            chains = self.problem.component_derivatives(shared, per_run, run)
            blocks = zip(chains, self.fitted, strict=True)
            return [jnp.linalg.slogdet(chain[np.array(k, int)])[1] for chain, k in blocks]

        of_shared, of_runs = jax.vmap(volumes_of_run)(per_run, self.problem.runs)
        return of_shared[0] + jnp.sum(of_runs) + jnp.sum(jnp.log(self.chart.slope(x)))


def make_log_posterior(optimum: Optimum, variance: float) -> LogPosterior:
    """Return the posterior density, whitened by the Laplace approximation at the optimum.

    **Arguments:** `variance` of a weighted residual.
    """
    problem = optimum.problem.with_starts(optimum.minimum.leaves)
    problem = dataclasses.replace(problem, fitted_only=True)
    lower, upper = _linear_limits(problem)
    start = _start_inside(optimum, problem, lower, upper)
    chart = BoundChart(jnp.asarray(lower), jnp.asarray(upper))
    origin = chart.inverse(start)
    shared, per_run = problem.start_coordinates()
    evaluation = evaluate(
        problem, start[: shared.size], start[shared.size :].reshape(per_run.shape)
    )
    data = np.asarray(evaluation.coordinate_jacobian()) / np.sqrt(variance)
    rows = np.concatenate([data, np.asarray(evaluation.prior_jacobian())])
    rows = rows * np.asarray(chart.slope(origin))
    is_bounded = np.isfinite(lower) | np.isfinite(upper)
    information = rows.T @ rows + _BOUND_CURVATURE * np.diag(is_bounded.astype(float))
    filters = problem.runs.whitening or (None,) * len(optimum.runs.sensors)
    has_noise, weights = optimum.runs.has_noise, optimum.runs.weights
    is_fitted = optimum.table.fitted
    count, num_own = evaluation.shared.size, evaluation.per_run.shape[1]
    return LogPosterior(
        problem=problem,
        loss=optimum.search.loss,
        chart=chart,
        origin=origin,
        factor=jnp.asarray(np.linalg.inv(np.linalg.cholesky(information)).T),
        counts=tuple(
            0 if known or filter is not None else int(np.count_nonzero(np.asarray(w)))
            for w, filter, known in zip(weights, filters, has_noise, strict=True)
        ),
        fitted=(
            tuple(np.flatnonzero(is_fitted[:count]).tolist()),
            tuple(np.flatnonzero(is_fitted[count : count + num_own]).tolist()),
        ),
    )


def _linear_limits(problem: FitProblem) -> tuple[np.ndarray, np.ndarray]:
    """Return limits of the coordinates; infinite for those of logarithms, which stand for zero."""
    limits = problem.limits()
    if limits is None:
        infinite = np.full(sum(x.size for x in problem.start_coordinates()), np.inf)
        return -infinite, infinite
    lower, upper, reach = (
        np.concatenate([np.asarray(a), np.asarray(b).reshape(-1)])
        for a, b in zip(*limits, strict=True)
    )
    return np.where(np.isfinite(reach), -np.inf, lower), upper


def _start_inside(
    optimum: Optimum, problem: FitProblem, lower: np.ndarray, upper: np.ndarray
) -> Float[Array, " U"]:
    """Return the optimum, moved inside by one standard deviation where it is on a bound."""
    u = np.concatenate([np.asarray(x).reshape(-1) for x in problem.start_coordinates()])
    norm = np.linalg.norm(np.asarray(optimum.minimum.last.coordinate_jacobian()), axis=0)
    std = 1 / np.where(norm > 0, norm, 1.0)
    # The effect of a logarithm grows with its exponential.
    is_linear = np.isfinite(lower) | np.isfinite(upper)
    inside = np.where(is_linear, std, np.log(np.maximum(std, 1.0)))
    width = upper - lower
    margin = np.where(np.isfinite(width), 0.01 * width, np.where(is_linear, 0.1 * std, 0.0))
    u = u - np.asarray(optimum.minimum.sides) * inside
    return jnp.asarray(np.clip(u, lower + margin, upper - margin))
