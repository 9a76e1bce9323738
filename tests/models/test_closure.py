"""Closing of loops that are open in a file."""

import numpy as np
import pytest
from scipy.optimize import minimize

from rigidjax.models.closure import close_loops
from rigidjax.models.description import (
    IDENTITY,
    CouplingData,
    Description,
    JointLimits,
    JointRecord,
    Link,
    Placement,
    about_axis,
    from_roll_pitch_yaw,
)
from rigidjax.models.report import Report

Z = np.array([0.0, 0.0, 1.0])
KINDS = (
    "fixed", "revolute", "prismatic", "cylindrical", "screw", "universal", "planar", "spherical",
)  # fmt: skip


def four_bar(gap):
    """A planar four-bar linkage whose last hinge has a gap."""
    points = np.array([[0, 0, 0], [0, 1.0, 0], [2.0, 1.5, 0], [2.0, 0, 0]])
    ends = [("ground", "crank"), ("crank", "coupler"), ("coupler", "rocker"), ("ground", "rocker")]
    joints = [
        JointRecord("abcd"[k], "revolute", *ends[k], points[k], (Z,), line=k + 1) for k in range(4)
    ]
    joints[-1].closes_loop, joints[-1].gap = True, gap
    joints[0].limits, joints[0].zero = JointLimits((-1.0, 1.0)), 0.25
    joints[1].stiffness, joints[1].rest = 2.0, 0.1
    names = ("crank", "coupler", "rocker")
    links = [Link(name, Placement(points[k], np.eye(3))) for k, name in enumerate(names)]
    return Description("four-bar", Report("bar.xml"), links, joints)


def angles_of(description):
    """Return the angles by which the three tree hinges of the linkage moved."""
    turned = [np.arctan2(*link.placement.rotation[1::-1, 0]) for link in description.links]
    return np.diff([0.0, *turned])


def test_least_change_closes_a_planar_linkage():
    gap = Placement(np.array([0.05, -0.08, 0.0]), np.eye(3))
    file = four_bar(gap)
    closed = close_loops(file)
    q = angles_of(closed)
    points = [joint.point[:2] for joint in file.joints]
    bars = [points[1], points[2] - points[1], points[3] + gap.position[:2] - points[2]]

    def end(q):
        at = np.zeros(2)
        for bar, angle in zip(bars, np.cumsum(q), strict=True):
            c, s = np.cos(angle), np.sin(angle)
            at = at + np.array([[c, -s], [s, c]]) @ bar
        return at - points[3]

    assert np.abs(end(q)).max() < 1e-14
    best = minimize(
        lambda q: q @ q, np.zeros(3), jac=lambda q: 2 * q, method="SLSQP",
        constraints={"type": "eq", "fun": end}, options={"ftol": 1e-14, "maxiter": 200},
    )  # fmt: skip
    assert np.abs(q - best.x).max() < 1e-6
    # The tree joints have the coordinate `zero` now, and limits and rests that belong to it.
    assert closed.joints[0].zero == pytest.approx(0.25 + q[0], abs=1e-14)
    assert closed.joints[0].limits.position == pytest.approx((-1 - q[0], 1 - q[0]), abs=1e-14)
    assert closed.joints[1].rest == pytest.approx(0.1 - q[1], abs=1e-14)
    assert closed.joints[3].gap is None
    assert f"moved by {q[2]:.6g}" in str(closed.report)
    # The given description is as before.
    assert file.joints[0].zero == 0.25
    assert np.array_equal(file.links[1].placement.position, [0, 1, 0])


def test_closed_loops_stay_as_they_are():
    file = four_bar(None)
    assert close_loops(file) is file
    rounded = close_loops(four_bar(Placement(np.array([1e-16, 0, 0]), np.eye(3))))
    assert np.array_equal(rounded.links[0].placement.rotation, np.eye(3))
    assert rounded.joints[3].gap is None


def test_couplings_with_an_offset_and_a_loop():
    file = four_bar(Placement(np.array([0.02, 0.03, 0.0]), np.eye(3)))
    file.couplings.append(CouplingData("b", "a", -2.0, offset=0.04))
    closed = close_loops(file)
    q = angles_of(closed)
    assert q[1] == pytest.approx(-2.0 * q[0] + 0.04, abs=1e-14)
    assert closed.couplings[0].offset == 0


def random_placement(rng):
    return from_roll_pitch_yaw(rng.standard_normal(3), rng.standard_normal(3))


def random_loop(kind, rng):
    """A loop of joints of all kinds, the last of `kind` with a gap."""
    tree = ["revolute", "spherical", "cylindrical", "planar", "universal", "screw", "floating"]
    names = [f"l{k}" for k in range(len(tree))]
    links = [Link(name, random_placement(rng)) for name in names]
    joints = []
    for k, of_tree in enumerate([*tree, kind]):
        axes = tuple(np.linalg.qr(rng.standard_normal((3, 3)))[0].T[:2])
        axes = axes[: {"universal": 2, "spherical": 0, "fixed": 0, "floating": 0}.get(of_tree, 1)]
        parent = names[k - 1] if k else "ground"
        child = names[k] if k < len(tree) else "ground"
        joint = JointRecord(f"j{k}", of_tree, parent, child, rng.standard_normal(3), axes)
        joint.pitch = 0.3
        joints.append(joint)
    joints[-1].closes_loop = True
    joints[-1].gap = from_roll_pitch_yaw(0.2 * rng.standard_normal(3), 0.2 * rng.standard_normal(3))
    return Description("loop", Report("loop.xml"), links, joints)


def violation(joint, apart):
    """Return the violation of a joint whose child side was displaced by `apart` from the parent's.

    Written down without the Jacobians and bases of the solver.
    """
    d, Q = apart.of_point(joint.point) - joint.point, apart.rotation
    if joint.kind == "floating":
        return 0.0
    if joint.kind == "universal":
        return max(np.abs(d).max(), abs(joint.axes[0] @ Q @ joint.axes[1]))
    if joint.kind in ("fixed", "prismatic"):
        turned = np.abs(Q - np.eye(3)).max()
    else:
        turned = np.abs(Q @ joint.axes[0] - joint.axes[0]).max() if joint.axes else 0.0
    if joint.kind in ("prismatic", "cylindrical", "screw"):
        along = (joint.axes[0] @ d) * joint.axes[0]
        aside = d - along
        if joint.kind == "screw":
            radius = joint.pitch / (2 * np.pi)
            angle = (along @ joint.axes[0]) / radius
            mismatch = Q - about_axis(np.zeros(3), joint.axes[0], angle).rotation
            turned += radius * np.abs(mismatch).max()  # as a displacement along the axis
    else:
        aside = joint.axes[0] @ d if joint.kind == "planar" else d
    return max(np.abs(aside).max(), turned)


@pytest.mark.parametrize("kind", KINDS)
def test_loops_of_all_kinds(kind, rng):
    file = random_loop(kind, rng)
    closed = close_loops(file)
    displaced = {"ground": IDENTITY} | {
        new.name: new.placement.then(old.placement.inverse())
        for old, new in zip(file.links, closed.links, strict=True)
    }
    for joint, new in zip(file.joints, closed.joints, strict=True):
        parent, child = displaced[joint.parent], displaced[joint.child]
        gap = joint.gap or IDENTITY
        assert violation(joint, parent.inverse().then(child).then(gap)) < 2e-14
        assert np.abs(new.point - parent.of_point(joint.point)).max() < 1e-14
        if kind == "universal" and joint.gap is not None:
            assert np.abs(new.axes[1] - child.rotation @ gap.rotation @ joint.axes[1]).max() < 1e-14
    assert "count from the closed configuration" in str(closed.report)


def test_messages():
    with pytest.raises(ValueError, match="bar.xml:4: the joint 'd' does not close: .* 9 m"):
        close_loops(four_bar(Placement(np.array([9.0, 0, 0]), np.eye(3))))
    file = four_bar(Placement(np.array([0.1, 0, 0]), np.eye(3)))
    file.couplings.append(CouplingData("d", "a", 1.0, line=7))
    with pytest.raises(ValueError, match="bar.xml:7: the joint 'd' of a coupling closes a loop"):
        close_loops(file)
    # Hinges about z cannot turn the last side by half a revolution about x.
    with pytest.raises(ValueError, match="turned by half a revolution"):
        close_loops(four_bar(about_axis(np.array([2.0, 0, 0]), np.array([1.0, 0, 0]), np.pi)))
