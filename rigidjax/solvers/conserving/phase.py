"""Poses and twists of all bodies, from the unknowns of a formulation and back."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...annotations import Scalar
from ...formulations import Absolute, AbstractFormulation, NullSpace
from ...mechanics.attachment import Poses
from ...mechanics.constraints import project_twists
from ...mechanics.mechanics import SystemMechanics
from ...mechanics.twists import Twists
from ...rotations import Directors
from ...rotations.euler_map import euler_map
from ...rotations.matrix import to_body, to_space
from ...rotations.quaternion import Quaternion
from ...rotations.so3 import multiply
from .increments import RotationIncrement
from .motion import polished

# Twists are given the energy of others if it differs by less than this part of it.
_CLOSE = 0.1


class Phase(eqx.Module):
    r"""Positions $x$ (L, 3), unit quaternions (L, 4), velocities and angular velocities (body
    components) of all bodies, (L, 6), and angles of joints whose turns are counted; `rates` of the
    directors, (L, 9), which their constraints need not allow, where those are unknowns."""

    positions: Float[Array, "L 3"]
    quaternions: Float[Array, "L 4"]
    twists: Float[Array, "L 6"]
    angles: Float[Array, " A"]
    rates: Float[Array, "L 9"] | None = None

    def poses(self, mechanics: SystemMechanics) -> Poses:
        """Poses with the ground, as joints see them."""
        rotations = jax.vmap(euler_map)(self.quaternions)
        return mechanics.poses(self.positions, rotations, self.angles)


def phase_of(model: AbstractFormulation, t: Scalar, y: Float[Array, " N"]) -> Phase:
    """What the unknowns say."""
    x, a = model.layout.poses(y)
    _, _, twists = model.motion(t, y)
    quaternions, rates = a, None
    if isinstance(model.rotation, Directors):
        quaternions = jax.vmap(model.rotation.to_quaternion)(a)
        if isinstance(model, Absolute):
            rates = model.layout.twists(y)[1]
    both = jnp.concatenate([twists.linear, twists.angular], axis=1)
    return Phase(x, quaternions, both, model.layout.angles(y), rates)


def unknowns_of(model: AbstractFormulation, t: Scalar, phase: Phase) -> Float[Array, " N"]:
    """The unknowns of a phase; minimal velocities are those next to its twists."""
    mechanics, layout = model.mechanics, model.layout
    a = phase.quaternions
    if isinstance(model.rotation, Directors):
        a = jax.vmap(model.rotation.from_quaternion)(a)
    poses = phase.poses(mechanics)
    twists = as_twists(phase.twists)
    places = mechanics.place(poses)
    if isinstance(model, NullSpace) and not mechanics.is_free:
        allowed = project_twists(mechanics, t, poses, places, twists)
        twists = (
            _with_energy_of(twists, allowed, mechanics) if _keeps_energy(mechanics) else allowed
        )
    velocities = model.velocities_of(t, poses, places, a, twists)
    if phase.rates is not None:
        free = ~np.array(is_held(mechanics))[:, None]
        tangent = jax.vmap(model.rotation.rate)(a, twists.angular)
        velocities = layout.join(twists.linear, jnp.where(free, phase.rates, tangent))
    angles = mechanics.angles(poses, mechanics.tracked)
    return layout.join_all(phase.positions, a, velocities, angles)


def _keeps_energy(mechanics: SystemMechanics) -> bool:
    """Whether the velocities that the joints allow are any multiple of themselves, without loss.

    That is not so for prescribed motions, nor for bodies free in space, whose momentum counts.
    """
    system = mechanics.system
    driven = any(joint.is_driven for joint in system.joints)
    return not driven and None not in system.topology.joints


def _with_energy_of(twists: Twists, allowed: Twists, mechanics: SystemMechanics) -> Twists:
    """The allowed twists, made longer to have the kinetic energy of others.

    The energy of both differs by an amount of fourth order in the step, which would show as a swing
    of an energy that the scheme keeps. Left as they are where they have next to no energy.
    """
    ours, theirs = (
        jnp.vdot(w, momenta(mechanics, w))
        for w in (
            jnp.concatenate([pair.linear, pair.angular], axis=1) for pair in (allowed, twists)
        )
    )
    close = jnp.abs(theirs - ours) < _CLOSE * ours
    scale = jnp.sqrt(jnp.where(close, theirs, 1.0) / jnp.where(close, ours, 1.0))
    return Twists(scale * allowed.linear, scale * allowed.angular)


def advanced(
    quaternions: Float[Array, "L 4"], increments: RotationIncrement
) -> Float[Array, "L 4"]:
    """Quaternions of all bodies at the end of a step; without what round-off adds to their length,
    see `polished`."""
    ends = jax.vmap(multiply)(quaternions, jax.vmap(lambda one: one.whole)(increments))
    return jax.vmap(lambda p: polished(Quaternion(), p))(ends)


def middle_of(mechanics: SystemMechanics, start: Phase, end: Phase) -> Poses:
    """The poses half-way, where forces act."""
    mean = 0.5 * (start.quaternions + end.quaternions)
    lengths = jnp.sqrt(jnp.sum(mean * mean, axis=1, keepdims=True))
    positions = 0.5 * (start.positions + end.positions)
    return Phase(positions, mean / lengths, start.twists, start.angles).poses(mechanics)


def is_held(mechanics: SystemMechanics) -> tuple[bool, ...]:
    """Whether each body is tied to another or to the ground by a joint, which `Free` does not."""
    groups = [group for group in mechanics.groups if group.joint.num_constraints]
    held = {row for group in groups for row in (*group.parents, *group.children)}
    return tuple(row in held for row in range(mechanics.num_bodies))


def pose_rates(model: AbstractFormulation, phase: Phase) -> Float[Array, "L n"]:
    """Rates of positions and rotation coordinates."""
    a = phase.quaternions
    if isinstance(model.rotation, Directors):
        a = jax.vmap(model.rotation.from_quaternion)(a)
    a_dot = jax.vmap(model.rotation.rate)(a, phase.twists[:, 3:])
    return jnp.concatenate([phase.twists[:, :3], a_dot], axis=1)


def as_twists(w: Float[Array, "L 6"]) -> Twists:
    """Velocities and angular velocities apart."""
    return Twists(w[:, :3], w[:, 3:])


def momenta(mechanics: SystemMechanics, w: Float[Array, "L 6"]) -> Float[Array, "L 6"]:
    """Momenta of twists, angular ones about the centres of mass in body components."""
    return mechanics.momenta(w[:, :3], w[:, 3:])


def carried(
    vectors: Float[Array, "L 3"], here: Float[Array, "L 3 3"], there: Float[Array, "L 3 3"]
) -> Float[Array, "L 3"]:
    """Body components in one orientation as those in another."""
    return jax.vmap(lambda v, R, Q: to_body(Q, to_space(R, v)))(vectors, here, there)
