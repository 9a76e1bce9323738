"""Poses and twists of all bodies, from the unknowns of a formulation and back."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ....formulations import AbstractFormulation, NullSpace
from ....rotations import Directors
from ....rotations.euler_map import euler_map
from ....rotations.so3 import multiply, normalize
from ....system.attachment import Poses
from ....system.constraints import project_twists
from ....system.jointed import JointedMechanics, Twists

# Twists are given the energy of others if it differs by less than this part of it.
_CLOSE = 0.1


class Phase(eqx.Module):
    r"""Positions $x$ (L, 3), unit quaternions (L, 4), velocities and angular velocities (body
    components) of all bodies, (L, 6), and angles of joints whose turns are counted."""

    positions: Float[Array, "L 3"]
    quaternions: Float[Array, "L 4"]
    twists: Float[Array, "L 6"]
    angles: Float[Array, " A"]

    def poses(self, mechanics: JointedMechanics) -> Poses:
        """Poses with the ground, as joints see them."""
        rotations = jax.vmap(euler_map)(self.quaternions)
        return mechanics.poses(self.positions, rotations, self.angles)


def phase_of(model: AbstractFormulation, t: Any, y: Float[Array, " N"]) -> Phase:
    """What the unknowns say."""
    jointed: Any = model.jointed
    x, a = jointed.layout.poses(y)
    _, _, twists = jointed.motion(t, y)
    quaternions = a
    if isinstance(model.rotation, Directors):
        quaternions = jax.vmap(model.rotation.to_quaternion)(a)
    both = jnp.concatenate([twists.linear, twists.angular], axis=1)
    return Phase(x, quaternions, both, jointed.layout.angles(y))


def unknowns_of(model: AbstractFormulation, t: Any, phase: Phase) -> Float[Array, " N"]:
    """The unknowns of a phase; minimal velocities are those next to its twists."""
    jointed: Any = model.jointed
    mechanics, layout = jointed.mechanics, jointed.layout
    a = phase.quaternions
    if isinstance(model.rotation, Directors):
        a = jax.vmap(model.rotation.from_quaternion)(a)
    poses = phase.poses(mechanics)
    twists = as_twists(phase.twists)
    places = mechanics.place(poses)
    if isinstance(model, NullSpace):
        allowed = project_twists(mechanics, t, poses, places, twists)
        twists = _with_energy_of(twists, allowed, mechanics) if _is_held(mechanics) else allowed
    velocities = jointed.velocities_of(t, poses, places, a, twists)
    angles = mechanics.angles(poses) if phase.angles.size else phase.angles
    return layout.join_all(phase.positions, a, velocities, angles)


def _is_held(mechanics: JointedMechanics) -> bool:
    """Whether the velocities that the joints allow are any multiple of themselves, without loss.

    That is not so for prescribed motions, nor for bodies free in space, whose momentum counts.
    """
    system = mechanics.system
    driven = any(joint.is_driven for joint in system.joints)
    return not driven and None not in system.topology.joints


def _with_energy_of(twists: Twists, allowed: Twists, mechanics: JointedMechanics) -> Twists:
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


def turned(
    quaternions: Float[Array, "L 4"], half: Float[Array, "L 3"], real: Float[Array, " L"]
) -> Float[Array, "L 4"]:
    """Quaternions after rotations about body axes, of real part `real` and vector part `half`.

    They are normalised, which removes round-off and whatever common factor the parts have.
    """
    change = jnp.concatenate([real[:, None], half], axis=1)
    return jax.vmap(lambda p, d: normalize(multiply(p, d)))(quaternions, change)


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


def momenta(mechanics: JointedMechanics, w: Float[Array, "L 6"]) -> Float[Array, "L 6"]:
    """Momenta of twists, angular ones about the centres of mass in body components."""
    return mechanics.momenta(w[:, :3], w[:, 3:])
