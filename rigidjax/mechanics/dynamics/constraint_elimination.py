r"""Accelerations of trees from the reactions of their joints, $G M^{-1} G^T\lambda = c$.

Constraints of the joints of trees are independent. A dense matrix is the fastest for few of them;
many are eliminated joint by joint, at linear cost.
"""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...small_arrays import divide_by_invariant, short_sum
from ..kinematics.bias_accelerations import joint_bias
from ..kinematics.poses import Motion, Twists, kinematics_for_forces
from ..kinematics.trees import body_twists, generalised_velocities
from ..stacked.joints import JointFrames, Poses
from ..stacked.system import PreparedSystem
from .block_elimination import Factors
from .joint_gradients import JointGradients
from .loads import free_forces
from .mass_matrix import solve


def flatten_jacobian(jacobian: Float[Array, "m L k"]) -> Float[Array, "m Lk"]:
    """Return gradients on the twists of all bodies as one matrix."""
    m, L, k = jacobian.shape
    return jacobian.reshape(m, L * k)


class AbstractConstraints(eqx.Module):
    r"""Constraints of joints in a pose, ready to solve $G M^{-1} G^T \lambda = c$."""

    masses: eqx.AbstractVar[Float[Array, " L"]]
    inverses: eqx.AbstractVar[Float[Array, "L 3 3"]]  # of the inertias

    @abc.abstractmethod
    def solve(self, right: Float[Array, " m"]) -> Float[Array, " m"]:
        r"""Return $\lambda$ of least norm."""

    @abc.abstractmethod
    def apply(self, w: Float[Array, "L 6"]) -> Float[Array, " m"]:
        r"""Return $G\,w$."""

    @abc.abstractmethod
    def transpose(self, lam: Float[Array, " m"]) -> Float[Array, "L 6"]:
        r"""Return $G^T \lambda$."""

    def inverse_mass(self, wrenches: Float[Array, "L 6"]) -> Float[Array, "L 6"]:
        """Multiply wrenches by $M^{-1}$."""
        turn = short_sum(self.inverses, wrenches[:, None, 3:], axis=2)
        return jnp.concatenate(
            [divide_by_invariant(wrenches[:, :3], self.masses[:, None]), turn], axis=1
        )

    def correction(self, residual: Float[Array, " m"]) -> Float[Array, "L 6"]:
        """Return the change of the twists of least kinetic energy that removes the residual."""
        return -self.inverse_mass(self.transpose(self.solve(residual)))


class EliminatedConstraints(AbstractConstraints):
    """Constraints of a tree, eliminated joint by joint at linear cost."""

    gradients: JointGradients
    factors: Factors
    masses: Float[Array, " L"]
    inverses: Float[Array, "L 3 3"]

    def solve(self, right: Float[Array, " m"]):
        return self.gradients.unpad(self.factors.solve(self.gradients.pad(right)))

    def apply(self, w: Float[Array, "L 6"]):
        return self.gradients.unpad(self.gradients.apply(w))

    def transpose(self, lam: Float[Array, " m"]):
        return self.gradients.transpose(self.gradients.pad(lam))


class DenseConstraints(AbstractConstraints):
    """Constraints of a small tree, with a dense matrix."""

    G: Float[Array, "m L 6"]
    S: Float[Array, "m m"]
    masses: Float[Array, " L"]
    inverses: Float[Array, "L 3 3"]

    def solve(self, right: Float[Array, " m"]):
        return solve(self.S, right)

    def apply(self, w: Float[Array, "L 6"]):
        return flatten_jacobian(self.G) @ w.ravel()

    def transpose(self, lam: Float[Array, " m"]):
        return (lam @ flatten_jacobian(self.G)).reshape(-1, 6)


def constraint_elimination_accelerations(
    prepared: PreparedSystem,
    t: Float[Array, ""],
    poses: Poses,
    joint_frames: JointFrames,
    nu: Float[Array, " f"],
    joints: AbstractConstraints,
) -> Motion:
    r"""Compute the accelerations of a large tree at linear cost.

    The reactions follow from $G M^{-1} G^T \lambda = G M^{-1} f + \gamma$, the accelerations of
    the bodies from the reactions, and the accelerations of each joint from those of its bodies.

    **Arguments:** `joints`, the constraints of the tree joints.
    """
    twists = body_twists(prepared, t, poses, joint_frames, nu)
    kinematics = kinematics_for_forces(prepared, poses, joint_frames, twists)
    free = joints.inverse_mass(free_forces(prepared, t, kinematics))
    bias = joint_bias(prepared, t, poses, nu, twists)
    gamma = [
        group.map(
            lambda joint, r, b: short_sum(joint.constraint_jacobian(r, t), b, axis=1),
            frames.relative,
            bias[g],
        )
        for g, (group, frames) in enumerate(zip(prepared.groups, joint_frames, strict=True))
    ]
    gamma = jnp.concatenate([part.ravel() for part in gamma])
    w = free + joints.correction(joints.apply(free) + gamma)
    return Motion(
        nu,
        twists,
        generalised_velocities(prepared, t, joint_frames, Twists(w[:, :3], w[:, 3:]), bias),
    )
