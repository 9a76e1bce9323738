"""Applied forces in a step."""

from jaxtyping import Array, Float

from ...annotations import Scalar
from ...forces.base import Kinematics
from ...mechanics.kinematics.poses import joint_frames_at, kinematics_for_forces
from ...mechanics.loads import applied_wrenches
from ...mechanics.stacked.joints import Poses
from ...mechanics.stacked.system import PreparedSystem
from .discrete_gradient import energy_correction
from .phase import split_twists


def wrenches_in_pose(
    prepared: PreparedSystem, t: Scalar, poses: Poses, twists: Float[Array, "L 6"]
) -> Float[Array, "L 6"]:
    """Return the applied wrenches, forces in space and moments in body components."""
    return applied_wrenches(prepared, t, _kinematics(prepared, poses, twists))


def conserving_wrenches(
    prepared: PreparedSystem,
    t: Scalar,
    first: Poses,
    middle: Poses,
    last: Poses,
    change: Float[Array, "L 6"],
    h: Scalar,
    chords: Float[Array, " L"],
) -> Float[Array, "L 6"]:
    r"""Return the wrenches in the middle of a step.

    The conservative part does exactly the work $V_0 - V_1$.

    **Arguments:** `prepared`; `t`, the middle of the step, s; `first`, `middle`, `last`, poses at
    its start, middle and end; `change`, displacements and rotation vectors (body axes of the
    middle) of the step, (L, 6); `h`, its length, s; `chords`, of the rotations (see
    `RotationIncrement`), (L,).
    **Returns:** forces in space and moments in body components of the middle, (L, 6).
    """
    poses = [_kinematics(prepared, p, change / h) for p in (first, middle, last)]
    total = applied_wrenches(prepared, t, poses[1])
    for group in prepared.forces:
        if not group.is_linear:
            total = total + energy_correction(prepared, group, t, h, poses, chords)
    return total


def _kinematics(prepared: PreparedSystem, poses: Poses, twists: Float[Array, "L 6"]) -> Kinematics:
    return kinematics_for_forces(
        prepared, poses, joint_frames_at(prepared, poses), split_twists(twists)
    )
