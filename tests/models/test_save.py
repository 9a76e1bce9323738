"""Models and systems that are written to URDF files and loaded again."""

import dataclasses
import pathlib

import jax.numpy as jnp
import numpy as np
import pytest
from same_systems import assert_same_system

import rigidjax as rj
from rigidjax import models

ARM = pathlib.Path(__file__).parent / "data" / "arm.urdf"
DOWN = rj.Gravity((0, 0, -9.81))


def rod(name, **options):
    return rj.Body(name, 1.5, (0.02, 0.03, 0.04), **options)


def quaternion(*vector):
    return rj.RotationVector().to_quaternion(jnp.array(vector, float))


def save_and_load(model, folder, **options):
    """Return the model of the file of a model; systems, frames and names are equal."""
    models.save(model, folder / "again.urdf")
    again = models.load(folder / "again.urdf", **options)
    assert_same_system(model.system, again.system)
    assert_same_system(model.frames, again.frames)
    assert model.names == again.names
    return again


OPTIONS = ({}, {"lump_fixed": False}, {"lump_fixed": "massless"}, {"mimic": False})


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_round_trip_of_an_arm(tmp_path, options):
    model = models.load(ARM, **options)
    again = save_and_load(model, tmp_path, **options)
    assert model.actuators == again.actuators
    assert model.zeros == again.zeros
    assert model.limits == again.limits


def test_fixed_joints_are_kept(tmp_path):
    """Chains of fixed links, on a body and on the ground, whose root comes last."""
    path = tmp_path / "model.urdf"
    names = ("ground_2", "arm", "tool", "tip", "base")
    solid = """<inertial><origin xyz="0.1 0 0"/><mass value="1"/><inertia ixx="1" ixy="0" ixz="0"
        iyy="1" iyz="0" izz="1"/></inertial>"""
    links = [f'<link name="{name}">{solid if name in names[1:3] else ""}</link>' for name in names]
    joints = [
        f'<joint name="{name}" type="{kind}"><parent link="{ends[0]}"/><child link="{ends[1]}"/>'
        f'<origin xyz="{x} 0.2 0" rpy="0 {x} 0.4"/></joint>'
        for name, kind, ends, x in (
            ("z", "fixed", ("tool", "tip"), 0.3), ("axle", "continuous", ("ground_2", "arm"), 0.1),
            ("y", "fixed", ("base", "ground_2"), 0), ("x", "fixed", ("arm", "tool"), 0.7),
        )
    ]  # fmt: skip
    path.write_text(f'<robot name="r">{"".join(links + joints)}</robot>')
    model = models.load(path)
    ends = ("z", "tool", "tip"), ("y", "base", "ground_2"), ("x", "arm", "tool")
    assert model.names.fixed == ends
    save_and_load(model, tmp_path)


def test_round_trip_of_a_system(tmp_path):
    """All joints that URDF has, two trees, a frame, and joints at frames."""
    system = rj.System(
        [
            rod("base", position=(1, 2, 3), orientation=quaternion(0.3, -0.2, 0.5)),
            rod("upper", position=(1, 2, 4), orientation=quaternion(0, 3.1, 0)),
            rod("slider", position=(1, 1, 4)),
            rod("plate", position=(0, 1, 5), orientation=quaternion(np.pi / 2, 0, 0)),
            rod("ball", position=(0, 0, 5)),
            rod("fixed", position=(0, 0, 6)),
            rj.Body("point", 0.0, np.zeros(3), (1, 2, 5)),
        ],
        [
            rj.Free("base", "float"),
            rj.Revolute("base", "upper", (1, 2, 3.5), (0, 2, 1), name="hinge", damping=2),
            rj.Prismatic("base", "slider", (1, 1, 0), point=(0, 0, 3), name="slide", armature=0.3),
            rj.Planar("slider", "plate", (0, 1, 4), (0, 0, 1), "plane"),
            rj.Spherical("tip", "ball", name="socket"),
            rj.Weld("ball", "fixed", (0, 0, 5.5), "weld"),
            rj.Revolute("upper", "point", (1, 2, 5), (1, 0, 0), name="last"),
            rj.Coupling("last", "hinge", -2.0),
        ],
        DOWN,
        rj.Frame("tip", "plate", (0, 0.3, -0.2), quaternion(0, 0, 1)),
    )  # fmt: skip
    models.save(system, tmp_path / "all.urdf")
    model = models.load(tmp_path / "all.urdf", lump_fixed="massless")
    again = model.system
    assert [joint.name for joint in again.joints] == [joint.name for joint in system.joints]
    assert [frame.name for frame in again.frames] == ["tip"]
    assert model.names.fixed == (("tip_fixed", "plate", "tip"),)
    for point, own in zip(again.frames[0].in_space(again.bodies[3]), system.frames[0].in_space(
            system.bodies[3]), strict=True):  # fmt: skip
        np.testing.assert_allclose(point, own, rtol=0, atol=1e-14)
    save_and_load(model, tmp_path, lump_fixed="massless")
    for body, own in zip(system.bodies, again.bodies, strict=False):
        assert body.name == own.name
        np.testing.assert_allclose(own.mass, body.mass)
        np.testing.assert_allclose(own.position, body.position, rtol=1e-14, atol=1e-14)
        np.testing.assert_allclose(own.inertia, body.inertia_tensor, rtol=1e-14, atol=1e-16)
        np.testing.assert_allclose(abs(own.orientation @ body.orientation), 1, rtol=1e-14)
    for joint, own in zip(system.joints, again.joints, strict=False):
        assert type(joint) is type(own)
        # Loaded joints name bodies; the frame is on the plate.
        assert (own.parent, own.child) == (joint.parent.replace("tip", "plate"), joint.child)
        for field in ("axis", "normal"):
            if hasattr(joint, field):
                axis = np.asarray(getattr(joint, field))
                expected = axis / np.linalg.norm(axis)
                np.testing.assert_allclose(getattr(own, field), expected, rtol=1e-14, atol=1e-15)
    points = [
        (1, 2, 3.5), (0, 0, 3), (0, 1, 4), system.frames[0].in_space(system.bodies[3])[0],
        (0, 0, 5.5), (1, 2, 5),
    ]  # fmt: skip
    for joint, point in zip(again.joints[1:], points, strict=False):
        np.testing.assert_allclose(joint.point, point, rtol=1e-14, atol=1e-14)
    assert again.joints[1].damping == 2
    np.testing.assert_allclose(again.joints[2].armature, 0.3, rtol=1e-15)
    assert_same_system(again.constraints, system.constraints)


def test_joints_may_have_generated_names(tmp_path):
    """Joints called like those of floating bases and like those of frames."""
    joints = [hinge("b", "a", "free ground-b"), hinge("b", "c", "tip_fixed")]
    bodies = [rod(name, position=(0, 0, z)) for z, name in enumerate("bac")]
    tip = rj.Frame("tip", "c", (0, 0, 1))
    models.save(rj.System(bodies, joints, DOWN, tip), tmp_path / "model.urdf")
    model = models.load(tmp_path / "model.urdf")
    names = ("free ground-b 2", "free ground-b", "tip_fixed")
    assert model.names.joints == names
    models.save(model, tmp_path / "again.urdf")
    again = models.load(tmp_path / "again.urdf")
    assert again.names.joints == names
    assert_same_system(model.system, again.system)


def test_coupling_with_an_offset(tmp_path):
    """The reference configuration of the file is one in which the coupling is closed."""
    system = pair(FIRST, SECOND, rj.Coupling("second", "first", 1.0, 0.4))
    models.save(system, tmp_path / "model.urdf")
    body = models.load(tmp_path / "model.urdf").system.bodies[1]
    expected = 0, -2.0 * np.sin(0.4), 2.0 * np.cos(0.4)
    np.testing.assert_allclose(body.position, expected, atol=1e-15)


def pair(*joints, forces=DOWN, **options):
    bodies = [rod("a", position=(0, 0, 1)), rod("b", position=(0, 0, 2), **options)]
    return rj.System(bodies, joints, forces)


def hinge(parent, child, name, **options):
    return rj.Revolute(parent, child, (0, 0, 0), (1, 0, 0), name=name, **options)


FIRST, SECOND = hinge("ground", "a", "first"), hinge("a", "b", "second")
ERRORS = {
    "loop": (pair(FIRST, SECOND, rj.Weld("ground", "b", name="third")), "'second' closes a loop"),
    "kind": (
        pair(FIRST, rj.Universal("a", "b", (0, 0, 0), (1, 0, 0), (0, 1, 0), name="cross")),
        r"no joint for the Universal 'cross'. Save the system as `.xml`",
    ),
    "motion": (
        pair(FIRST, hinge("a", "b", "driven", motion=lambda t: t)),
        "Revolute 'driven' has a prescribed motion",
    ),
    "reversed": (pair(FIRST, hinge("b", "a", "back")), "'back' has its parent 'b' further"),
    "constraint": (
        pair(FIRST, SECOND, rj.Constraint(lambda t, p: p["a"][0][:1], ["a"], lengths=[True])),
        "URDF cannot contain the Constraint",
    ),
    "force": (
        pair(FIRST, SECOND, forces=[DOWN, rj.TorsionSpring("first", 1.0)]),
        r"the forces \['TorsionSpring'\]",
    ),
    "gravity": (pair(FIRST, SECOND, forces=rj.Gravity((0, 0, 1))), r"has \[0.0, 0.0, 1.0\]"),
    "no gravity": (pair(FIRST, SECOND, forces=()), "the system has none"),
    "mimics": (
        pair(
            FIRST, SECOND, rj.Coupling("second", "first", 1.0),
            rj.Coupling("second", "first", 1.0, name="same"),
        ),
        "'second' is driven by two couplings",
    ),
    "cycle": (
        pair(
            FIRST, SECOND, rj.Coupling("second", "first", 1.0),
            rj.Coupling("first", "second", 1.0),
        ),
        r"\['first', 'second'\] form a cycle",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors(tmp_path, case):
    system, message = ERRORS[case]
    with pytest.raises(ValueError, match=message):
        models.save(system, tmp_path / "model.urdf")
    assert not list(tmp_path.iterdir())


def test_variable_mass_is_an_error(tmp_path):
    tank = rj.Body("tank", lambda t: 2.0 - t, (1, 1, 1))
    with pytest.raises(ValueError, match="mass of the body 'tank' is a function of time"):
        models.save(rj.System(tank, (), DOWN), tmp_path / "model.urdf")


def test_unknown_suffix_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="must end in .urdf or .xml; got"):
        models.save(pair(FIRST, SECOND), tmp_path / "model.sdf")


def test_actuators_that_lose_something_give_warnings(tmp_path):
    model = models.load(ARM)
    others = (
        models.Actuator("servo", "roll", "position", gain=5.0, bias=(0.0, -5.0, 0.0)),
        models.Actuator("pump", "flange"),
    )
    model = dataclasses.replace(model, actuators=(*model.actuators, *others))
    with (
        pytest.warns(UserWarning, match=r"The actuators \['pump'\] drive joints that are not"),
        pytest.warns(UserWarning, match=r"joint and gear of the actuators \['servo'\]"),
    ):
        models.save(model, tmp_path / "arm.urdf")
    again = models.load(tmp_path / "arm.urdf")
    assert [one.name for one in again.actuators] == ["yaw_motor", "servo"]
    assert_same_system(model.system, again.system)
