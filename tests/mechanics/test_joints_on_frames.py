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


def test_joints_are_stacked():
    """Joints of one kind on frames are stacked, by whether one or both ends are frames."""
    balls = [rj.Spherical("ground", "a"), rj.Spherical("one", "b", name="two")]
    frames = [frame("a", ONE, cases.POINT), frame("b", TWO, cases.POINT_2)]
    (group,) = PreparedSystem(rj.System([ONE, TWO], balls, (), frames)).groups
    assert group.mounts == (None, ("a", "b"))
    np.testing.assert_allclose(group.child_point, [one.point for one in frames])
    balls[1] = rj.Spherical("a", "two", name="two")
    assert len(PreparedSystem(rj.System([ONE, TWO], balls, (), frames)).groups) == 2


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
