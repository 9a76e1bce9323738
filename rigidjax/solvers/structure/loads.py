"""Applied forces of a step."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...forces.base import Kinematics
from ...system.attachment import Poses
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
    zero = jnp.zeros(3, total.dtype)
    for force in system.all_forces:
        if not force.is_linear:
            more = correction(
                system.bodies, system.joints, force, t, h, kinematics_of, start, half_way, end,
                jnp.unstack(chords),
            )  # fmt: skip
            total = total + jnp.stack(
                [
                    jnp.concatenate([zero if f is None else f, zero if m is None else m])
                    for f, m in more
                ]
            )
    return total


def _kinematics(mechanics: SystemMechanics, poses: Poses, twists) -> Kinematics:
    return mechanics.kinematics(poses, mechanics.place(poses), as_twists(twists))
