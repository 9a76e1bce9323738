r"""Equations of motion on the group, $M \dot w = f - G^T \lambda$, $g(q, t) = 0$."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import Scalar
from ...bodies.inertia import inertia_tensor
from ...mechanics.dynamics.constraint_elimination import flatten_jacobian
from ...mechanics.dynamics.joint_gradients import JointGradients, joint_gradients
from ...mechanics.dynamics.loads import apply_mass, force_virials, free_forces
from ...mechanics.dynamics.projections import constrained_accelerations, smallest_change
from ...mechanics.dynamics.reactions import redundant_multipliers
from ...mechanics.kinematics.constraints import (
    constraint_jacobian,
    constraint_rates,
    constraint_units,
    constraint_values,
)
from ...mechanics.kinematics.poses import (
    Twists,
    assemble_poses,
    joint_angle_rates,
    joint_angles,
    joint_frames_at,
    kinematics_for_forces,
)
from ...mechanics.stacked.joints import JointFrames, Poses
from ...mechanics.stacked.system import PreparedSystem
from ...rotations.euler_map import euler_map
from ..conserving.phase import increment_scales


class Pose(NamedTuple):
    """Configuration of all bodies.

    **Attributes:** `x`, positions, (L, 3) m; `p`, unit quaternions, (L, 4); `angles`, unwrapped
    angles of the joints whose revolutions are counted, rad.
    """

    x: Float[Array, "L 3"]
    p: Float[Array, "L 4"]
    angles: Float[Array, " A"]


class Dynamics(eqx.Module):
    r"""Forces, masses and constraints of all bodies as functions of poses and twists.

    The twists $w$, (L, k), are the velocities of the centres of mass, space components, followed by
    $\Omega$, body components; for one body with a fixed point they are $\Omega$ alone.

    **Arguments:** `prepared`, the arrays of the system.
    """

    prepared: PreparedSystem

    def twists(self, w: Float[Array, "L k"]) -> Twists:
        """Split twists into velocities, zero for a fixed point, and angular velocities."""
        linear = w[:, :-3] if self.prepared.system.translates else jnp.zeros_like(w)
        return Twists(linear, w[:, -3:])

    def _select_rates(self, values: Float[Array, "L 6"]) -> Float[Array, "L k"]:
        return values[:, -self.prepared.system.rates_of_free :]

    def _poses_and_frames(self, pose: Pose) -> tuple[Poses, JointFrames]:
        poses = assemble_poses(self.prepared, pose.x, jax.vmap(euler_map)(pose.p), pose.angles)
        return poses, joint_frames_at(self.prepared, poses)

    def least_norm_multipliers(
        self, t: Scalar, pose: Pose, lam: Float[Array, " m"]
    ) -> Float[Array, " m"]:
        r"""Return the multipliers of least norm with the same $G^T \lambda$."""
        if not self.prepared.system.has_loops:
            return lam
        poses, joint_frames = self._poses_and_frames(pose)
        return (
            lam
            - redundant_multipliers(
                self.prepared, t, poses, joint_frames, constraint_units(self.prepared)
            )
            @ lam
        )

    def redundant_projection(self, t: Scalar, pose: Pose) -> Float[Array, "m m"] | None:
        r"""Return the projection onto the multipliers with $G^T \lambda = 0$, `None` for trees."""
        if not self.prepared.system.has_loops:
            return None
        weights = jnp.ones(self.prepared.num_constraints, pose.x.dtype)
        return redundant_multipliers(self.prepared, t, *self._poses_and_frames(pose), weights)

    def increment_scales(self, x: Float[Array, "L 3"]) -> Float[Array, "L k"]:
        """Return the scales of pose increments of bodies at positions `x`, m and rad."""
        return self._select_rates(increment_scales(self.prepared, x))

    @property
    def constraint_scales(self) -> Float[Array, " m"]:
        """Scales of the constraints: the size of the system, m, or one radian."""
        return constraint_units(self.prepared)

    def momenta(self, w: Float[Array, "L k"]) -> Float[Array, "L k"]:
        r"""Return $M w$."""
        twists = self.twists(w)
        return self._select_rates(apply_mass(self.prepared, twists.linear, twists.angular))

    def evaluate(
        self, t: Scalar, pose: Pose, w: Float[Array, "L k"], lam: Float[Array, " m"]
    ) -> tuple[Float[Array, "L k"], Float[Array, " m"], Float[Array, "L k"]]:
        r"""Evaluate forces and constraints.

        **Returns:** applied and gyroscopic forces $f$; constraints $g(q, t)$; $G^T \lambda$.
        """
        prepared, (poses, joint_frames) = self.prepared, self._poses_and_frames(pose)
        forces = free_forces(
            prepared, t, kinematics_for_forces(prepared, poses, joint_frames, self.twists(w))
        )
        if prepared.system.has_loops or not prepared.system.joints:
            of_constraints = (lam @ self._gradient(t, joint_frames)).reshape(w.shape)
        else:
            gradients = joint_gradients(prepared, t, joint_frames)
            of_constraints = gradients.transpose(gradients.pad(lam))
        values = constraint_values(prepared, t, joint_frames)
        return self._select_rates(forces), values, of_constraints

    def joint_gradients(self, t: Scalar, pose: Pose) -> JointGradients:
        """Return the gradients of the constraints of a tree, joint by joint."""
        return joint_gradients(self.prepared, t, self._poses_and_frames(pose)[1])

    def _gradient(self, t: Scalar, joint_frames: JointFrames) -> Float[Array, "m Lk"]:
        rows = constraint_jacobian(self.prepared, t, joint_frames)
        return flatten_jacobian(rows[:, :, -self.prepared.system.rates_of_free :])

    def accelerations(self, t: Scalar, pose: Pose, w: Float[Array, "L k"]) -> Float[Array, "L k"]:
        r"""Return $\dot w$ of a consistent state."""
        poses_and_frames = self._poses_and_frames(pose)
        return self._select_rates(
            constrained_accelerations(self.prepared, t, *poses_and_frames, self.twists(w))
        )

    def constraint_rate(self, t: Scalar, pose: Pose, w: Float[Array, "L k"]) -> Float[Array, " m"]:
        r"""Return $G w + \partial g/\partial t$."""
        return constraint_rates(self.prepared, t, self._poses_and_frames(pose)[1], self.twists(w))

    def constraint_jacobian(self, t: Scalar, pose: Pose) -> Float[Array, "m Lk"]:
        r"""Return the Jacobian $G$ of the constraints in the twists of all bodies."""
        return self._gradient(t, self._poses_and_frames(pose)[1])

    def normal_twists(self, t: Scalar, pose: Pose, rate: Float[Array, " m"]) -> Float[Array, "L k"]:
        r"""Return the $w$ of least kinetic energy with $G w =$ `rate`."""
        prepared = self.prepared
        inertias = jax.vmap(inertia_tensor)(prepared.inertias)
        return self._select_rates(
            smallest_change(prepared, t, *self._poses_and_frames(pose), -rate, inertias)
        )

    def angle_rates(self, t: Scalar, pose: Pose, w: Float[Array, "L k"]) -> Float[Array, " A"]:
        """Return the rates of the unwrapped joint angles."""
        _, joint_frames = self._poses_and_frames(pose)
        return joint_angle_rates(
            self.prepared, joint_frames, self.twists(w), self.prepared.system.tracked_joints
        )

    def angles(self, pose: Pose) -> Float[Array, " A"]:
        """Return the joint angles of a pose with the revolutions of `pose.angles`."""
        return joint_angles(
            self.prepared, self._poses_and_frames(pose)[1], self.prepared.system.tracked_joints
        )

    def quaternion_virials(
        self, t: Scalar, pose: Pose, w: Float[Array, "L k"], lam: Float[Array, " m"]
    ) -> Float[Array, " L"]:
        r"""Return $p \cdot f_p$ of each body, J, with the force $f_p$ on its quaternion.

        Inertial forces are left out. The multiplier of the length of the quaternion balances this
        stretching force.
        """
        prepared = self.prepared
        poses, joint_frames = self._poses_and_frames(pose)
        applied = force_virials(
            prepared, t, kinematics_for_forces(prepared, poses, joint_frames, self.twists(w))
        )

        def work(R):
            rotated = eqx.tree_at(lambda poses: poses.rotations, poses, R)
            return lam @ constraint_values(prepared, t, joint_frames_at(prepared, rotated))

        # R of the quaternion (1 + e) p is (1 + 2 e) R.
        R = poses.rotations
        stretch = 2.0 * jnp.sum(jax.grad(work)(R) * R, axis=(1, 2))
        return 2.0 * jnp.trace(applied, axis1=1, axis2=2) - stretch[:-1]
