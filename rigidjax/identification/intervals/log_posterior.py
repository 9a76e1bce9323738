"""Logarithm of the posterior density of fitted parameters, with exact gradients."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..fit.evaluation import evaluate
from ..fit.losses import AbstractLoss
from ..fit.problem import FitProblem

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

    @property
    def is_bounded(self) -> Array:
        """Whether each coordinate has a bound, (U,)."""
        return jnp.isfinite(self.lower) | jnp.isfinite(self.upper)

    def coordinates(self, x: Float[Array, " U"]) -> Float[Array, " U"]:
        """Return u."""
        below, above = jnp.isfinite(self.lower), jnp.isfinite(self.upper)
        a, b = jnp.where(below, self.lower, 0.0), jnp.where(above, self.upper, 0.0)
        grown = jnp.exp(jnp.where(below ^ above, x, 0.0))
        between = a + (b - a) * jax.nn.sigmoid(x)
        single = jnp.where(below, a + grown, b - grown)
        return jnp.where(below & above, between, jnp.where(below | above, single, x))

    def inverse(self, u: Float[Array, " U"]) -> Float[Array, " U"]:
        """Return x of coordinates inside their bounds."""
        below, above = jnp.isfinite(self.lower), jnp.isfinite(self.upper)
        from_lower = jnp.log(jnp.where(below, u - self.lower, 1.0))
        from_upper = jnp.log(jnp.where(above, self.upper - u, 1.0))
        both = from_lower - from_upper
        single = jnp.where(below, from_lower, from_upper)
        return jnp.where(below & above, both, jnp.where(below | above, single, u))

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

    def split(self, x: Float[Array, " U"]) -> tuple[Float[Array, " S"], Float[Array, "B P"]]:
        """Return shared and per-run coordinates of x."""
        u = self.chart.coordinates(x)
        size = len(self.fitted[0])
        return u[:size], u[size:].reshape(self.problem.num_runs, -1)

    def point(self, z: Float[Array, " U"]) -> Float[Array, " U"]:
        """Return x of whitened coordinates."""
        return self.origin + self.factor @ z

    def log_likelihood(self, residuals: Float[Array, "B N"]) -> Float[Array, ""]:
        """Return the logarithm of the likelihood as a function of weighted residuals."""
        total, begin = jnp.zeros((), residuals.dtype), 0
        for weights, count in zip(self.problem.runs.weights, self.counts, strict=True):
            end = begin + weights[0].size
            squares = jnp.sum(self.loss.root(residuals[:, begin:end]) ** 2)
            total -= 0.5 * count * jnp.log(squares) if count else 0.5 * squares
            begin = end
        return total

    def log_volume(self, x: Float[Array, " U"]) -> Float[Array, ""]:
        """Return the logarithm of the determinant of the components' derivatives by x."""
        shared, per_run = self.split(x)

        def of_run(per_run, run):
            chains = self.problem.component_derivatives(shared, per_run, run)
            blocks = zip(chains, self.fitted, strict=True)
            return [jnp.linalg.slogdet(chain[np.array(k, int)])[1] for chain, k in blocks]

        of_shared, of_runs = jax.vmap(of_run)(per_run, self.problem.runs)
        return of_shared[0] + jnp.sum(of_runs) + jnp.sum(jnp.log(self.chart.slope(x)))

    def value_and_gradient(
        self, z: Float[Array, " U"]
    ) -> tuple[Float[Array, ""], Float[Array, " U"]]:
        r"""Return the logarithm of the density and its gradient, from one evaluation of the runs.

        With residuals r and their Jacobian J the gradient of the likelihood f is
        $J^T \nabla f(r)$. It is zero where a run fails, and the density too.
        """
        x = self.point(z)
        shared, per_run = self.split(x)
        evaluation = evaluate(self.problem, shared, per_run)
        likelihood, weights = jax.value_and_grad(self.log_likelihood)(evaluation.residuals)
        by_component = jnp.einsum("bn,bne->be", weights, evaluation.jacobian)
        prior, size = evaluation.prior, evaluation.shared.shape[0]
        of_shared = by_component[:, :size].sum(axis=0) - prior.shared @ prior.shared_jacobian
        of_runs = by_component[:, size:]
        of_runs -= jnp.einsum("bq,bqd->bd", prior.per_run, prior.per_run_jacobian)
        by_coordinate = jnp.concatenate(
            [
                of_shared @ evaluation.shared_chain,
                jnp.einsum("bd,bdp->bp", of_runs, evaluation.per_run_chain).reshape(-1),
            ]
        )
        volume, by_volume = jax.value_and_grad(self.log_volume)(x)
        slope = jax.jvp(self.chart.coordinates, (x,), (jnp.ones_like(x),))[1]
        value = likelihood - 0.5 * jnp.sum(prior.residuals**2) + volume
        gradient = self.factor.T @ (by_coordinate * slope + by_volume)
        is_finite = jnp.isfinite(value) & jnp.all(jnp.isfinite(gradient))
        okay = jnp.all(evaluation.okay) & is_finite
        return jnp.where(okay, value, -jnp.inf), jnp.where(okay, gradient, 0.0)

    def components(self, z: Float[Array, " U"]) -> Float[Array, " k"]:
        """Return all fitted components in physical units: shared ones, then run by run."""
        problem = self.problem
        leaves = problem.all_leaves(*self.split(self.point(z)))
        values = [
            jax.vmap(p.transform.estimates)(leaf)
            for p, leaf in zip(problem.parameters, leaves, strict=True)
        ]
        count = len(problem.shared)
        none = jnp.zeros((problem.num_runs, 0), self.origin.dtype)
        shared, per_run = (
            jnp.concatenate([none, *part], axis=1)[:, np.array(k, int)]
            for part, k in zip((values[:count], values[count:]), self.fitted, strict=True)
        )
        return jnp.concatenate([shared[0], per_run.reshape(-1)])


@eqx.filter_custom_vjp
def log_density(z: Float[Array, " U"], posterior: LogPosterior) -> Float[Array, ""]:
    """Return the logarithm of the density; its gradient costs no second evaluation."""
    return posterior.value_and_gradient(z)[0]


@log_density.def_fwd
def _log_density_forward(perturbed: Any, z: Array, posterior: LogPosterior) -> Any:
    return posterior.value_and_gradient(z)


@log_density.def_bwd
def _log_density_backward(
    gradient: Array, cotangent: Array, perturbed: Any, z: Array, posterior: LogPosterior
) -> Array:
    return cotangent * gradient


def laplace_factor(
    rows: Float[np.ndarray, "M U"], slope: Float[np.ndarray, " U"], is_bounded: np.ndarray
) -> np.ndarray:
    """Return a factor L with the covariance $L L^T$ of the Laplace approximation in x.

    **Arguments:** `rows`, derivatives of all residuals by u, in units of their standard deviation;
    `slope`, |du/dx|; `is_bounded`, see `BoundChart`.
    """
    along = rows * slope
    information = along.T @ along + _BOUND_CURVATURE * np.diag(is_bounded.astype(float))
    root = np.linalg.cholesky(information)
    return np.linalg.inv(root).T
