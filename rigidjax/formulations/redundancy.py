r"""Redundant constraints of closed loops, in equations with multipliers.

Where rows of the gradient $G$ depend on each other, the multipliers are not unique, and equations
with multipliers as unknowns are singular. Let $Q$ be a projector onto the multipliers that have no
effect at the start, $G^T Q = 0$. The equations $(1 - Q^T) g + Q^T U Q \lambda = 0$ replace $g = 0$.
Both terms vanish separately: the independent constraints hold, and the redundant multipliers are
determined. $U$, diagonal, has the squares of the scales of the constraints.
"""

from typing import TYPE_CHECKING

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Time
from ..mechanics.constraints import constraint_units
from ..mechanics.reactions import redundant_multipliers

if TYPE_CHECKING:
    from .descriptor import Descriptor

# Singular values below this part of the largest one are zero: at the start a mechanism is assembled
# to round-off, and less independent constraints would not hold it.
_CUTOFF = 1e-8


def redundant_projector(
    descriptor: "Descriptor", t: Time, y0: Float[Array, " N"]
) -> Float[Array, "m m"]:
    """Return the projector onto the multipliers that have no effect at the unknowns `y0`.

    It is exactly zero if all constraints are independent. The remaining multipliers have the least
    norm in the multipliers of joints, moments in units of the mechanism's length.
    """
    t = jnp.asarray(t, y0.dtype)
    prepared = descriptor.model.prepared_system
    poses, joint_frames, _ = descriptor.model.motion(t, y0)
    idle = redundant_multipliers(
        prepared, t, poses, joint_frames, constraint_units(prepared), _CUTOFF
    )
    q, _, angles = descriptor.split(y0)
    G = descriptor.jacobian(t, q, angles)
    count = len(G) - len(idle)
    internal, joints = G[:count], G[count:]
    # The internal constraints of the rotations balance their effect on rotation coordinates.
    carried = -jnp.linalg.solve(internal @ internal.T, internal @ joints.T) if count else G[:0, :0]
    both = jnp.concatenate([carried.reshape(count, -1) @ idle, idle]) if count else idle
    return jnp.concatenate([jnp.zeros_like(G, shape=(len(G), count)), both], axis=1)
