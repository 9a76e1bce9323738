"""Friction and limits of model files as laws of joints, and back into files."""

import equinox as eqx
import numpy as np
import pytest

import rigidjax as rj
from rigidjax import models
from rigidjax.joints.replacing import replace_fields
from rigidjax.models.check import compare

ROD = '<inertial><origin xyz="0.2 0 0"/><mass value="1"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>'  # noqa: E501
URDF = f"""<robot name="arm">
  <link name="world"/>
  <link name="one">{ROD}</link>
  <link name="two">{ROD}</link>
  <link name="three">{ROD}</link>
  <joint name="first" type="revolute"><parent link="world"/><child link="one"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="0.5" effort="9" velocity="9"/>
    <dynamics damping="0.2" friction="0.4"/></joint>
  <joint name="second" type="prismatic"><parent link="one"/><child link="two"/>
    <axis xyz="1 0 0"/><limit lower="0" upper="0" effort="9" velocity="9"/><dynamics/></joint>
  <joint name="third" type="continuous"><parent link="two"/><child link="three"/>
    <axis xyz="0 1 0"/></joint>
</robot>
"""
SDF = """<sdf version="1.9"><model name="arm">
<link name="one"><inertial><mass>1</mass></inertial></link>
<joint name="first" type="revolute"><parent>world</parent><child>one</child>
<axis><xyz>0 1 0</xyz><limit><lower>-1</lower><upper>0.5</upper></limit>
<dynamics><friction>0.4</friction></dynamics></axis></joint>
</model></sdf>
"""
MJCF = """<mujoco><compiler angle="radian"/><worldbody><body name="one">
<joint name="first" axis="0 1 0" range="-1 0.5" frictionloss="0.4"/>
<inertial pos="0.2 0 0" mass="1" diaginertia="0.1 0.1 0.1"/>
<body name="ball"><joint name="ball" type="ball" frictionloss="0.1"/>
<inertial pos="0 0.1 0" mass="1" diaginertia="0.1 0.1 0.1"/></body>
</body></worldbody></mujoco>
"""
FILES = {"arm.urdf": URDF, "arm.sdf": SDF, "arm.xml": MJCF}
IS_FRICTION = "friction of 0.4 N or N m is Coulomb friction, smooth below 0.01 m/s or rad/s"


@pytest.fixture(params=FILES)
def path(request, tmp_path):
    if request.param == "arm.xml":
        pytest.importorskip("mujoco")
    (tmp_path / request.param).write_text(FILES[request.param], "utf-8")
    return tmp_path / request.param


def first(model):
    system = model if isinstance(model, rj.System) else model.system
    return system.joints[system.joint_index("first")]


def test_friction_is_translated_and_limits_are_stops_if_asked(path):
    model = models.load(path)
    law = first(model).friction
    assert (float(law.coulomb[0]), float(law.velocity[0]), law.stribeck) == (0.4, 0.01, None)
    assert IS_FRICTION in str(model.report)
    assert model.limits["first"].position == (-1.0, 0.5)
    assert first(model).limits is None
    text = str(models.load(path, friction_velocity=None).report)
    assert "friction of 0.4 N or N m is not in the equations of motion" in text
    stopped = models.load(path, friction_velocity=0.2, stops=rj.Stop(300.0, 0.1))
    joint = first(stopped)
    assert float(joint.friction.velocity[0]) == 0.2
    np.testing.assert_array_equal(joint.limits, [[-1.0, 0.5]])
    assert float(joint.stop.stiffness[0]) == 300
    assert "joint 'first': its limits are elastic stops" in str(stopped.report)


def test_comparison_leaves_friction_and_stops_out_of_both_models(tmp_path):
    """Random coordinates are beyond the stops."""
    pytest.importorskip("mujoco")
    path = tmp_path / "arm.xml"
    path.write_text(MJCF)
    model = models.load(path, stops=rj.Stop(1e4))
    assert first(model).friction is not None and first(model).limits is not None
    assert max(compare(model, "mujoco", path, states=3)) < 1e-13


def test_kinds_and_ranges_that_laws_do_not_fit_are_reported(tmp_path):
    (tmp_path / "arm.urdf").write_text(URDF)
    text = str(models.load(tmp_path / "arm.urdf", stops=rj.Stop()).report)
    assert "joint 'second': its limits are equal, which leaves no room for stops" in text
    pytest.importorskip("mujoco")
    (tmp_path / "arm.xml").write_text(MJCF)
    text = str(models.load(tmp_path / "arm.xml").report)
    assert "joint 'ball': friction of 0.1 N or N m is not in the equations of motion" in text


def test_fitted_friction_is_written_into_the_file(path):
    """The viscous part is written as damping."""
    model = models.load(path)
    find = lambda s: (first(s).friction.coulomb, first(s).friction.viscous)  # noqa: E731
    viscous = 0.0 if path.suffix == ".sdf" else 0.1
    system = eqx.tree_at(find, model.system, (np.array([0.75]), np.array([viscous])))
    out = path.with_stem("new")
    models.update(path, system, out)
    lines = zip(*(p.read_text("utf-8").splitlines() for p in (path, out)), strict=True)
    ((before, after),) = [pair for pair in lines if pair[0] != pair[1]]
    again = first(models.load(out))
    assert float(again.friction.coulomb[0]) == 0.75
    assert "0.4" in before and "0.75" in after
    damping = 0.0 if again.damping is None else float(again.damping[0])
    given = 0.0 if first(model).damping is None else float(first(model).damping[0])
    assert damping == pytest.approx(given + viscous, abs=1e-15)


def test_what_a_file_cannot_hold_is_an_error(path):
    model = models.load(path)
    out = path.with_stem("new")
    other = eqx.tree_at(lambda s: first(s).friction.velocity, model.system, np.array([0.3]))
    with pytest.raises(ValueError, match=r"velocity of the friction of 'first'. `update` writes"):
        models.update(path, other, out)
    hinge, law = first(model), rj.Friction([0.4], stribeck=([0.5], [0.1]))
    for fields, match in (
        ({"friction": law}, "has `stribeck`, for which model files have no element"),
        ({"stiffness": np.array([3.0])}, "would not give the system: stiffness of 'first'"),
    ):
        joints = tuple(
            replace_fields(joint, **fields) if joint is hinge else joint
            for joint in model.system.joints
        )
        with pytest.raises(ValueError, match=match):
            models.update(path, replace_fields(model.system, joints=joints), out)
    assert not out.exists()


def test_friction_springs_and_stops_are_saved(tmp_path):
    """MJCF has them all; URDF has no springs."""
    pytest.importorskip("mujoco")
    body = rj.Body("one", 1.0, (0.1, 0.2, 0.25), (0.2, 0, 0))
    laws = {"friction": rj.Friction(0.4, 0.1), "damping": 0.2, "limits": (-1.0, 0.5)}
    hinge = lambda **more: rj.Revolute(  # noqa: E731
        "ground", "one", (0, 0, 0), (0, 1, 0), name="first", **laws, **more
    )
    gravity = rj.Gravity((0, 0, -9.81))
    systems = {
        "saved.urdf": rj.System(body, hinge(), gravity),
        "saved.xml": rj.System(body, hinge(stiffness=3.0, rest=0.2), gravity),
    }
    for name, system in systems.items():
        models.save(system, tmp_path / name)
        model = models.load(tmp_path / name, stops=rj.Stop())
        again = first(model)
        assert float(again.friction.coulomb[0]) == 0.4
        assert float(again.damping[0]) == pytest.approx(0.3, abs=1e-15)
        np.testing.assert_array_equal(again.limits, [[-1.0, 0.5]])
    (spring,) = (f for f in model.system.forces if isinstance(f, rj.TorsionSpring))
    assert (float(spring.stiffness), float(spring.angle)) == pytest.approx((3.0, 0.2))
    with pytest.raises(ValueError, match=r"'first' has a spring, which a URDF file cannot contain"):
        models.save(systems["saved.xml"], tmp_path / "spring.urdf")
    law = rj.Friction(0.4, stribeck=(0.5, 0.1))
    joint = rj.Revolute("ground", "one", (0, 0, 0), (0, 1, 0), name="first", friction=law)
    for name in systems:
        with pytest.raises(ValueError, match=r"friction of the joint 'first' has `stribeck`"):
            models.save(rj.System(body, joint, gravity), tmp_path / name)


def test_invalid_laws_of_a_file_raise(tmp_path):
    (tmp_path / "arm.urdf").write_text(URDF)
    for velocity in (0.0, -1.0, "slow"):
        with pytest.raises(ValueError, match=r"`load\(friction_velocity=...\)` must be a positive"):
            models.load(tmp_path / "arm.urdf", friction_velocity=velocity)
    with pytest.raises(
        TypeError, match=r"`load\(stops=...\)` takes an object, as in .*; got '1e4'"
    ):
        models.load(tmp_path / "arm.urdf", stops="1e4")
