r"""Bodies in Euler parameters without multipliers: three equations of motion, one constraint.

$L$ annihilates $p$, the direction of the constraint force. The equations $L (4 L^T J L\,\ddot p + c
- Q) = 0$ of each body, with its constraint as the fourth equation, determine $\ddot p$. Without a
multiplier the differentiation index is one less than that of the other forms: 0 with the constraint
on accelerations, 1 on velocities, 2 on positions.
"""

from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Scalar
from ..native.ops import block_diagonal
from .compiled import compile_method
from .descriptor import Descriptor

if TYPE_CHECKING:
    from .absolute_base import AbstractAbsolute


class ReducedEquations(eqx.Module):
    """Equations of a `Descriptor` in quaternions, without joints, times $L$.

    **Source:** Sherif (25).
    """

    descriptor: Descriptor

    @property
    def sizes(self) -> set[int]:
        """Numbers of unknowns that the methods of the model take."""
        return self.descriptor.sizes

    def separate_arrays(self) -> "ReducedEquations":
        """Return the equations of the model with separate arrays."""
        return ReducedEquations(self.descriptor.separate_arrays())

    def bind(self, t: Scalar, y: Float[Array, " N"]) -> "ReducedEquations":
        """Return the equations of the model with the values of its inputs at `(t, y)`."""
        return ReducedEquations(self.descriptor.bind(t, y))

    def prepare(self, t: Float[Array, ""] | None = None) -> "ReducedEquations":
        """Return the equations of the prepared model."""
        return ReducedEquations(self.descriptor.prepare())

    @property
    def model(self) -> "AbstractAbsolute":
        """The formulation."""
        return self.descriptor.model

    def reduction(self, q: Float[Array, " n"]) -> Float[Array, "n n"]:
        """Return the matrix that reduces the balance of each body.

        Forces stay, the rotational rows are multiplied by $L$, and the last row is zero.
        """
        _, p = self.model.layout.poses(q)

        def of_body(quaternion):
            # L = 2 T^T, on rows 1 to 3 of four.
            L = 2.0 * self.model.rotation.null_space(quaternion).T
            L = jnp.concatenate([L, jnp.zeros_like(L[:1])])
            return jax.scipy.linalg.block_diag(jnp.eye(self.model.layout.shift, dtype=q.dtype), L)

        return block_diagonal(jax.vmap(of_body)(p))

    def place_rows(self, rows: Float[Array, "m ..."]) -> Float[Array, "n ..."]:
        """Place one row of each body in the row that `reduction` leaves free."""
        layout = self.model.layout
        size = layout.num_positions // layout.num_bodies
        filled = jnp.zeros((layout.num_positions, *rows.shape[1:]), rows.dtype)
        return filled.at[size - 1 :: size].set(rows)

    @compile_method
    def mass(self, t: Scalar, y: Float[Array, " N"], index: int) -> Float[Array, "N N"]:
        r"""Return the matrix $A$ of $A(t, y)\,\dot y = b(t, y)$, regular for index 1."""
        q, _, angles = self.descriptor.split(y)
        rates = self.reduction(q) @ self.descriptor.mass_matrix(q)
        if index == 1:
            rates = rates + self.place_rows(self.descriptor.jacobian(t, q, angles))
        return jax.scipy.linalg.block_diag(jnp.eye(q.size, dtype=y.dtype), rates)

    @compile_method
    def mass_times(
        self, t: Scalar, y: Float[Array, " N"], rate: Float[Array, " N"], index: int
    ) -> Float[Array, " N"]:
        r"""Return $A(t, y)\,\dot y$ of a rate, (N,), without the matrix."""
        q, _, angles = self.descriptor.split(y)
        v, v_dot = rate[: q.size], rate[q.size :]
        along = self.reduction(q) @ self.descriptor.momentum(q, v_dot)
        if index == 1:
            constraint = lambda q: self.descriptor.constraint(t, q, angles)  # noqa: E731
            along = along + self.place_rows(jax.jvp(constraint, (q,), (v_dot,))[1])
        return jnp.concatenate([v, along])

    @compile_method
    def right_hand_side(self, t: Scalar, y: Float[Array, " N"], index: int) -> Float[Array, " N"]:
        r"""Return the right-hand side $b$ of $A(t, y)\,\dot y = b(t, y)$."""
        q, v, angles = self.descriptor.split(y)
        balance = self.reduction(q) @ self.descriptor.force(t, q, v, y)
        level = self.place_rows(self.descriptor.level(t, q, v, angles, index))
        return jnp.concatenate([v, balance + level])
