"""Conversion between the unknowns of a formulation and poses and twists of all bodies."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...annotations import Scalar
from ...formulations import Absolute, AbstractFormulation, NullSpace
from ...mechanics.dynamics.loads import apply_mass
from ...mechanics.dynamics.projections import project_twists
from ...mechanics.kinematics.poses import Twists, assemble_poses, joint_angles, joint_frames_at
from ...mechanics.stacked.joints import Poses
from ...mechanics.stacked.system import PreparedSystem
from ...rotations import Directors
from ...rotations.euler_map import euler_map
from ...rotations.guarded import safe_sqrt
from ...rotations.matrix import to_body, to_space
from ...rotations.quaternion import Quaternion
from ...rotations.so3 import multiply
from .increments import RotationIncrement
from .motion import renormalize

# Largest relative difference of kinetic energies up to which velocities are rescaled.
_LARGEST_ENERGY_CHANGE = 0.1


class Phase(eqx.Module):
    r"""Poses and twists of all bodies.

    **Attributes:** `positions`, m; `quaternions`, of unit length; `twists`, velocities (space
    components) and angular velocities (body components); `angles`, unwrapped angles of the joints
    whose revolutions are counted, rad; `rates`, of the directors, which may violate their
    constraints, if they are unknowns.
    """

    positions: Float[Array, "L 3"]
    quaternions: Float[Array, "L 4"]
    twists: Float[Array, "L 6"]
    angles: Float[Array, " A"]
    rates: Float[Array, "L 9"] | None = None

    def poses(self, prepared: PreparedSystem) -> Poses:
        """Return the poses of all bodies and of the ground."""
        rotations = jax.vmap(euler_map)(self.quaternions)
        return assemble_poses(prepared, self.positions, rotations, self.angles)


def decode_phase(model: AbstractFormulation, t: Scalar, y: Float[Array, " N"]) -> Phase:
    """Return poses and twists from the unknowns of a formulation."""
    x, a = model.layout.poses(y)
    _, _, twists = model.motion(t, y)
    quaternions, rates = a, None
    if isinstance(model.rotation, Directors):
        quaternions = jax.vmap(model.rotation.to_quaternion)(a)
        if isinstance(model, Absolute):
            rates = model.layout.twists(y)[1]
    joined = jnp.concatenate([twists.linear, twists.angular], axis=1)
    return Phase(x, quaternions, joined, model.layout.angles(y), rates)


def encode_phase(model: AbstractFormulation, t: Scalar, phase: Phase) -> Float[Array, " N"]:
    """Return the unknowns of a formulation from poses and twists.

    Generalised velocities are those of the nearest twists that the joints allow.
    """
    prepared, layout = model.prepared_system, model.layout
    a = phase.quaternions
    if isinstance(model.rotation, Directors):
        a = jax.vmap(model.rotation.from_quaternion)(a)
    poses = phase.poses(prepared)
    twists = split_twists(phase.twists)
    joint_frames = joint_frames_at(prepared, poses)
    if isinstance(model, NullSpace) and not prepared.is_free:
        allowed = project_twists(prepared, t, poses, joint_frames, twists)
        twists = (
            _rescale_to_energy(twists, allowed, prepared)
            if _may_rescale_velocities(prepared)
            else allowed
        )
    velocities = model.velocities_of(t, poses, joint_frames, a, twists)
    if phase.rates is not None:
        free = ~np.array(is_jointed(prepared))[:, None]
        tangent = jax.vmap(model.rotation.rate)(a, twists.angular)
        velocities = layout.join(twists.linear, jnp.where(free, phase.rates, tangent))
    angles = joint_angles(
        prepared, joint_frames_at(prepared, poses), prepared.system.tracked_joints
    )
    return layout.join_all(phase.positions, a, velocities, angles)


def _may_rescale_velocities(prepared: PreparedSystem) -> bool:
    """Return whether velocities can be scaled without violating constraints or momentum.

    This excludes prescribed motions and bodies free in space, whose momentum is conserved.
    """
    system = prepared.system
    driven = any(joint.is_driven for joint in system.joints)
    return not driven and None not in system.topology.joints


def _rescale_to_energy(twists: Twists, allowed: Twists, prepared: PreparedSystem) -> Twists:
    """Scale the twists that the joints allow to the kinetic energy of `twists`.

    Both energies differ by a quantity of fourth order in the step, by which the conserved energy
    would seem to oscillate. Twists with almost no energy are returned unchanged.
    """
    energy, target = (
        jnp.vdot(w, momenta(prepared, w))
        for w in (
            jnp.concatenate([pair.linear, pair.angular], axis=1) for pair in (allowed, twists)
        )
    )
    close = jnp.abs(target - energy) < _LARGEST_ENERGY_CHANGE * energy
    scale = jnp.sqrt(jnp.where(close, target, 1.0) / jnp.where(close, energy, 1.0))
    return Twists(scale * allowed.linear, scale * allowed.angular)


def rotate_quaternions(
    quaternions: Float[Array, "L 4"], increments: RotationIncrement
) -> Float[Array, "L 4"]:
    """Return the quaternions of all bodies at the end of a step, renormalised."""
    ends = jax.vmap(multiply)(
        quaternions, jax.vmap(lambda increment: increment.quaternion)(increments)
    )
    return jax.vmap(lambda p: renormalize(Quaternion(), p))(ends)


def midpoint_poses(prepared: PreparedSystem, start: Phase, end: Phase) -> Poses:
    """Return the poses in the middle of a step, at which forces are evaluated."""
    mean = 0.5 * (start.quaternions + end.quaternions)
    lengths = jnp.sqrt(jnp.sum(mean * mean, axis=1, keepdims=True))
    positions = 0.5 * (start.positions + end.positions)
    return Phase(positions, mean / lengths, start.twists, start.angles).poses(prepared)


def is_jointed(prepared: PreparedSystem) -> tuple[bool, ...]:
    """Return whether a joint with constraints is attached to each body (`Free` has none)."""
    groups = [group for group in prepared.groups if group.joint.num_constraints]
    jointed = {row for group in groups for row in (*group.parents, *group.children)}
    return tuple(row in jointed for row in range(prepared.num_bodies))


def pose_rates(model: AbstractFormulation, phase: Phase) -> Float[Array, "L n"]:
    """Return the rates of positions and rotation coordinates of all bodies."""
    a = phase.quaternions
    if isinstance(model.rotation, Directors):
        a = jax.vmap(model.rotation.from_quaternion)(a)
    a_dot = jax.vmap(model.rotation.rate)(a, phase.twists[:, 3:])
    return jnp.concatenate([phase.twists[:, :3], a_dot], axis=1)


def split_twists(w: Float[Array, "L 6"]) -> Twists:
    """Split twists into velocities and angular velocities."""
    return Twists(w[:, :3], w[:, 3:])


def momenta(prepared: PreparedSystem, w: Float[Array, "L 6"]) -> Float[Array, "L 6"]:
    """Return the momenta of all bodies.

    Angular momenta are about the centres of mass, in body components.
    """
    return apply_mass(prepared, w[:, :3], w[:, 3:])


def change_frame(
    vectors: Float[Array, "L 3"], source: Float[Array, "L 3 3"], target: Float[Array, "L 3 3"]
) -> Float[Array, "L 3"]:
    """Transform components from the `source` to the `target` frames, both rotation matrices."""
    return jax.vmap(lambda v, R, Q: to_body(Q, to_space(R, v)))(vectors, source, target)


def increment_scales(
    prepared: PreparedSystem, positions: Float[Array, "L 3"]
) -> Float[Array, "L 6"]:
    """Return the scales of displacements, m, and of rotations, rad, of all bodies.

    They make decisions independent of units. The scale of a rotation is one radian; the scale of a
    displacement is the distance of the body from the origin plus the size of its system. The
    round-off of a pose is about `eps` times these scales.
    """
    distances = safe_sqrt(jnp.sum(positions * positions, axis=1))
    lengths = (distances + prepared.lengths)[:, None]
    return jnp.concatenate([jnp.repeat(lengths, 3, axis=1), jnp.ones_like(positions)], axis=1)
