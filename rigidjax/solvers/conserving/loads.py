"""Applied forces of a step."""

from jaxtyping import Array, Float

from ...forces.base import Kinematics
from ...mechanics.attachment import Poses
from ...mechanics.mechanics import SystemMechanics
from .discrete_gradient import correction
from .phase import as_twists


def applied(mechanics: SystemMechanics, t, poses: Poses, twists) -> Float[Array, "L 6"]:
    """Applied wrenches: forces in space, moments in body components."""
    return mechanics.applied(t, _kinematics(mechanics, poses, twists))


def conserving_wrenches(
    mechanics: SystemMechanics, t, first: Poses, middle: Poses, last: Poses, change, h, chords
) -> Float[Array, "L 6"]:
    r"""Wrenches in the middle of a step whose conservative part does the work $-(V_1 - V_0)$.

    **Arguments:** poses at start, middle and end; `change`, displacements and rotations (body axes
    of the middle) of the step, (L, 6); `chords` of the rotations (see `RotationIncrement`), (L,).
    """
    poses = [_kinematics(mechanics, p, change / h) for p in (first, middle, last)]
    total = mechanics.applied(t, poses[1])
    for group in mechanics.forces:
        if not group.is_linear:
            total = total + correction(mechanics, group, t, h, poses, chords)
    return total


def _kinematics(mechanics: SystemMechanics, poses: Poses, twists) -> Kinematics:
    return mechanics.kinematics(poses, mechanics.place(poses), as_twists(twists))
