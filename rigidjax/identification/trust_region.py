"""Pieces for optimistix's least squares: scaled damping, and trials that fail."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import optimistix as optx
from jaxtyping import Array, Float

from ..linalg import one_by_one

# Residual (in units of the noise) of a trial whose simulation fails: more than any that succeeds.
# Its square times the number of samples is still finite in single precision.
FAILED = 1e10

# First damping, relative to the columns of the Jacobian.
_DAMPING = 1e-2

# A step that gains more than the part `_GOOD` of what the linearisation promises divides damping
# by `_FACTOR`, so that it is soon negligible (a condition of 1e4 takes 1e-8); one that gains less
# than a hundredth is rejected and multiplies it by as much. With optimistix's factors of 3.5,
# beyond 0.99, and 4, fits take two to three times as many iterations.
_GOOD, _FACTOR = 0.75, 10.0


class Linearisation(eqx.Module):
    r"""A linear least-squares problem, reduced to the triangular factor of $(J, r)$.

    **Attributes:** `factor` (U, U), the triangular factor of the Jacobian; `projection` (U,), the
    residual in its column space; `rest`, the norm of the residual outside of it; `size` (U,), the
    norm of each column of the Jacobian, the largest so far.
    """

    factor: Float[Array, "U U"]
    projection: Float[Array, " U"]
    rest: Float[Array, ""]
    size: Float[Array, " U"]

    def relative_offset(self, num_residuals: int) -> Float[Array, ""]:
        """The part of the residual that a change of parameters could still remove, over the rest.

        Both per degree of freedom. What the data do not determine does not count.

        **Source:** Bates, Watts, Technometrics 23 (1981) 179.
        """
        eps, tiny = jnp.finfo(self.size.dtype).eps, jnp.finfo(self.size.dtype).tiny
        count = self.size.shape[0]
        R = self.factor / jnp.where(self.size > 0, self.size, 1.0)
        removable = _square_in_range(R, self.projection)
        left = jnp.sum(self.projection**2) - removable + self.rest**2
        left = jnp.maximum(jnp.maximum(left, eps * removable), tiny)
        freedom = max(num_residuals - count, 1)
        return jnp.sqrt(removable / count / (left / freedom))


class ScaledDampedNewton(optx.AbstractDescent):
    r"""The step $\min |J\delta + r|^2 + \lambda |D\delta|^2$, $D$ the norms of the columns of $J$.

    optimistix damps with $D = 1$, which depends on the units of the parameters. Without damping
    (Gauss-Newton) $\lambda$ is that of round-off, and the step is shortened instead.

    **Source:** Moré, in Lecture Notes in Mathematics 630 (1978) 105.
    """

    damped: bool = eqx.field(static=True, default=True)

    def init(self, y: Array, f_info_struct: Any) -> Linearisation:
        zeros = jnp.zeros_like(y)
        return Linearisation(jnp.zeros((y.size, y.size), y.dtype), zeros, zeros[0], zeros)

    def query(self, y: Array, f_info: Any, state: Linearisation) -> Linearisation:
        count = y.shape[0]
        J = jax.vmap(f_info.jac.mv, out_axes=-1)(jnp.eye(count, dtype=y.dtype))
        size = jnp.maximum(state.size, jnp.sqrt(jnp.sum(J * J, axis=0)))
        R = triangular_factor(jnp.concatenate([J, f_info.residual[:, None]], axis=1))
        return Linearisation(R[:count, :count], R[:count, count], R[count, count], size)

    def step(self, step_size: Array, state: Linearisation) -> tuple[Array, optx.RESULTS]:
        eps, tiny = jnp.finfo(state.size.dtype).eps, jnp.finfo(state.size.dtype).tiny
        floor = jnp.maximum(jnp.max(state.size) * eps, tiny)
        size = jnp.maximum(state.size, floor)
        if self.damped:
            damping, length = jnp.sqrt(_DAMPING / jnp.maximum(step_size, eps)), 1.0
        else:
            damping, length = jnp.sqrt(eps), step_size
        identity = jnp.eye(size.shape[0], dtype=size.dtype)
        rows = jnp.concatenate([state.factor / size, damping * identity])
        right = jnp.concatenate([-state.projection, jnp.zeros_like(size)])
        # A step that is not finite gives a trial that fails, and is rejected.
        return length * _least_squares(rows, right) / size, optx.RESULTS.successful


class CountingSearch(optx.AbstractSearch):
    """A search of optimistix that also counts the trials that failed."""

    inner: optx.AbstractSearch

    def init(self, y: Any, f_info_struct: Any) -> Any:
        return self.inner.init(y, f_info_struct), jnp.array(0)

    def step(self, first_step, y, y_eval, f_info, f_eval_info, state):  # pyright: ignore
        inner, failures = state
        step_size, accept, result, inner = self.inner.step(
            first_step, y, y_eval, f_info, f_eval_info, inner
        )
        failures = failures + has_failed(f_eval_info.as_min())
        return step_size, accept, result, (inner, failures)


def has_failed(cost: Float[Array, ""]) -> Any:
    """Whether half the sum of squares is that of a trial which failed."""
    return cost >= 0.25 * FAILED**2


def least_squares_solver(tolerance: Any, damped: bool) -> optx.LevenbergMarquardt:
    """optimistix's Levenberg-Marquardt with the pieces above, or Gauss-Newton with a line search.

    Both are the same method of optimistix but for the search and the descent.
    """
    solver = optx.LevenbergMarquardt(tolerance, tolerance)
    trust = optx.ClassicalTrustRegion(
        high_cutoff=_GOOD, high_constant=_FACTOR, low_constant=1 / _FACTOR
    )
    search = trust if damped else optx.BacktrackingArmijo()
    return eqx.tree_at(
        lambda s: (s.search, s.descent),
        solver,
        (CountingSearch(search), ScaledDampedNewton(damped)),
    )


@one_by_one
def _square_in_range(R: Float[Array, "U U"], r: Float[Array, " U"]) -> Float[Array, ""]:
    """Square of the part of a vector that lies in the range of a matrix."""
    U, values, _ = jnp.linalg.svd(R)
    known = values > 100 * jnp.finfo(R.dtype).eps * values[0]
    return jnp.sum(jnp.where(known, U.T @ r, 0.0) ** 2)


@one_by_one
def _least_squares(rows: Float[Array, "M U"], right: Float[Array, " M"]) -> Float[Array, " U"]:
    """The solution of a tall linear system of full rank."""
    return lx.linear_solve(lx.MatrixLinearOperator(rows), right, lx.QR(), throw=False).value


@one_by_one
def inverse_gram(matrix: Float[Array, "M U"]) -> Float[Array, "U U"]:
    """$(A^T A)^{-1}$ of a tall matrix; not finite if it has none."""
    size = jnp.sqrt(jnp.sum(matrix * matrix, axis=0))
    R = jnp.linalg.qr(matrix / size, mode="r")
    X = jax.scipy.linalg.solve_triangular(R, jnp.eye(R.shape[0], dtype=R.dtype)) / size[:, None]
    return X @ X.T


@one_by_one
def triangular_factor(matrix: Float[Array, "M N"]) -> Float[Array, "N N"]:
    """The triangular factor $R$ of a tall matrix, by blocks of rows whose factors are stacked.

    One decomposition of all rows would be given to a multi-threaded library, whose threads wait for
    each other wherever cores are shared: for a Jacobian (1443, 18) on two busy cores that took
    40 ms of processor time where the blocks take 0.4 ms.
    """
    columns = matrix.shape[1]
    block = max(2 * columns, 64)
    while matrix.shape[0] > block:
        matrix = jnp.pad(matrix, ((0, -matrix.shape[0] % block), (0, 0)))
        matrix = jnp.linalg.qr(matrix.reshape(-1, block, columns), mode="r").reshape(-1, columns)
    matrix = jnp.pad(matrix, ((0, max(columns - matrix.shape[0], 0)), (0, 0)))
    return jnp.linalg.qr(matrix, mode="r")
