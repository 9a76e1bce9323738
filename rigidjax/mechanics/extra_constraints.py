"""Constraints that are no joint: functions of any bodies' poses, or of their twists."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..joints.constraint import Configuration
from .kinematics.poses import differentiate_along_motion, joint_coordinates, joint_frames_at
from .kinematics.twists import Twists
from .stacked.joints import JointFrames, Poses
from .stacked.system import PreparedSystem


class ExtraConstraints(NamedTuple):
    """The constraints of a system that are no joint, those on positions before the others."""

    prepared: PreparedSystem

    def values(self, t, joint_frames: JointFrames) -> list[Float[Array, " m"]]:
        """Values of those on positions."""
        prepared, system = self.prepared, self.prepared.system
        if not system.position_constraints:
            return []
        dtype = prepared.masses.dtype
        t = jnp.asarray(t, dtype)
        names = {name for one in system.position_constraints for name in one.joint_names()}
        found = joint_coordinates(prepared, joint_frames, t)
        joints = enumerate(system.joints)
        coordinates = {joint.name: found[j] for j, joint in joints if joint.name in names}
        at = Configuration(self._poses(joint_frames.poses), coordinates)
        return [one.value(t, at).astype(dtype) for one in system.position_constraints]

    def slips(self, t, poses: Poses, twists: Twists) -> Float[Array, " k"]:
        """Values of those on velocities alone."""
        prepared = self.prepared
        t = jnp.asarray(t, prepared.masses.dtype)
        at, moving = self._poses(poses), self._twists(poses, twists)
        rates = [one.rate(t, at, moving) for one in prepared.system.velocity_constraints]
        return jnp.concatenate([jnp.zeros(0), *rates]).astype(prepared.masses.dtype)

    def rates(self, t, joint_frames: JointFrames, twists: Twists) -> Float[Array, " m"]:
        """Rates of all."""
        prepared = self.prepared

        def values(t, poses):
            return jnp.concatenate(self.values(t, joint_frames_at(prepared, poses)))

        t = jnp.asarray(t, prepared.masses.dtype)
        slips = self.slips(t, joint_frames.poses, twists)
        if not prepared.system.position_constraints:
            return slips
        return jnp.concatenate(
            [differentiate_along_motion(values, t, joint_frames.poses, twists)[1], slips]
        )

    def jacobian(self, t, joint_frames: JointFrames) -> Float[Array, "m L 6"]:
        """Gradients of all on the twists of all bodies."""
        prepared = self.prepared

        def rate(w):
            return self.rates(t, joint_frames, Twists(w[:, :3], w[:, 3:]))

        return jax.jacrev(rate)(jnp.zeros((prepared.num_bodies, 6), prepared.masses.dtype))

    def _poses(self, poses: Poses) -> dict[str, tuple[Array, Array]]:
        """Poses of all bodies, and of the frames that constraints see, by their names."""
        found = self._by_body(poses.positions, poses.rotations)
        return found | {frame.name: frame.at(*found[frame.body]) for frame in self._seen()}

    def _twists(self, poses: Poses, twists: Twists) -> dict[str, tuple[Array, Array]]:
        """The same of twists."""
        found, R = self._by_body(twists.linear, twists.angular), poses.rotations
        rows = {body.name: i for i, body in enumerate(self.prepared.system.bodies)}
        frames = [(frame, frame.body) for frame in self._seen()]
        return found | {f.name: f.twist(R[rows[body]], *found[body]) for f, body in frames}

    def _by_body(self, first, second):
        bodies = enumerate(self.prepared.system.bodies)
        return {body.name: (first[i], second[i]) for i, body in bodies}

    def _seen(self):
        """Frames that constraints see."""
        system = self.prepared.system
        names = {name for one in system.constraints for name in one.body_names()}
        return [frame for frame in system.frames if frame.name in names]
