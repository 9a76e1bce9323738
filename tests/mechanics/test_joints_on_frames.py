"""Joints between frames: as between points, and moving with the frames' origins."""

import pathlib
import tomllib

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from joints import cases

import rigidjax as rj
from rigidjax.cli.case.inputs import Inputs
from rigidjax.cli.case.model import ModelTables, read_model
from rigidjax.cli.case.schema import parse
from rigidjax.mechanics.stacked.system import PreparedSystem
from rigidjax.rotations.euler_map import euler_map

Z = (0.0, 0.0, 1.0)
T = jnp.zeros(())
TURNED = np.array([0.8, 0.0, 0.6, 0.0])
ONE = rj.Body("one", 1.0, (0.1, 0.2, 0.2), (0.3, 0.1, -0.2), TURNED)
TWO = rj.Body("two", 2.0, (0.3, 0.2, 0.2), (1.0, -0.4, 0.1))


def frame(name, body, point):
    """A frame with its origin there in the reference configuration."""
    arm = np.asarray(point) - np.asarray(body.position)
    return rj.Frame(name, body.name, np.asarray(euler_map(body.orientation)).T @ arm)


def close(first, second, atol=1e-14):
    first, second = (jax.tree.leaves(eqx.filter(tree, eqx.is_array)) for tree in (first, second))
    for a, b in zip(first, second, strict=True):
        np.testing.assert_allclose(a, b, rtol=atol, atol=atol * max(1.0, np.abs(b).max()))


@pytest.fixture(scope="module")
def four_bars():
    """By points, and by frames: at the parent, the child, both, none of whose points is given."""
    problem = rj.problems.four_bar(thickness=0.05)
    old = problem.system
    crank, coupler, rocker = old.bodies
    pivot, pin, knee, end = (np.asarray(joint.point) for joint in old.joints)
    frames = [
        frame("pivot", crank, pivot), frame("tip", crank, pin), frame("start", coupler, pin),
        frame("knee", coupler, knee), frame("end", rocker, end),
    ]  # fmt: skip
    names = [joint.name for joint in old.joints]
    joints = [
        rj.Revolute("ground", "pivot", None, Z, name=names[0]),
        rj.Revolute("tip", "start", axis=Z, name=names[1]),
        rj.Revolute("knee", "rocker", axis=Z, name=names[2]),
        rj.Revolute("ground", "end", end, Z, name=names[3]),
    ]
    return problem.state0, old, rj.System(old.bodies, joints, old.forces, frames)


def test_joints_on_frames_in_a_case_file():
    text = """
    joint = [{type = "Revolute", parent = "ground", child = "hook", axis = [0.0, 0.0, 1.0]}]
    frame = [{name = "hook", body = "arm", point = [-0.4, 0.0, 0.0]}]
    [[body]]
    name = "arm"
    mass = 1.3
    inertia = [0.02, 0.06, 0.05]
    position = [0.4, 0.0, 0.0]
    """
    tables = parse(ModelTables, tomllib.loads(text), "case")
    model = read_model(tables, Inputs({}, {}, (), {}, {}), pathlib.Path()).formulation
    (group,) = PreparedSystem(model.system).groups
    np.testing.assert_allclose(group.child_point, [(-0.4, 0.0, 0.0)])


@pytest.mark.parametrize("kind", cases.KINDS)
def test_every_joint_is_at_the_origin_of_a_frame(kind):
    def joint_on(mount, *names):
        made = cases.KINDS[kind](*names, name="j")
        if mount:
            fields = [f for f in ("point", "parent_point", "child_point") if hasattr(made, f)]
            made = eqx.tree_at(lambda j: [getattr(j, f) for f in fields], made,
                               [None] * len(fields))  # fmt: skip
        return made

    both = kind == "Distance"
    frames = [frame("a", ONE, cases.POINT), frame("b", TWO, cases.POINT_2)][: 1 + both]

    @jax.jit
    def find_attachments(system):
        return [group.attachments for group in PreparedSystem(system).groups]

    for names in (("a", "b"),) if both else (("a", "two"), ("two", "a"), ("ground", "a")):
        given = ["one" if n == "a" else "two" if n == "b" else n for n in names]
        system = rj.System([ONE, TWO], [joint_on(True, *names)], (), frames)
        close(
            find_attachments(system),
            find_attachments(rj.System([ONE, TWO], [joint_on(False, *given)])),
        )


def test_joints_are_stacked(four_bars):
    """Joints of one kind on frames are stacked, by whether one or both ends are frames."""
    counts = [len(group.indices) for group in PreparedSystem(four_bars[2]).groups]
    assert sorted(counts) == [1, 1, 1, 1]
    balls = [rj.Spherical("ground", "a"), rj.Spherical("one", "b", name="two")]
    frames = [frame("a", ONE, cases.POINT), frame("b", TWO, cases.POINT_2)]
    (group,) = PreparedSystem(rj.System([ONE, TWO], balls, (), frames)).groups
    assert group.mounts == (None, ("a", "b"))
    np.testing.assert_allclose(group.child_point, [one.point for one in frames])


@pytest.mark.exhaustive
def test_a_tool_on_a_flange():
    """Its reaction is taken in the origin of the flange; a flange moved from the tool is open."""
    tool = rj.Body("tool", 2.0, (0.1, 0.1, 0.1), (0.5, 0.1, -0.2))
    arm = rj.Body("arm", 1.0, (0.1, 0.1, 0.1), (0.1, 0.0, 0.0))
    at = np.array([0.3, 0.0, 0.0])
    frames = [frame("flange", arm, at), frame("mount", tool, at)]
    joints = [rj.Weld("ground", "arm"), rj.Weld("flange", "mount", name="glue")]
    system = rj.System([arm, tool], joints, rj.Gravity((0.0, 0.0, -10.0)), frames)
    np.testing.assert_array_equal(system.joints[0].point, np.zeros(3))
    model = rj.NullSpace(system)
    state = system.reference_state()
    reaction = model.reactions(T, model.encode(state))["glue"]
    np.testing.assert_allclose(reaction.force, [0, 0, 20], atol=1e-13)
    np.testing.assert_allclose(reaction.moment, np.cross(tool.position - at, [0, 0, 20]),
                               atol=1e-13)  # fmt: skip
    moved = eqx.tree_at(lambda s: s.frames[0].point, system, frames[0].point + 0.01)
    with pytest.raises(ValueError, match="violate the joint 'glue'"):
        rj.NullSpace(moved).encode(state)
    closed = rj.consistent_state(moved, state)
    np.testing.assert_allclose(closed.position[1] - state.position[1], 0.01, atol=1e-14)


def test_invalid_frames_raise():
    bodies, frames = [ONE, TWO], [frame("a", ONE, cases.POINT), frame("b", TWO, cases.POINT_2)]

    def assert_refused(joint, match):
        with pytest.raises(ValueError, match=match):
            rj.System(bodies, [joint], (), frames)

    apart = np.linalg.norm(np.subtract(cases.POINT, cases.POINT_2))
    assert_refused(
        rj.Weld("a", "c"), r"no body or frame called 'c'. There are \['one', 'two', 'a', 'b'"
    )
    assert_refused(
        rj.Weld("a", "one"), r"`Weld` acts between different bodies; \['a', 'one'\] are on one"
    )
    assert_refused(
        rj.Spherical("a", "b"),
        rf"origins of \['a', 'b'\], which are {apart:.3g} m apart .*"
        "Move a body or a frame, or give `point`",
    )
    assert_refused(
        rj.Revolute("one", "two", None, Z, name="pin"),
        "The joint 'pin' needs `point`, .* a "
        r"frame supplies it only where one is named; got \['one', 'two'\]",
    )
    assert_refused(rj.Distance("one", "b", None, Z), "needs `parent_point`")
    frames.append(rj.Frame("centre", "two"))
    assert_refused(rj.Distance("centre", "one", None, TWO.position), "two different points")
    assert_refused(rj.Free("a"), "no body called 'a'")
    with pytest.raises(
        TypeError, match=r"`Revolute\(axis=...\)` is missing: it must be a direction"
    ):
        rj.Revolute("a", "two")
    with pytest.raises(TypeError, match=r"`Screw\(pitch=...\)` must be real numbers; got None"):
        rj.Screw("a", "two", axis=Z)
    # Traced values cannot be checked.
    moved = eqx.filter_jit(lambda p: rj.System(bodies, [rj.Spherical("a", "b")], (), [
        eqx.tree_at(lambda f: f.point, frames[0], p), frames[1]]))(jnp.zeros(3))  # fmt: skip
    assert moved.joints[0].point is None
