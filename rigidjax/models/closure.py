"""Closed configurations of mechanisms with loops."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from .description import IDENTITY, Description, JointLimits, JointRecord
from .loop_kinematics import LoopKinematics

# Axes up to this angle, rad, from parallel differ by the rounding of decimal numbers.
_PARALLEL = 1e-5
# Singular values below this part of the largest are zero.
_RANK = 1e-13


def close_loops(description: Description) -> Description:
    """Return the description in the closed configuration nearest to that of the file.

    The coordinates of the trees change, with the least sum of squares (m and rad), until both sides
    of every joint with a `gap`, and the joints of every coupling with an `offset`, fit. Roots of
    trees and joints that `stays` marks do not move. Placements, points, axes, `zero`, limits, rests
    of springs and constants of actuators are those of the new reference configuration; the report
    has a line for each joint that moves.

    **Errors:** `ValueError` with joint and gap if no closed configuration is found.
    """
    if not any(j.closes_loop and j.gap is not None for j in description.joints) and not any(
        coupling.offset for coupling in description.couplings
    ):
        return description
    trees = LoopKinematics(description)
    q = np.zeros(trees.size)
    if trees.violation(q) > trees.tolerance:
        q = trees.solve()
    trees.check(q)
    return _move_trees(description, trees, q)


def align_axes(description: Description) -> Description:
    """Return the description with the nearly parallel axes of loops made parallel where it matters.

    Four parallel hinges form a loop that moves; if rounded numbers of a file turn one of them by
    1e-7 rad, the loop is locked. Axes of hinges and sliders of a loop that are parallel up to 1e-5
    rad become parallel to the first of them if the constraints of the loop lose rank thereby. The
    report has a line for each.
    """
    for closing in [joint for joint in description.joints if joint.closes_loop]:
        members = {joint.name for joint in _loop_of(description, closing)}
        axes = _parallel_axes([joint for joint in description.joints if joint.name in members])
        aligned = dataclasses.replace(
            description,
            joints=[
                dataclasses.replace(joint, axes=(axes.get(joint.name, joint.axes[0]),))
                if len(joint.axes) == 1
                else joint
                for joint in description.joints
            ],
        )
        if axes and _rank(aligned, closing.name) < _rank(description, closing.name):
            for before, after in zip(description.joints, aligned.joints, strict=True):
                if before.name in axes:
                    angle = np.linalg.norm(np.cross(before.axes[0], after.axes[0]))
                    description.report.add(
                        "translated", f"joint {before.name!r}",
                        f"axis turned by {angle:.3g} rad, to be parallel to others of the loop at "
                        f"{closing.name!r}, which could not move otherwise",
                        before.line,
                    )  # fmt: skip
            description = aligned
    return description


def refuse_locked_loops(description: Description) -> Description:
    """Refuse loops at a dead point, such as a hinge, a hinge and a slider across their line.

    Such a loop has one velocity that its joints allow, but no motion: moved by x, it opens by the
    order of x^2. The configuration is the only one nearby, whichever of the joints closes the loop,
    and the reactions are not determined in it. The closing joint is left out if `"dead point"` is
    ignored.
    """
    names = set[str]()
    for joint in description.joints:
        opening = _opening(description, joint) if joint.closes_loop else 0.0
        if opening <= 1e-3:
            continue
        names.add(joint.name)
        others = ", ".join(repr(one.name) for one in _loop_of(description, joint)[:-1])
        description.report.refuse(
            "dead point", f"joint {joint.name!r}",
            f"closes a loop at a dead point: with {others} it allows one velocity but no motion, "
            f"as the loop opens by {opening:.3g} times the square of a displacement. Its links "
            "cannot move against each other, whichever joint closes the loop: make the other "
            "joints fixed and remove this one. Left out, the loop is open",
            joint.line,
        )  # fmt: skip
    kept = [joint for joint in description.joints if joint.name not in names]
    return dataclasses.replace(description, joints=kept)


def _opening(description: Description, closing: JointRecord) -> float:
    """Return the violation of one loop per square of its displacement (m, rad).

    The displacement is along the only velocity; the result is zero for a loop with none or several.
    """
    trees = LoopKinematics(
        dataclasses.replace(description, joints=_loop_of(description, closing), couplings=[])
    )
    J = np.concatenate(trees.constraints(np.zeros(trees.size))[1])
    _, values, directions = np.linalg.svd(J)
    rank = int(np.sum(values > 1e-6 * values.max(initial=0.0)))
    if trees.size - rank != 1:
        return 0.0
    direction, step = directions[-1], 1e-2
    q = step * direction
    for _ in range(5):
        r, J = (np.concatenate(parts) for parts in trees.constraints(q))
        # Corrections normal to the velocity only: along it, the loop would close at its origin.
        rows, right = np.concatenate([J, direction[None]]), np.append(r, 0.0)
        q = q - np.linalg.lstsq(rows, right, rcond=1e-6)[0]
    return trees.violation(q) / step**2


def _loop_of(description: Description, closing: JointRecord) -> list[JointRecord]:
    """Return the joints of the trees between the links of a closing joint, and itself."""
    above = {joint.child: joint for joint in description.joints if not joint.closes_loop}

    def path(link: str) -> set[str]:
        names = set()
        while link in above:
            names.add(above[link].name)
            link = above[link].parent
        return names

    names = path(closing.parent) ^ path(closing.child)
    return [joint for joint in description.joints if joint.name in names] + [closing]


def _parallel_axes(joints: list[JointRecord]) -> Mapping[str, np.ndarray]:
    """Return new axes for the joints whose axes are nearly parallel to that of an earlier one."""
    leaders: list[np.ndarray] = []
    axes: dict[str, np.ndarray] = {}
    for joint in joints:
        if len(joint.axes) != 1:
            continue
        (axis,) = joint.axes
        leader = next(
            (one for one in leaders if np.linalg.norm(np.cross(one, axis)) <= _PARALLEL), None
        )
        if leader is None:
            leaders.append(axis)
        else:
            parallel = np.copysign(1.0, leader @ axis) * leader
            if not np.array_equal(parallel, axis):
                axes[joint.name] = parallel
    return axes


def _rank(description: Description, closing: str) -> int:
    """Return the rank of the constraints of a closing joint."""
    trees = LoopKinematics(dataclasses.replace(description, couplings=[]))
    row = next(k for k, joint in enumerate(trees.loops) if joint.name == closing)
    values = np.linalg.svd(trees.constraints(np.zeros(trees.size))[1][row], compute_uv=False)
    return int(np.sum(values > _RANK * values.max(initial=0.0)))


def _move_trees(description: Description, trees: LoopKinematics, q: np.ndarray) -> Description:
    """Return the description with its trees at the coordinates `q`."""
    at, _ = trees.displacements(q)
    report = description.report
    joints, moves = [], dict[str, float]()
    for joint in description.joints:
        parent, child = at[joint.parent], at[joint.child]
        axes = [parent.rotation @ axis for axis in joint.axes]
        if joint.kind == "universal":
            side = IDENTITY if joint.gap is None or not joint.closes_loop else joint.gap
            axes[1] = child.rotation @ side.rotation @ joint.axes[1]
        columns = trees.columns.get(joint.name, slice(0, 0))
        own = q[columns]
        moved = 0.0
        if own.any():
            text = ", ".join(f"{value:.6g}" for value in own)
            report.add(
                "translated", f"joint {joint.name!r}",
                f"moved by {text} (m or rad) to close the loops, in the reference configuration",
                joint.line,
            )  # fmt: skip
            if len(own) == 1:
                moves[joint.name] = moved = float(own[0])
            else:
                report.add(
                    "warning", f"joint {joint.name!r}",
                    "its coordinates count from the closed configuration, not from the file's",
                    joint.line,
                )  # fmt: skip
        limits = joint.limits
        if limits is not None and limits.position is not None:
            low, high = limits.position
            limits = JointLimits((low - moved, high - moved), limits.rate, limits.effort)
        joints.append(
            dataclasses.replace(
                joint,
                point=parent.of_point(joint.point),
                axes=tuple(axes),
                gap=None,
                zero=joint.zero + moved,
                rest=joint.rest - moved,
                limits=limits,
            )
        )
    actuators = []
    for one in description.actuators:
        constant, by_length, by_rate = one.bias
        constant += by_length * one.gear * moves.get(one.joint, 0.0)
        actuators.append(dataclasses.replace(one, bias=(constant, by_length, by_rate)))
    return dataclasses.replace(
        description,
        links=[
            dataclasses.replace(link, placement=at[link.name].then(link.placement))
            for link in description.links
        ],
        joints=joints,
        couplings=[one.about(moves.get(one.by, 0.0)) for one in description.couplings],
        actuators=actuators,
    )
