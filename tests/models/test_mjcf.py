"""MJCF files: values against MuJoCo, closed configurations, and errors for what is left out."""

import functools
import pathlib
import re
import sys

import equinox as eqx
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.models import load, save
from rigidjax.models.check import compare
from rigidjax.rotations.euler_map import euler_map

mujoco = pytest.importorskip("mujoco")

DATA = pathlib.Path(__file__).parent / "data"
MECHANISM, GRIPPER = DATA / "mechanism.xml", DATA / "gripper.xml"


@functools.cache
def load_once(path):
    return load(path)


def compile_model(path):
    model = mujoco.MjModel.from_xml_path(str(path))
    return model, mujoco.MjData(model)


def write(folder, body="", rest="", options="", knee=""):
    """Write a file with a hinged link `a`, which carries a link `b`; return its path."""
    path = folder / "model.xml"
    path.write_text(
        f"""<mujoco>{options}<worldbody><site name="fixed" pos="0 0 0.4"/>
        <body name="a"><joint name="one" axis="0 1 0"/><geom size="0.1" pos="0.3 0 0"/>
        {knee}<body name="b" pos="0.6 0 0"><joint name="two" axis="0 1 0"/>
        <geom size="0.1" pos="0.3 0 0"/><site name="end" pos="0.5 0 0"/></body></body>
        {body}</worldbody>{rest}</mujoco>"""
    )
    return path


def test_mass_matrix_bias_forces_and_accelerations_are_those_of_mujoco():
    deviations = compare(load_once(MECHANISM), "mujoco", MECHANISM, states=5)
    assert deviations.mass_matrix < 1e-13
    assert deviations.bias_forces < 1e-13
    assert deviations.accelerations < 1e-11


def test_springs_and_dampers_of_tendons_are_those_of_mujoco(tmp_path):
    """Fixed ones with a range of unloaded lengths, a path over sites, a cord and its damper."""
    path = write(tmp_path, SLIDE, """<tendon>
        <fixed stiffness="30" damping="2" springlength="-0.2 0.1"><joint joint="one" coef="0.5"/>
        <joint joint="two" coef="-0.3"/><joint joint="three" coef="1"/></fixed>
        <spatial stiffness="100" damping="3"><site site="fixed"/><site site="knee"/>
        <site site="end"/></spatial>
        <spatial stiffness="80" damping="1" springlength="0 0.8"><site site="fixed"/>
        <site site="end"/></spatial></tendon>""",
        knee='<site name="knee" pos="0.5 0.1 0.1"/>')  # fmt: skip
    model = load(path)
    assert [type(force).__name__ for force in model.system.forces[1:]] == [
        "FixedTendon", "Cable", "Cable", "Cable"
    ]  # fmt: skip
    assert compare(model, "mujoco", path, states=8).accelerations < 1e-12
    kept = rj.System(model.system.bodies, model.system.joints, model.system.forces[:2])
    save(kept, tmp_path / "saved.xml")
    assert eqx.tree_equal(load(tmp_path / "saved.xml").system.forces[1], kept.forces[1])


def test_states_are_those_of_mujoco():
    model = load_once(MECHANISM)
    reference, data = compile_model(MECHANISM)
    rng = np.random.default_rng(2)
    q, v = np.array(reference.qpos0), rng.standard_normal(reference.nv)
    mujoco.mj_integratePos(reference, q, rng.standard_normal(reference.nv), 1.0)
    data.qpos, data.qvel = q, v
    mujoco.mj_forward(reference, data)
    state = model.from_mujoco(q, v)
    np.testing.assert_allclose(model.to_mujoco(state)[0], q, atol=1e-14)
    np.testing.assert_allclose(model.to_mujoco(state)[1], v, atol=1e-14)
    at = {body.name: i for i, body in enumerate(model.system.bodies)}
    for name in ("carriage", "floater"):
        b = reference.body(name).id
        center, rotation = state.position[at[name]], euler_map(state.orientation[at[name]])
        np.testing.assert_allclose(center, data.xipos[b], atol=1e-14)
        np.testing.assert_allclose(rotation, data.xmat[b].reshape(3, 3), atol=1e-14)
    # A site, on a link that is part of the body of another one.
    frame = model.frames["tip"]
    assert frame.body == "pendulum"
    rotation = euler_map(state.orientation[at["pendulum"]])
    position = state.position[at["pendulum"]] + rotation @ frame.point
    np.testing.assert_allclose(position, data.site("tip").xpos, atol=1e-14)
    np.testing.assert_allclose(model.frames["target"].point, data.site("target").xpos)


def test_joints_have_limits_zeros_and_actuators_in_coordinates_of_the_system():
    model = load_once(MECHANISM)
    reference, data = compile_model(MECHANISM)
    assert model.names.kinds == (
        "prismatic", "revolute", "revolute", "spherical", "floating", "revolute"
    )  # fmt: skip
    assert model.names.joints[2] == "carriage hinge"
    assert model.zeros["swing"] == pytest.approx(np.radians(30), abs=1e-15)
    limits = model.limits["swing"]
    np.testing.assert_allclose(limits.position, np.radians([-90, 60]), atol=1e-15)
    assert limits.effort == 5.0
    assert [actuator.kind for actuator in model.actuators] == [
        "position", "motor", "velocity", "general"
    ]  # fmt: skip
    assert model.actuators[0].control_range == (-30.0, 30.0)
    assert model.actuators[0].force_range == (-4.0, 4.0)
    u = np.array([0.1, 0.2, 0.3, 0.4])
    data.qpos[:2], data.qvel[:2], data.ctrl = (0.3, 0.4), (0.5, 0.6), u
    data.qpos[-1], data.qvel[-1] = 0.7, 0.8
    mujoco.mj_forward(reference, data)
    force = dict.fromkeys(("along", "swing", "wheel"), 0.0)
    q = {"along": 0.3, "swing": 0.4, "wheel": 0.7}
    rate = {"along": 0.5, "swing": 0.6, "wheel": 0.8}
    for actuator, control in zip(model.actuators, u, strict=True):
        name, gear = actuator.joint, actuator.gear
        constant, by_length, by_rate = actuator.bias
        own = actuator.gain * control + constant + by_rate * gear * rate[name]
        own += by_length * gear * (q[name] - model.zeros[name])
        force[name] += gear * np.clip(own, *(actuator.force_range or (-np.inf, np.inf)))
    force["swing"] = np.clip(force["swing"], -limits.effort, limits.effort)
    expected = [data.qfrc_actuator[reference.joint(name).dofadr[0]] for name in force]
    np.testing.assert_allclose(list(force.values()), expected, rtol=1e-14)


def test_report_accounts_for_all_elements():
    text = str(load_once(MECHANISM).report)
    for line in (
        "line 8: body 'carriage': 1.5 kg",
        "body 'carriage': its 3 joints are a chain with 2 massless links",
        "line 10: joint 'along': prismatic, damping 0.4, stiffness 30, limits",
        "friction of 0.02 N or N m is Coulomb friction, smooth below 0.01 m/s or rad/s",
        "site 'carriage': frame 'carriage site'; another frame has its name",
        "time step 0.005 s, integrator implicitfast",
        "1 keyframes",
        "<geom>: 6 geoms",
    ):
        assert line in text


def test_equalities_close_loops_and_couple_joints():
    model = load_once(GRIPPER)
    assert model.names.closing == ("right loop", "left loop")
    (coupling,) = model.system.constraints
    assert (coupling.joint, coupling.by, coupling.ratio) == ("left crank", "right crank", -1.0)
    text = str(model.report)
    assert "connect 'right loop': spherical joint between 'right tip' and 'right rocker'" in text
    assert "joint 'gear': `Coupling` of 'left crank' with -1 times 'right crank'" in text


def weld_at(first, second):
    """Return a weld of the link `b` to the ground that holds at two angles of the hinges."""
    c, s = np.cos(first + second), np.sin(first + second)
    x, z = 0.6 * np.cos(first), -0.6 * np.sin(first)
    half = 0.5 * (first + second)
    pose = [s * z - c * x, 0.0, -s * x - c * z, np.cos(half), 0.0, -np.sin(half), 0.0]
    return f'<weld body1="b" relpose="{" ".join(map(repr, map(float, pose)))}"/>'


OPEN = {
    "connect of sites": '<connect site1="end" site2="fixed"/>',
    "weld with a relative pose": weld_at(0.4, 0.5),
    "joint with an offset": '<joint joint1="two" joint2="one" polycoef="0.3 2 0 0 0"/>',
    "cam": '<joint joint1="two" joint2="one" polycoef="0.3 0.5 -0.4 0.2 0.1"/>',
    "joint that is held": '<joint joint1="two" polycoef="0.3 0 0 0 0"/>',
    "tendons": '<tendon tendon1="t" tendon2="s" polycoef="0.2 0.5 0 0 0"/>',
}
TENDONS = """<tendon><fixed name="t"><joint joint="one" coef="2"/></fixed>
    <fixed name="s"><joint joint="two" coef="3"/></fixed></tendon>"""


def closed_data(path, model):
    """Return MuJoCo's data in the reference configuration, in which all equalities hold."""
    reference, data = compile_model(path)
    data.qpos = model.to_mujoco(model.state)[0]
    mujoco.mj_fwdPosition(reference, data)
    equalities = data.efc_type[: data.nefc] == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    assert equalities.any()
    assert np.abs(data.efc_pos[: data.nefc][equalities]).max() < 1e-12
    return data


@pytest.mark.parametrize("kind", OPEN)
def test_equalities_violated_in_the_file_move_the_reference_configuration(kind, tmp_path):
    path = write(tmp_path, rest=f"{TENDONS}<equality>{OPEN[kind]}</equality>")
    model = load(path)
    assert "to close the loops" in str(model.report) or "is held at 0.3" in str(model.report)
    data = closed_data(path, model)
    np.testing.assert_allclose(data.qpos, [model.zeros["one"], model.zeros["two"]], atol=1e-15)
    b = next(body for body in model.system.bodies if body.name == "b")
    np.testing.assert_allclose(b.position, data.xipos[2], atol=1e-14)
    if model.system.constraints:
        (coupling,) = model.system.constraints
        slope = {"joint with an offset": 2.0, "tendons": 0.75}.get(kind)
        assert slope is None or coupling.ratio == pytest.approx(slope, rel=1e-15)
        save(model, tmp_path / "again.xml")
        again = load(tmp_path / "again.xml")
        np.testing.assert_allclose(
            again.system.constraints[0].position(0.7), coupling.position(0.7), rtol=1e-12
        )
    else:
        assert model.names.closing


def test_ball_joints_stay_when_loops_are_closed(tmp_path):
    # MuJoCo's coordinates of a ball joint count from `qpos0`, those of a free joint do not.
    body = """<body name="c" pos="0.2 0.3 0"><freejoint/><geom size="0.1"/>
        <body name="d"><joint name="ball" type="ball"/><geom size="0.1" pos="0.2 0 0"/>
        <site name="on ball" pos="0.3 0.1 0" euler="10 20 30"/></body></body>"""
    rest = """<equality><weld site1="end" site2="on ball"/></equality>
        <actuator><position joint="one" kp="5" gear="2"/></actuator>"""
    path = write(tmp_path, body, rest)
    model = load(path)
    data = closed_data(path, model)
    assert data.qpos[-4:] == pytest.approx([1, 0, 0, 0])
    # The force of the servo in that configuration.
    mujoco.mj_forward(compile_model(path)[0], data)
    (servo,) = model.actuators
    assert abs(model.zeros["one"]) > 0.01
    assert 2 * servo.bias[0] == pytest.approx(data.qfrc_actuator[0], rel=1e-12)


def test_joints_are_held_at_any_angle(tmp_path):
    # Beyond half a revolution, and two that are coupled besides.
    rest = """<equality><joint joint1="two" polycoef="4 0 0 0 0"/>
        <joint joint1="one" joint2="two" polycoef="0.5 2 0 0 0"/></equality>"""
    path = write(tmp_path, rest=rest)
    model = load(path)
    assert model.zeros == {"one": pytest.approx(8.5), "two": 4.0, "joint 0": 0.0}
    closed_data(path, model)


def test_inactive_and_void_equalities_have_no_meaning(tmp_path):
    equality = """<equality><connect name="off" body1="b" anchor="0.5 0 0" active="false"/>
        <weld name="void" body1="base"/></equality>"""
    path = write(tmp_path, '<body name="base"/>', equality)
    model = load(path)
    assert model.system.topology.loops == ()
    assert "connect 'off': is not active" in str(model.report)
    assert "weld 'void': connects 'base' and 'world', which are fixed" in str(model.report)


def test_actuators_add_armature_and_damping(tmp_path):
    rest = '<actuator><motor joint="one" gear="3" armature="0.2" damping="0.4"/></actuator>'
    joint = load(write(tmp_path, rest=rest)).system.joints[0]
    np.testing.assert_allclose([*joint.armature, *joint.damping], [1.8, 3.6])


def test_mocap_bodies_without_connection_are_fixed(tmp_path):
    model = load(write(tmp_path, '<body name="goal" mocap="true" pos="1 0 0"/>'))
    assert "mocap body, fixed to the ground" in str(model.report)
    assert model.frames["goal"].body == "ground"


SLIDE = '<body name="c"><joint name="three" type="slide"/><geom size="0.1"/></body>'
FLEX = """<flexcomp name="f" type="grid" count="2 2 1" spacing="1 1 1" dim="2" mass="1">
    <edge equality="true"/></flexcomp>"""
BALL = '<body name="c"><joint name="three" type="ball"{}/><geom size="0.1"/></body>'
REFUSED = {
    "gravcomp": ('<body name="c" gravcomp="1"><joint/><geom size="0.1"/></body>', "", ""),
    "mocap": (
        '<body name="m" mocap="true"/>', '<equality><weld body1="m" body2="b"/></equality>', "",
    ),
    "fluid": ("", "", '<option density="1.2" viscosity="1e-5"/>'),
    "spherical armature": (BALL.format(' armature="0.1"'), "", ""),
    "nonlinear damping": (
        '<body name="c"><joint type="slide" damping="1 2"/><geom size="0.1"/></body>', "", "",
    ),
    "nonlinear stiffness": (
        '<body name="c"><joint type="slide" stiffness="1 2"/><geom size="0.1"/></body>', "", "",
    ),
    "polynomial equality": (
        "", """<tendon><fixed name="t"><joint joint="one" coef="1"/></fixed>
        <fixed name="s"><joint joint="two" coef="1"/></fixed></tendon><equality>
        <tendon tendon1="t" tendon2="s" polycoef="0 2 3 0 0"/></equality>""", "",
    ),
    "equality flex": (FLEX, "", ""),
    "flex": (FLEX, "", ""),
    "plugin": (
        "", """<actuator><plugin joint="one" plugin="mujoco.pid" instance="p"/></actuator>
        <extension><plugin plugin="mujoco.pid"><instance name="p"><config key="kp" value="4"/>
        </instance></plugin></extension>""", "",
    ),
    "equality of several joints": (
        SLIDE,
        """<tendon><fixed name="t"><joint joint="one" coef="1"/><joint joint="two" coef="1"/>
        <joint joint="three" coef="1"/></fixed></tendon>
        <equality><tendon tendon1="t"/></equality>""", "",
    ),
    "tendon": (
        "", """<tendon><spatial stiffness="10" frictionloss="1" springlength="0.1 0.2">
        <site site="fixed"/><site site="end"/></spatial></tendon>""", "",
    ),
    "actuator transmission": ("", '<actuator><motor site="end"/></actuator>', ""),
    "actuator dynamics": (
        "", '<actuator><general joint="one" dyntype="filter" dynprm="0.1"/></actuator>', "",
    ),
    "actuator gain": (
        "", '<actuator><general joint="one" gaintype="affine" gainprm="0 1"/></actuator>', "",
    ),
    "actuator bias": (
        "", """<actuator><general joint="one" biastype="muscle"
        biasprm="0.75 1.05 -1 200 0.5 1.6 1.5 1.3 1.2" lengthrange="0.1 1"/></actuator>""", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("feature", REFUSED)
def test_unsupported_features_are_named(feature, tmp_path):
    """With lines, if they are those of one element, which may have no name."""
    path = write(tmp_path, *REFUSED[feature])
    place = "" if feature in ("flex", "equality flex", "plugin") else r":\d+: .*"
    match = rf'{place}(is|are) not .*\[ignore=\("{feature}",\)\]'
    with pytest.raises(ValueError, match=match) as error:
        load(path, strict=True)
    ignore = re.findall(r'ignore=\("(.*?)",\)', str(error.value))
    assert load(path, ignore=set(ignore)).report.of_kind("ignored")


def test_nonlinear_damping_of_actuators_is_refused(tmp_path):
    path = write(tmp_path, rest='<actuator><motor joint="one" damping="1 2"/></actuator>')
    with pytest.raises(ValueError, match="nonlinear damping of its actuator is not supported"):
        load(path)


def test_actuators_of_ball_joints_are_refused(tmp_path):
    path = write(tmp_path, BALL.format(""), '<actuator><motor joint="three"/></actuator>')
    with pytest.raises(ValueError, match="the transmission to a spherical joint is not supported"):
        load(path, strict=True)


def test_missing_mujoco_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(
        ModuleNotFoundError, match=r'MJCF files need mujoco: pip install "rigidjax\[mjcf\]"'
    ):
        load(write(tmp_path))
