"""Poses, twists and multipliers as parts of the unknowns of a formulation."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...formulations import Absolute, AbstractFormulation
from ...native.ops import vmap_rows
from ...rotations.quaternion import Quaternion
from .dynamics import Pose

_ROTATION = Quaternion()


class GroupUnknowns(eqx.Module):
    """Conversion between the unknowns in quaternions and poses, twists and multipliers.

    **Arguments:** `model`, `Absolute(index=3)`, or `NullSpace` of bodies without joints.
    """

    model: AbstractFormulation

    @property
    def is_absolute(self) -> bool:
        """Whether the unknowns contain rates of quaternions instead of angular velocities."""
        return isinstance(self.model, Absolute)

    @property
    def num_multipliers(self) -> int:
        """Number of multipliers of the joints."""
        return self.model.num_algebraic - self.model.layout.num_bodies if self.is_absolute else 0

    def pose(self, y: Float[Array, " N"]) -> Pose:
        """Return the configuration."""
        layout = self.model.layout
        x, p = layout.poses(y)
        return Pose(x, p, layout.angles(y))

    def twists(self, y: Float[Array, " N"]) -> Float[Array, "L k"]:
        """Return velocities, space components, and angular velocities, body components."""
        layout = self.model.layout
        v, rotation = layout.twists(y)
        if self.is_absolute:
            rotation = vmap_rows(_ROTATION.angular_velocity, layout.poses(y)[1], rotation)
        return jnp.concatenate([v[:, : layout.shift], rotation], axis=1)

    def multipliers(self, y: Float[Array, " N"]) -> Float[Array, " m"]:
        """Return the multipliers of the joints."""
        return y[y.size - self.num_multipliers :]

    def join(
        self,
        pose: Pose,
        w: Float[Array, "L k"],
        internal: Float[Array, " L"],
        lam: Float[Array, " m"],
    ) -> Float[Array, " N"]:
        """Return the unknowns.

        **Arguments:** `pose`; `w`, twists; `internal`, multipliers of the lengths of the
        quaternions; `lam`, multipliers of the joints.
        """
        layout = self.model.layout
        v, rotation = w[:, :-3], w[:, -3:]
        if self.is_absolute:
            rotation = vmap_rows(_ROTATION.rate, pose.p, rotation)
        y = layout.join_all(pose.x, pose.p, layout.join(v, rotation), pose.angles)
        return jnp.concatenate([y, internal, lam]) if self.is_absolute else y
