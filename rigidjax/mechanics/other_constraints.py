"""Constraints that are no joint: functions of any bodies' poses, or of their twists."""

from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..joints import Configuration
from .attachment import Placements, Poses
from .twists import Twists

if TYPE_CHECKING:
    from .mechanics import SystemMechanics


class OtherConstraints(NamedTuple):
    """The constraints of a system that are no joint, those on positions before the others."""

    mechanics: "SystemMechanics"

    def values(self, t, places: Placements) -> list[Float[Array, " m"]]:
        """Values of those on positions."""
        mechanics, system = self.mechanics, self.mechanics.system
        if not system.position_constraints:
            return []
        dtype = mechanics.masses.dtype
        t = jnp.asarray(t, dtype)
        names = {name for one in system.position_constraints for name in one.joint_names()}
        found = mechanics.coordinates(places, t)
        joints = enumerate(system.joints)
        coordinates = {joint.name: found[j] for j, joint in joints if joint.name in names}
        at = Configuration(self._poses(places.poses), coordinates)
        return [one.value(t, at).astype(dtype) for one in system.position_constraints]

    def slips(self, t, poses: Poses, twists: Twists) -> Float[Array, " k"]:
        """Values of those on velocities alone."""
        mechanics = self.mechanics
        t = jnp.asarray(t, mechanics.masses.dtype)
        at, moving = self._poses(poses), self._twists(poses, twists)
        rates = [one.rate(t, at, moving) for one in mechanics.system.velocity_constraints]
        return jnp.concatenate([jnp.zeros(0), *rates]).astype(mechanics.masses.dtype)

    def rates(self, t, places: Placements, twists: Twists) -> Float[Array, " m"]:
        """Rates of all."""
        mechanics = self.mechanics

        def values(t, poses):
            return jnp.concatenate(self.values(t, mechanics.place(poses)))

        t = jnp.asarray(t, mechanics.masses.dtype)
        slips = self.slips(t, places.poses, twists)
        if not mechanics.system.position_constraints:
            return slips
        return jnp.concatenate([mechanics.bias(values, t, places.poses, twists)[1], slips])

    def jacobian(self, t, places: Placements) -> Float[Array, "m L 6"]:
        """Gradients of all on the twists of all bodies."""
        mechanics = self.mechanics

        def rate(w):
            return self.rates(t, places, Twists(w[:, :3], w[:, 3:]))

        return jax.jacrev(rate)(jnp.zeros((mechanics.num_bodies, 6), mechanics.masses.dtype))

    def _poses(self, poses: Poses) -> dict[str, tuple[Array, Array]]:
        """Poses of all bodies, and of the frames that constraints see, by their names."""
        found = self._by_body(poses.positions, poses.rotations)
        return found | {frame.name: frame.at(*found[frame.body]) for frame in self._seen()}

    def _twists(self, poses: Poses, twists: Twists) -> dict[str, tuple[Array, Array]]:
        """The same of twists."""
        found, R = self._by_body(twists.linear, twists.angular), poses.rotations
        rows = {body.name: i for i, body in enumerate(self.mechanics.system.bodies)}
        frames = [(frame, frame.body) for frame in self._seen()]
        return found | {f.name: f.twist(R[rows[body]], *found[body]) for f, body in frames}

    def _by_body(self, first, second):
        bodies = enumerate(self.mechanics.system.bodies)
        return {body.name: (first[i], second[i]) for i, body in bodies}

    def _seen(self):
        """Frames that constraints see."""
        system = self.mechanics.system
        names = {name for one in system.constraints for name in one.body_names()}
        return [frame for frame in system.frames if frame.name in names]
