r"""Redundant constraints of closed loops, in equations with multipliers.

Where rows of the gradient $G$ depend on each other, the multipliers are not unique, and constraints
with multipliers as unknowns are a singular system. With a projector $Q$ onto the multipliers that
do nothing at the start, $G^T Q = 0$, the equations $(1 - Q^T) g + Q^T U Q \lambda = 0$ take the
place of $g = 0$: both terms vanish by themselves, as many constraints as there are independent
ones, and a choice of the multipliers. $U$, diagonal, are squares of what constraints are measured
by.
"""

from typing import TYPE_CHECKING

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..mechanics.constraints import constraint_units
from ..mechanics.reactions import redundant_multipliers

if TYPE_CHECKING:
    from .descriptor import Descriptor

# Singular values below this part of the largest one are zero: at the start a mechanism is assembled
# to round-off, and constraints less independent than that would not hold it.
_CUTOFF = 1e-8


def idle_projector(descriptor: "Descriptor", t, y0) -> Float[Array, "m m"]:
    """The projector onto the multipliers that do nothing at the unknowns `y0`, of a system with
    loops.

    Zero, exactly, if all constraints are independent. What it leaves is of least norm in the
    multipliers of joints, moments measured by the mechanism's length.
    """
    prepared = descriptor.model.prepared
    poses, joint_frames, _ = descriptor.model.motion(t, y0)
    idle = redundant_multipliers(
        prepared, t, poses, joint_frames, constraint_units(prepared), _CUTOFF
    )
    q, _, angles = descriptor.split(y0)
    G = descriptor.jacobian(t, q, angles)
    count = len(G) - len(idle)
    internal, joints = G[:count], G[count:]
    # What the coordinates of rotations feel of them, their own constraints carry.
    carried = -jnp.linalg.solve(internal @ internal.T, internal @ joints.T) if count else G[:0, :0]
    both = jnp.concatenate([carried.reshape(count, -1) @ idle, idle]) if count else idle
    return jnp.concatenate([jnp.zeros_like(G, shape=(len(G), count)), both], axis=1)
