"""Poses, twists and multipliers among the unknowns of a formulation."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...formulations import Absolute, AbstractFormulation
from ...native.ops import vmap_rows
from ...rotations.quaternion import Quaternion
from .dynamics import Pose

_ROTATION = Quaternion()


class GroupUnknowns(eqx.Module):
    """Translates between the unknowns `y` of a formulation in quaternions and what they mean.

    **Arguments:** `model`, `Absolute(index=3)`, or `NullSpace` of bodies without joints.
    """

    model: AbstractFormulation

    @property
    def is_absolute(self) -> bool:
        """Whether velocities are rates of quaternions."""
        return isinstance(self.model, Absolute)

    @property
    def num_multipliers(self) -> int:
        """Multipliers of the joints."""
        return self.model.num_algebraic - self.model.layout.num_bodies if self.is_absolute else 0

    def pose(self, y: Float[Array, " N"]) -> Pose:
        """Configuration."""
        layout = self.model.layout
        x, p = layout.poses(y)
        return Pose(x, p, layout.angles(y))

    def twists(self, y: Float[Array, " N"]) -> Float[Array, "L k"]:
        """Velocities, space components, and angular velocities, body components."""
        layout = self.model.layout
        v, turn = layout.twists(y)
        if self.is_absolute:
            turn = vmap_rows(_ROTATION.angular_velocity, layout.poses(y)[1], turn)
        return jnp.concatenate([v[:, : layout.shift], turn], axis=1)

    def multipliers(self, y: Float[Array, " N"]) -> Float[Array, " m"]:
        """Those of the joints."""
        return y[y.size - self.num_multipliers :]

    def join(self, pose: Pose, w, internal, lam) -> Float[Array, " N"]:
        """The unknowns; `internal`, multipliers of the lengths of the quaternions, (L,)."""
        layout = self.model.layout
        v, turn = w[:, :-3], w[:, -3:]
        if self.is_absolute:
            turn = vmap_rows(_ROTATION.rate, pose.p, turn)
        y = layout.join_all(pose.x, pose.p, layout.join(v, turn), pose.angles)
        return jnp.concatenate([y, internal, lam]) if self.is_absolute else y
