"""Constraints that are no joint: functions of any bodies' poses, or of their twists."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import Scalar
from ...bodies.frame import Frame
from ...joints.constraint import Configuration
from ..stacked.joints import JointFrames, Poses
from ..stacked.system import PreparedSystem
from .poses import Twists, differentiate_along_motion, joint_coordinates, joint_frames_at


class ExtraConstraints(NamedTuple):
    """Constraints of a system that are no joint; constraints on positions come first."""

    prepared: PreparedSystem

    def values(self, t: Scalar, joint_frames: JointFrames) -> list[Float[Array, " m"]]:
        """Return the values of the constraints on positions."""
        prepared, system = self.prepared, self.prepared.system
        if not system.position_constraints:
            return []
        dtype = prepared.masses.dtype
        t = jnp.asarray(t, dtype)
        names = {
            name for constraint in system.position_constraints for name in constraint.joint_names()
        }
        coordinates_of = joint_coordinates(prepared, joint_frames, t)
        joints = enumerate(system.joints)
        coordinates = {joint.name: coordinates_of[j] for j, joint in joints if joint.name in names}
        configuration = Configuration(self._poses(joint_frames.poses), coordinates)
        return [
            constraint.value(t, configuration).astype(dtype)
            for constraint in system.position_constraints
        ]

    def slips(self, t: Scalar, poses: Poses, twists: Twists) -> Float[Array, " k"]:
        """Return the values of the constraints on velocities alone."""
        prepared = self.prepared
        t = jnp.asarray(t, prepared.masses.dtype)
        configuration, moving = self._poses(poses), self._twists(poses, twists)
        rates = [
            constraint.rate(t, configuration, moving)
            for constraint in prepared.system.velocity_constraints
        ]
        return jnp.concatenate([jnp.zeros(0), *rates]).astype(prepared.masses.dtype)

    def rates(self, t: Scalar, joint_frames: JointFrames, twists: Twists) -> Float[Array, " m"]:
        """Return the rates of all constraints."""
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

    def jacobian(self, t: Scalar, joint_frames: JointFrames) -> Float[Array, "m L 6"]:
        """Return the gradients of all constraints on the twists of all bodies."""
        prepared = self.prepared

        def rate(w):
            return self.rates(t, joint_frames, Twists(w[:, :3], w[:, 3:]))

        return jax.jacrev(rate)(jnp.zeros((prepared.num_bodies, 6), prepared.masses.dtype))

    def _poses(self, poses: Poses) -> dict[str, tuple[Array, Array]]:
        """Return the poses of all bodies and of frames in constraints, by name."""
        coordinates_of = self._by_body(poses.positions, poses.rotations)
        return coordinates_of | {
            frame.name: frame.at(*coordinates_of[frame.body]) for frame in self._named_frames()
        }

    def _twists(self, poses: Poses, twists: Twists) -> dict[str, tuple[Array, Array]]:
        """Return the twists of all bodies and of frames in constraints, by name."""
        coordinates_of, R = self._by_body(twists.linear, twists.angular), poses.rotations
        rows = {body.name: i for i, body in enumerate(self.prepared.system.bodies)}
        frames = [(frame, frame.body) for frame in self._named_frames()]
        return coordinates_of | {
            f.name: f.twist(R[rows[body]], *coordinates_of[body]) for f, body in frames
        }

    def _by_body(
        self, first: Float[Array, "n *s"], second: Float[Array, "n *s"]
    ) -> dict[str, tuple[Array, Array]]:
        bodies = enumerate(self.prepared.system.bodies)
        return {body.name: (first[i], second[i]) for i, body in bodies}

    def _named_frames(self) -> list[Frame]:
        """Return the frames that constraints name."""
        system = self.prepared.system
        names = {name for constraint in system.constraints for name in constraint.body_names()}
        return [frame for frame in system.frames if frame.name in names]
