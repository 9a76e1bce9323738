"""Trust-region steps: the linear least-squares problem and the control of the step length."""

import abc
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ...small_arrays import finite_svd, sequential_vmap_on_cpu

# Initial damping, relative to the norms of the columns of the Jacobian.
_DAMPING = 1e-2

# A step whose actual reduction exceeds the fraction `_GOOD` of the predicted one divides the
# damping by `_LESS`, so that damping soon becomes negligible even for large condition numbers, also
# where a curved valley prevents the full reduction. A rejected step multiplies the damping by
# `_MORE`.
_GOOD, _LESS, _MORE = 0.25, 10.0, 4.0

# Distance to a limit, relative to the scatter of the residuals, below which the limit is reached.
_CLOSE = 1e-2


class StepBounds(NamedTuple):
    """Steps of the coordinates, (U,) each, that lead to their limits.

    **Attributes:** `lower`, not positive; `upper`, not negative; `reach`, see `Limits`.
    """

    lower: Float[Array, " U"]
    upper: Float[Array, " U"]
    reach: Float[Array, " U"]


class LinearProblem(eqx.Module):
    """A linear least-squares problem, reduced to the triangular factor of $(J, r)$.

    A limit is active if the sum of squares falls beyond it and the coordinate is on it, or so close
    that the remaining step changes the residuals by less than a hundredth of the scatter. At an
    optimum with limits, the gradient with respect to the other coordinates is zero.

    **Attributes:** `factor` (U, U), the triangular factor of the Jacobian; `projection` (U,), the
    residual in its column space; `rest`, the norm of the residual outside it; `size` (U,), the
    norms of the columns of the Jacobian, each the largest so far; `box`, the bounds of the step,
    `None` without limits; `sides` (U,), -1 for an active lower limit, 1 for an active upper limit,
    else 0.
    """

    factor: Float[Array, "U U"]
    projection: Float[Array, " U"]
    rest: Float[Array, ""]
    size: Float[Array, " U"]
    box: StepBounds | None
    sides: Int[Array, " U"]

    @property
    def cost(self) -> Float[Array, ""]:
        """Half the sum of squares."""
        return 0.5 * (jnp.sum(self.projection**2) + self.rest**2)

    def gain(self, step: Float[Array, " U"]) -> Float[Array, ""]:
        """Return the predicted reduction of the cost by a step."""
        change = self.factor @ step
        return -jnp.sum(change * (self.projection + 0.5 * change))

    def step(self, damping: Float[Array, ""]) -> Float[Array, " U"]:
        r"""Return the step $\min |J\delta + r|^2 + \lambda |D\delta|^2$, $D$ the column norms.

        A coordinate that would leave its limits stops there, and the step of the others is
        recomputed.

        **Source:** Moré, in Lecture Notes in Mathematics 630 (1978) 105.
        """
        if self.box is None:
            zeros = jnp.zeros_like(self.size)
            return self._damped_solution(damping, jnp.zeros(zeros.shape, bool), zeros)
        lower, upper, reach = self.box
        # A step does not go all the way to a limit that is only reached asymptotically.
        target = jnp.where(self.sides < 0, jnp.where(jnp.isfinite(reach), 0.0, lower), upper)
        fixed = self.sides != 0
        first = jnp.where(fixed, target / jnp.maximum(damping, 1.0), 0.0)

        def has_violations(carry):
            return carry[3]

        def solve(carry):
            fixed, values, _, _ = carry
            step = self._damped_solution(damping, fixed, values)
            beyond = ~fixed & ((step < lower) | (step > upper))
            values = jnp.where(beyond, jnp.clip(step, lower, upper), values)
            return fixed | beyond, values, step, jnp.any(beyond)

        carry = fixed, first, jnp.zeros_like(first), jnp.array(True)
        return jax.lax.while_loop(has_violations, solve, carry)[2]

    def _damped_solution(
        self, damping: Float[Array, ""], fixed: Bool[Array, " U"], values: Float[Array, " U"]
    ) -> Float[Array, " U"]:
        """Return the damped step with the given `values` of the coordinates that are `fixed`."""
        eps, tiny = jnp.finfo(self.size.dtype).eps, jnp.finfo(self.size.dtype).tiny
        size = jnp.maximum(self.size, jnp.maximum(jnp.max(self.size) * eps, tiny))
        identity = jnp.eye(size.shape[0], dtype=size.dtype)
        columns = jnp.where(fixed[None], 0.0, self.factor / size[None])
        rows = jnp.concatenate([columns, jnp.sqrt(damping) * identity])
        residual = self.projection + self.factor @ jnp.where(fixed, values, 0.0)
        right = jnp.concatenate([-residual, jnp.zeros_like(size)])
        # A step that is not finite leads to a failed trial, which is rejected.
        return jnp.where(fixed, values, _least_squares(rows, right) / size)

    def residual_split(self, num_residuals: int) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Return the parts of the sum of squares that a step can and cannot remove.

        Both are per degree of freedom, so that the square root of their ratio is the distance to
        the optimum in standard errors. Undetermined combinations and coordinates on active limits
        are excluded.

        **Source:** Bates, Watts, Technometrics 23 (1981) 179.
        """
        eps, tiny = jnp.finfo(self.size.dtype).eps, jnp.finfo(self.size.dtype).tiny
        is_active = self.sides != 0
        count = self.size.shape[0] - jnp.sum(is_active)
        R = jnp.where(
            is_active[None], 0.0, self.factor / jnp.where(self.size > 0, self.size, 1.0)[None]
        )
        removable = _squared_norm_in_range(R, self.projection)
        remaining = jnp.sum(self.projection**2) - removable + self.rest**2
        remaining = jnp.maximum(jnp.maximum(remaining, eps * removable), tiny)
        freedom = jnp.maximum(num_residuals - count, 1).astype(remaining.dtype)
        return removable / jnp.maximum(count, 1).astype(remaining.dtype), remaining / freedom


def reduce_problem(
    jacobian: Float[Array, "M U"],
    residual: Float[Array, " M"],
    num_residuals: int,
    box: StepBounds | None = None,
) -> LinearProblem:
    """Return the linear problem of a Jacobian and residual with `num_residuals` effective rows."""
    count = jacobian.shape[1]
    R = triangular_factor(jnp.concatenate([jacobian, residual[:, None]], axis=1))
    factor, projection, rest = R[:count, :count], R[:count, count], R[count, count]
    size = jnp.sqrt(jnp.sum(factor * factor, axis=0))
    sides = jnp.zeros(count, int)
    if box is not None:
        scatter = jnp.abs(rest) / np.sqrt(max(num_residuals - count, 1))
        slope = factor.T @ projection
        below, above = (
            (distance == 0) | (size * distance <= _CLOSE * scatter)
            for distance in (jnp.minimum(-box.lower, box.reach), box.upper)
        )
        sides = (above & (slope < 0)).astype(int) - (below & (slope > 0)).astype(int)
    return LinearProblem(factor, projection, rest, size, box, sides)


class AbstractRegion(eqx.Module):
    """Trust region: how far a step follows the linearisation."""

    @abc.abstractmethod
    def step(self, linear: LinearProblem) -> Float[Array, " U"]:
        """Return the step to the next trial."""

    @abc.abstractmethod
    def update(self, ratio: Float[Array, ""], accepted: Bool[Array, ""]) -> "AbstractRegion":
        """Return the region after a trial.

        **Arguments:** `ratio` of the actual to the predicted reduction; whether it was `accepted`.
        """


class DampedRegion(AbstractRegion):
    """Levenberg-Marquardt steps; `damping` is relative to the norms of the columns."""

    damping: Float[Array, ""]

    @classmethod
    def new(cls, dtype: jnp.dtype) -> "DampedRegion":
        return cls(jnp.asarray(_DAMPING, dtype))

    def step(self, linear: LinearProblem) -> Float[Array, " U"]:
        return linear.step(self.damping)

    def update(self, ratio: Float[Array, ""], accepted: Bool[Array, ""]) -> "DampedRegion":
        eps = jnp.finfo(self.damping.dtype).eps
        factor = jnp.where(accepted, jnp.where(ratio > _GOOD, 1 / _LESS, 1.0), _MORE)
        return DampedRegion(jnp.clip(self.damping * factor, eps**2, 1 / eps))


class LineSearchRegion(AbstractRegion):
    """Gauss-Newton steps with a line search; `length` is the fraction of the full step."""

    length: Float[Array, ""]

    @classmethod
    def new(cls, dtype: jnp.dtype) -> "LineSearchRegion":
        return cls(jnp.ones((), dtype))

    def step(self, linear: LinearProblem) -> Float[Array, " U"]:
        # Damping at the size of round-off keeps undetermined combinations unchanged.
        return self.length * linear.step(
            jnp.asarray(jnp.finfo(linear.size.dtype).eps, linear.size.dtype)
        )

    def update(self, ratio: Float[Array, ""], accepted: Bool[Array, ""]) -> "LineSearchRegion":
        return LineSearchRegion(jnp.where(accepted, 1.0, 0.5 * self.length))


@sequential_vmap_on_cpu
def _squared_norm_in_range(R: Float[Array, "U U"], r: Float[Array, " U"]) -> Float[Array, ""]:
    """Return the squared norm of the projection of a vector on the range of a matrix."""
    U, values, _ = finite_svd(R)
    is_nonzero = values > 100 * jnp.finfo(R.dtype).eps * values[0]
    return jnp.sum(jnp.where(is_nonzero, U.T @ r, 0.0) ** 2)


@sequential_vmap_on_cpu
def _least_squares(rows: Float[Array, "M U"], right: Float[Array, " M"]) -> Float[Array, " U"]:
    """Return the solution of a tall linear system of full rank.

    It uses the triangular factor of matrix and right-hand side together and never multiplies by
    $Q^T$. LAPACK's `dormqr`, which `lineax.QR` uses for that, temporarily writes ones on the
    diagonal of $R$, while the compiled program may read $R$ at the same time.
    """
    count = rows.shape[1]
    R = triangular_factor(jnp.concatenate([rows, right[:, None]], axis=1))
    return jax.scipy.linalg.solve_triangular(R[:count, :count], R[:count, count])


@sequential_vmap_on_cpu
def inverse_gram(matrix: Float[Array, "M U"]) -> Float[Array, "U U"]:
    """Return $(A^T A)^{-1}$ of a tall matrix; not finite if it does not exist."""
    size = jnp.sqrt(jnp.sum(matrix * matrix, axis=0))
    R = jnp.linalg.qr(matrix / size[None], mode="r")
    X = jax.scipy.linalg.solve_triangular(R, jnp.eye(R.shape[0], dtype=R.dtype)) / size[:, None]
    return X @ X.T


@sequential_vmap_on_cpu
def triangular_factor(matrix: Float[Array, "M N"]) -> Float[Array, "N N"]:
    """Return the triangular factor $R$ of a tall matrix, from the factors of blocks of its rows.

    One decomposition of all rows would be passed to a multi-threaded library whose threads wait for
    each other on shared cores, which is far slower.
    """
    columns = matrix.shape[1]
    block = max(2 * columns, 64)
    while matrix.shape[0] > block:
        matrix = jnp.pad(matrix, ((0, -matrix.shape[0] % block), (0, 0)))
        matrix = jnp.linalg.qr(matrix.reshape(-1, block, columns), mode="r").reshape(-1, columns)
    matrix = jnp.pad(matrix, ((0, max(columns - matrix.shape[0], 0)), (0, 0)))
    return jnp.linalg.qr(matrix, mode="r")
