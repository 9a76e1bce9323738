"""Applied forces of a step."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...forces.base import Kinematics
from ...system.attachment import Poses
from ...system.force_groups import group_forces
from ...system.mechanics import SystemMechanics
from .discrete_gradient import correction
from .phase import as_twists


def applied(mechanics: SystemMechanics, t, poses: Poses, twists) -> Float[Array, "L 6"]:
    """Applied wrenches: forces in space, moments in body components."""
    return mechanics.applied(t, _kinematics(mechanics, poses, twists))


def conserving_wrenches(
    mechanics: SystemMechanics,
    t,
    first: Poses,
    middle: Poses,
    last: Poses,
    change,
    h,
    angles,
    chords,
) -> Float[Array, "L 6"]:
    r"""Wrenches in the middle of a step whose conservative part does the work $-(V_1 - V_0)$.

    **Arguments:** poses at start, middle and end; `change`, displacements and rotations (body axes
    of the middle) of the step, (L, 6); `angles` of joints at the start, which tell the turns of
    those in the step; `chords` of the rotations (see `Increment`), (L,).
    """
    twists = change / h
    start, half_way, end = (_kinematics(mechanics, p, twists) for p in (first, middle, last))
    system = mechanics.system

    def kinematics_of(positions, rotations):
        poses = mechanics.poses(jnp.stack(positions), jnp.stack(rotations), angles)
        return _kinematics(mechanics, poses, twists)

    total = mechanics.applied(t, half_way)
    nonlinear = [force for force in system.all_forces if not force.is_linear]
    # The energy of those of joints depends on poses through what joints make of them.
    of_joints = [force for force in nonlinear if force.joint_names()]
    of_bodies = [force for force in nonlinear if not force.joint_names()]
    groups, others = group_forces(of_bodies, system.bodies, system.joints)

    def together(force, bodies, start, half_way, end, chords):
        def seen(positions, rotations):
            return Kinematics(
                positions, rotations, half_way.velocities, half_way.angular_velocities
            )

        return correction(bodies, (), force, t, h, seen, start, half_way, end, chords)

    for group in groups:
        total = total + group.summed(together, system.bodies, start, half_way, end, chords)
    for force in [*others, *of_joints]:
        more = correction(
            system.bodies, system.joints, force, t, h, kinematics_of, start, half_way, end,
            jnp.unstack(chords),
        )  # fmt: skip
        total = total + mechanics.stacked(more)
    return total


def _kinematics(mechanics: SystemMechanics, poses: Poses, twists) -> Kinematics:
    return mechanics.kinematics(poses, mechanics.place(poses), as_twists(twists))
