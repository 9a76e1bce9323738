"""Steps of a least-squares fit: the linear problem, and how far it is trusted."""

import abc
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ...native.ops import sequential_vmap_on_cpu

# First damping, relative to the columns of the Jacobian.
_DAMPING = 1e-2

# A step that gains more than the part `_GOOD` of what the linearisation promises divides damping
# by `_LESS`, so that it is soon negligible (a condition of 1e4 takes 1e-8) also where a curved
# valley never lets a step gain all of it; one that is not taken multiplies it by `_MORE`.
_GOOD, _LESS, _MORE = 0.25, 10.0, 4.0

# Part of the scatter of the residuals below which what is left to a limit does not count.
_CLOSE = 1e-2


class Box(NamedTuple):
    """Changes of the coordinates, (U,) each, with which they are on their limits.

    **Attributes:** `lower`, not above zero; `upper`, not below; `reach`, see `Limits`.
    """

    lower: Float[Array, " U"]
    upper: Float[Array, " U"]
    reach: Float[Array, " U"]


class LinearProblem(eqx.Module):
    r"""A linear least-squares problem, reduced to the triangular factor of $(J, r)$.

    A coordinate is held by its limit if it is on it, or so close that what is left changes the
    residuals by less than a hundredth of the scatter, and the sum of squares falls beyond the
    limit. In the optimum of a problem with limits the gradient by the other coordinates is zero.

    **Attributes:** `factor` (U, U), the triangular factor of the Jacobian; `projection` (U,), the
    residual in its column space; `rest`, the norm of the residual outside of it; `size` (U,), the
    norm of each column of the Jacobian, the largest so far; `box`, `None` without limits; `sides`
    (U,), -1 for a coordinate that its lower limit holds, 1 for the upper one, else 0.
    """

    factor: Float[Array, "U U"]
    projection: Float[Array, " U"]
    rest: Float[Array, ""]
    size: Float[Array, " U"]
    box: Box | None
    sides: Int[Array, " U"]

    @property
    def cost(self) -> Float[Array, ""]:
        """Half the sum of squares."""
        return 0.5 * (jnp.sum(self.projection**2) + self.rest**2)

    def gain(self, step: Float[Array, " U"]) -> Float[Array, ""]:
        """By how much a step lowers the cost of the linear problem."""
        change = self.factor @ step
        return -jnp.sum(change * (self.projection + 0.5 * change))

    def step(self, damping: Float[Array, ""]) -> Float[Array, " U"]:
        r"""The step $\min |J\delta + r|^2 + \lambda |D\delta|^2$, $D$ the norms of the columns.

        Within the limits: a coordinate whose step would lead beyond its limit stops there, and the
        others are solved for again.

        **Source:** Moré, in Lecture Notes in Mathematics 630 (1978) 105.
        """
        if self.box is None:
            nothing = jnp.zeros_like(self.size)
            return self._solve(damping, jnp.zeros(nothing.shape, bool), nothing)
        lower, upper, reach = self.box
        # A limit that is only approached is not jumped to.
        limit = jnp.where(self.sides < 0, jnp.where(jnp.isfinite(reach), 0.0, lower), upper)
        fixed = self.sides != 0
        first = jnp.where(fixed, limit / jnp.maximum(damping, 1.0), 0.0)

        def unfinished(carry):
            return carry[3]

        def solve(carry):
            fixed, values, _, _ = carry
            step = self._solve(damping, fixed, values)
            beyond = ~fixed & ((step < lower) | (step > upper))
            values = jnp.where(beyond, jnp.clip(step, lower, upper), values)
            return fixed | beyond, values, step, jnp.any(beyond)

        carry = fixed, first, jnp.zeros_like(first), jnp.array(True)
        return jax.lax.while_loop(unfinished, solve, carry)[2]

    def _solve(self, damping, fixed, values):
        """The step with the `values` of the coordinates that are `fixed`."""
        eps, tiny = jnp.finfo(self.size.dtype).eps, jnp.finfo(self.size.dtype).tiny
        size = jnp.maximum(self.size, jnp.maximum(jnp.max(self.size) * eps, tiny))
        identity = jnp.eye(size.shape[0], dtype=size.dtype)
        columns = jnp.where(fixed[None], 0.0, self.factor / size[None])
        rows = jnp.concatenate([columns, jnp.sqrt(damping) * identity])
        residual = self.projection + self.factor @ jnp.where(fixed, values, 0.0)
        right = jnp.concatenate([-residual, jnp.zeros_like(size)])
        # A step that is not finite gives a trial that fails, and is not taken.
        return jnp.where(fixed, values, _least_squares(rows, right) / size)

    def offset(self, num_residuals: int) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """What a change of parameters could still remove of the squares, and what it leaves.

        Both per degree of freedom: the root of their ratio is the distance to the optimum in
        standard errors. What the data do not determine does not count, nor what limits hold.

        **Source:** Bates, Watts, Technometrics 23 (1981) 179.
        """
        eps, tiny = jnp.finfo(self.size.dtype).eps, jnp.finfo(self.size.dtype).tiny
        held = self.sides != 0
        count = self.size.shape[0] - jnp.sum(held)
        R = jnp.where(held[None], 0.0, self.factor / jnp.where(self.size > 0, self.size, 1.0)[None])
        removable = _square_in_range(R, self.projection)
        left = jnp.sum(self.projection**2) - removable + self.rest**2
        left = jnp.maximum(jnp.maximum(left, eps * removable), tiny)
        rest = jnp.maximum(num_residuals - count, 1).astype(left.dtype)
        return removable / jnp.maximum(count, 1).astype(left.dtype), left / rest


def reduced(
    jacobian: Float[Array, "M U"],
    residual: Float[Array, " M"],
    num_residuals: int,
    box: Box | None = None,
) -> LinearProblem:
    """A problem with this Jacobian and residual, of so many rows that count, within limits."""
    count = jacobian.shape[1]
    R = triangular_factor(jnp.concatenate([jacobian, residual[:, None]], axis=1))
    factor, projection, rest = R[:count, :count], R[:count, count], R[count, count]
    size = jnp.sqrt(jnp.sum(factor * factor, axis=0))
    sides = jnp.zeros(count, int)
    if box is not None:
        scatter = jnp.abs(rest) / np.sqrt(max(num_residuals - count, 1))
        slope = factor.T @ projection
        below, above = (
            (way == 0) | (size * way <= _CLOSE * scatter)
            for way in (jnp.minimum(-box.lower, box.reach), box.upper)
        )
        sides = (above & (slope < 0)).astype(int) - (below & (slope > 0)).astype(int)
    return LinearProblem(factor, projection, rest, size, box, sides)


class AbstractRegion(eqx.Module):
    """How far the linearisation is trusted."""

    @abc.abstractmethod
    def step(self, line: LinearProblem) -> Float[Array, " U"]:
        """The step to the next trial."""

    @abc.abstractmethod
    def updated(self, ratio: Float[Array, ""], taken: Bool[Array, ""]) -> "AbstractRegion":
        """After a trial that gained the `ratio` of what was promised, and was `taken` or not."""


class Damped(AbstractRegion):
    """Levenberg-Marquardt: as far as `damping` allows, relative to the columns of the Jacobian."""

    damping: Float[Array, ""]

    @classmethod
    def new(cls, dtype) -> "Damped":
        return cls(jnp.asarray(_DAMPING, dtype))

    def step(self, line):
        return line.step(self.damping)

    def updated(self, ratio, taken):
        eps = jnp.finfo(self.damping.dtype).eps
        factor = jnp.where(taken, jnp.where(ratio > _GOOD, 1 / _LESS, 1.0), _MORE)
        return Damped(jnp.clip(self.damping * factor, eps**2, 1 / eps))


class Shortened(AbstractRegion):
    """Gauss-Newton with a line search: the part `length` of the step without damping."""

    length: Float[Array, ""]

    @classmethod
    def new(cls, dtype) -> "Shortened":
        return cls(jnp.ones((), dtype))

    def step(self, line):
        # Damping of round-off: what the data do not determine stays as it is.
        return self.length * line.step(jnp.asarray(jnp.finfo(line.size.dtype).eps, line.size.dtype))

    def updated(self, ratio, taken):
        return Shortened(jnp.where(taken, 1.0, 0.5 * self.length))


@sequential_vmap_on_cpu
def _square_in_range(R: Float[Array, "U U"], r: Float[Array, " U"]) -> Float[Array, ""]:
    """Square of the part of a vector that lies in the range of a matrix."""
    U, values, _ = jnp.linalg.svd(R)
    known = values > 100 * jnp.finfo(R.dtype).eps * values[0]
    return jnp.sum(jnp.where(known, U.T @ r, 0.0) ** 2)


@sequential_vmap_on_cpu
def _least_squares(rows: Float[Array, "M U"], right: Float[Array, " M"]) -> Float[Array, " U"]:
    """The solution of a tall linear system of full rank.

    By the triangular factor of both together, so that nothing is multiplied by $Q^T$: LAPACK's
    `dormqr`, which does that for `lineax.QR`, writes ones on the diagonal of $R$ while it runs, and
    XLA, which does not know that, may read $R$ at the same time.
    """
    count = rows.shape[1]
    R = triangular_factor(jnp.concatenate([rows, right[:, None]], axis=1))
    return jax.scipy.linalg.solve_triangular(R[:count, :count], R[:count, count])


@sequential_vmap_on_cpu
def inverse_gram(matrix: Float[Array, "M U"]) -> Float[Array, "U U"]:
    """$(A^T A)^{-1}$ of a tall matrix; not finite if it has none."""
    size = jnp.sqrt(jnp.sum(matrix * matrix, axis=0))
    R = jnp.linalg.qr(matrix / size[None], mode="r")
    X = jax.scipy.linalg.solve_triangular(R, jnp.eye(R.shape[0], dtype=R.dtype)) / size[:, None]
    return X @ X.T


@sequential_vmap_on_cpu
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
