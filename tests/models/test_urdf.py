"""URDF files: every translation against Pinocchio and by hand, and the report."""

import jax
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.models.check import compare

# A tree with a rotated inertial frame, a fixed link, a massless link between two hinges, all kinds
# of joints and the name of a link used for a joint as well.
SOLID = """<inertial><origin xyz="0.1 -0.02 0.05" rpy="0.3 -0.2 0.7"/><mass value="{mass}"/>
<inertia ixx="0.03" ixy="0.002" ixz="-0.001" iyy="0.04" iyz="0.003" izz="0.05"/></inertial>"""
LINKS = ("base", "arm", "virtual", "hand", "plate", "ball", "drone", "slide")


def joint(name, kind, parent, child, rest="", xyz="0.2 0.1 -0.3", rpy="0.1 0.4 -0.6"):
    return (
        f'<joint name="{name}" type="{kind}"><origin xyz="{xyz}" rpy="{rpy}"/>'
        f'<parent link="{parent}"/><child link="{child}"/>{rest}</joint>'
    )


LIMIT = '<limit lower="-2" upper="1.5" effort="30" velocity="4"/>'
JOINTS = [
    joint("arm", "revolute", "base", "arm", f'<axis xyz="0 2 0"/>{LIMIT}<dynamics damping="0.3"/>'),
    joint("wrist", "continuous", "arm", "virtual", '<axis xyz="1 0 1"/>'),
    joint("hand_joint", "revolute", "virtual", "hand", f'<axis xyz="0 1 0"/>{LIMIT}'),
    joint("tool_mount", "fixed", "hand", "tool"),
    joint("sheet", "planar", "hand", "plate", '<axis xyz="0 0 1"/>'),
    joint("rail", "prismatic", "base", "slide", f'<axis xyz="0 0.6 0.8"/>{LIMIT}'),
    joint("socket", "spherical", "slide", "ball"),
    joint("flight", "floating", "arm", "drone"),
]


def write(folder, joints=JOINTS, links=LINKS, extra="", name="tree.urdf"):
    parts = [
        f'<link name="{link}">{"" if link == "virtual" else SOLID.format(mass=1 + k)}</link>'
        for k, link in enumerate(links)
    ]
    tool = f'<link name="tool">{SOLID.format(mass=0.4)}</link>'
    text = f'<robot name="tree">{"".join(parts)}{tool}{"".join(joints)}{extra}</robot>'
    path = folder / name
    path.write_text(text.replace("><", ">\n<"))
    return path


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    path = write(tmp_path_factory.mktemp("urdf"))
    return path, rj.models.load(path)


def test_mass_matrix_forces_and_accelerations_are_those_of_pinocchio(tmp_path):
    # Pinocchio reads no spherical joints.
    path = write(
        tmp_path,
        [item for item in JOINTS if "spherical" not in item],
        [link for link in LINKS if link != "ball"],
    )
    found = compare(rj.models.load(path), "pinocchio", path)
    assert max(found) < 1e-12, found


def test_elements_without_effect_on_the_motion_are_skipped(tmp_path):
    """With one warning; refused if strict, left out by name, and refused if misspelled."""
    text = """<transmission name="gone"><joint name="elbow"/><actuator name="motor"/></transmission>
    <transmission name="two"><joint name="arm"/><joint name="wrist"/></transmission>
    <link name="rod" cad="7"><origin xyz="0 0 0"/></link><joint name="j" type="fixed">
    <parent link="base"/><child link="rod"/><dynamics D="3"/></joint>"""
    path = write(tmp_path, extra=text)
    with pytest.warns(UserWarning, match=r"5 elements .*: link/cad \(1\).* transmission \(2\)"):
        model = rj.models.load(path)
    assert model.actuators == ()
    assert len(model.report.of_kind("skipped")) == 5
    with pytest.raises(ValueError, match=r"'gone'>: drives 'elbow', which does not exist\."):
        rj.models.load(path, strict=True)
    names = ("transmission", "link/cad", "origin", "dynamics/D")
    left_out = rj.models.load(path, ignore=names).report.of_kind("ignored")
    assert len(left_out) == 5 and "drives 'elbow'" in str(left_out)
    path.write_text(path.read_text().replace('D="3"', 'dampng="3"'))
    with pytest.raises(ValueError, match="`dampng` is unknown. Did you mean 'damping'"):
        rj.models.load(path)


def test_contents_of_the_model(tree):
    _, model = tree
    assert model.names.links == (*LINKS, "tool")
    assert model.names.bodies == LINKS
    assert model.names.joints[0] == "free ground-base"
    assert model.names.joints[1:4] == ("arm", "wrist", "hand_joint")
    assert model.limits["arm"] == rj.models.JointLimits((-2.0, 1.5), 4.0, 30.0)
    assert "wrist" not in model.limits
    arm = model.system.joints[model.system.joint_index("arm")]
    np.testing.assert_allclose(arm.damping, [0.3])
    # The tool is part of the hand, whose mass and frame say so.
    hand = model.system.bodies[model.system.locate("hand")[0]]
    np.testing.assert_allclose(hand.mass, 4.4)
    assert model.frames["tool"].body == "hand"
    assert [frame.name for frame in model.system.frames] == ["tool"]
    assert model.system.bodies[model.system.locate("virtual")[0]].mass == 0


def test_report_has_a_line_for_every_element(tmp_path):
    extra = (
        '<material name="red"/><gazebo/><transmission name="t"><joint name="arm">'
        '<offset>1</offset></joint><actuator name="motor">'
        "<mechanicalReduction>50</mechanicalReduction>"
        '<drake:rotor_inertia value="1e-5"/></actuator></transmission>'
    )
    path = write(
        tmp_path,
        [*JOINTS[:-1], JOINTS[-1].replace("</joint>", "<calibration/></joint>")],
        extra=extra,
    )
    model = rj.models.load(path)
    text = str(model.report)
    joints = "arm", "wrist", "hand_joint", "sheet", "rail", "socket", "flight"
    pieces = "1 materials", "1 settings of Gazebo", "1 calibrations", "<offset>", "armature 0.025"
    for piece in (*pieces, *(f"'{name}'" for name in (*LINKS, "tool", *joints))):
        assert piece in text, piece
    assert model.actuators == (rj.models.Actuator("motor", "arm", gear=50.0),)
    arm = model.system.joints[model.system.joint_index("arm")]
    np.testing.assert_allclose(arm.armature, [2500e-5])


def test_forces_on_fixed_joints_have_no_meaning(tmp_path):
    mount = joint("tool_mount", "fixed", "arm", "tool", f'{LIMIT}<dynamics damping="2"/>')
    motor = '<joint name="tool_mount"/><actuator name="m"/><rotor_inertia value="1"/>'
    path = write(tmp_path, [JOINTS[0], mount], ("base", "arm"), f"<transmission name='t'>{motor}"
                 "</transmission>")  # fmt: skip
    model = rj.models.load(path, lump_fixed=False)
    assert not model.actuators and "tool_mount" not in model.limits
    for kind in ("<limit> of a fixed joint", "<dynamics> of a fixed joint", "actuator of 'tool_m"):
        assert kind in str(model.report)


def test_coordinates_of_pinocchio_there_and_back(tree, rng):
    _, model = tree
    v = rng.standard_normal(6 + 6 + 1 + 1 + 3 + 1 + 1 + 3)
    (q, _) = model.to_pinocchio(model.state)
    state = model.from_pinocchio(q + 0.3 * rng.standard_normal(len(q)), v)
    # MuJoCo has no planar joint.
    with pytest.raises(ValueError, match="'sheet' is planar; mujoco has no such joint"):
        model.to_mujoco(state)
    q, v = model.to_pinocchio(state)
    again = model.from_pinocchio(q, v)
    for name in ("position", "velocity", "angular_velocity"):
        np.testing.assert_allclose(getattr(again, name), getattr(state, name), atol=1e-12)
    np.testing.assert_allclose(again.angles["arm"], state.angles["arm"], atol=1e-14)
    # Velocities are linear in v.
    of_v = jax.jacfwd(lambda v: model.from_pinocchio(q, v).velocity)(v)
    np.testing.assert_allclose(of_v @ v, state.velocity, atol=1e-12)


def test_whole_revolutions_are_kept(tree):
    _, model = tree
    q, _ = model.to_pinocchio(model.state)
    nq = list(model.names.depth_first).index("arm")
    assert model.names.depth_first[0] == "free ground-base"
    start = 7 + (nq - 1)
    state = model.from_pinocchio(q.at[start].set(9.5))
    np.testing.assert_allclose(state.angles["arm"], 9.5)
    np.testing.assert_allclose(model.to_pinocchio(state)[0][start], 9.5)


def test_mimic_with_offset(tmp_path):
    finger = joint("finger", "revolute", "base", "plate", f'<axis xyz="0 0 1"/>{LIMIT}'
                   '<mimic joint="arm" multiplier="-2" offset="0.25"/>')  # fmt: skip
    mount = joint("tool_mount", "fixed", "arm", "tool")
    path = write(tmp_path, [JOINTS[0], finger, mount], ("base", "arm", "plate"))
    model = rj.models.load(path)
    (coupling,) = model.system.constraints
    np.testing.assert_allclose(coupling.ratio, -2.0)
    assert model.zeros["finger"] == 0.25
    assert model.limits["finger"].position == (-2.25, 1.25)
    state = rj.jointed_state(model.system, {"arm": 0.3})
    q, _ = model.to_pinocchio(state)
    np.testing.assert_allclose(q[-2:], [0.3, 0.25 - 0.6], atol=1e-14)
    assert "`Coupling` with -2 times 'arm'" in str(model.report)
    loose = rj.models.load(path, mimic=False)
    assert not loose.system.constraints and loose.zeros["finger"] == 0.0
    # The bodies are at the same place where the loose finger has the coordinate of the mimic.
    again = loose.from_pinocchio(q)
    np.testing.assert_allclose(again.position, state.position, atol=1e-14)


@pytest.mark.parametrize(
    ("arguments", "root"),
    [({}, "floats"), ({"fixed_base": True}, "ground"), ({"fixed_base": False}, "floats")],
    ids=["default", "fixed", "floating"],
)
def test_base(tmp_path, arguments, root):
    path = write(tmp_path, [JOINTS[0], JOINTS[3].replace('"hand"', '"arm"')], ("base", "arm"))
    model = rj.models.load(path, **arguments)
    assert (model.names.bodies == ("base", "arm")) == (root == "floats")
    world = path.read_text().replace('"base"', '"world"')
    path.write_text(world)
    assert rj.models.load(path).names.bodies == ("arm",)
    path.write_text(world.replace("revolute", "fixed"))
    # The base is the ground by its name.
    with pytest.raises(ValueError, match=r"no link can move; all are fixed to the ground\.$"):
        rj.models.load(path)
    path.write_text(world.replace("revolute", "fixed").replace('"world"', '"base"'))
    message = r"no link can move; all are fixed to the ground\. With `fixed_base=False` the base fl"
    with pytest.raises(ValueError, match=message):
        rj.models.load(path, fixed_base=True)


def test_impossible_inertias(tmp_path):
    path = write(tmp_path, [JOINTS[0], JOINTS[3].replace('"hand"', '"base"')], ("base", "arm"))
    path.write_text(path.read_text().replace('izz="0.05"', 'izz="0.5"'))
    message = "link 'arm': the inertia is not physical: its smallest principal Euler value is -0.21"
    with pytest.warns(UserWarning, match=message):
        kept = rj.models.load(path, fixed_base=True)
    with pytest.warns(UserWarning, match="replaced by the nearest physical one"):
        near = rj.models.load(path, fixed_base=True, physical="nearest")
    with pytest.raises(ValueError, match=message):
        rj.models.load(path, fixed_base=True, physical="error")
    with pytest.raises(ValueError, match=r'physical=...\)` must be "keep", "nearest" or "error"'):
        rj.models.load(path, physical="maybe")
    tensors = [np.asarray(m.system.bodies[0].inertia) for m in (kept, near)]
    moments = [np.sort(np.linalg.eigvalsh(tensor)) for tensor in tensors]
    assert moments[0][2] > moments[0][0] + moments[0][1]
    np.testing.assert_allclose(moments[1][2], moments[1][0] + moments[1][1], rtol=1e-12)
    assert len(kept.report.of_kind("warning")) == 1


def test_options_are_checked(tree):
    path, model = tree
    for options, message in (
        ({"lump_fixed": "some"}, "must be True, False or \"massless\"; got 'some'"),
        ({"fixed_base": "yes"}, "must be None, True or False; got 'yes'"),
        ({"mimic": None}, "must be True or False; got None"),
        ({"meshes": "all"}, "must be True or False; got 'all'"),
        ({"ignore": "mesh"}, "takes several; got 'mesh' alone. Write \\('mesh',\\)"),
        ({"packages": "/tmp"}, "takes several; got '/tmp' alone"),
    ):
        (name,) = options
        with pytest.raises(ValueError, match=rf"load\({name}=...\)` {message}"):
            rj.models.load(path, **options)
    with pytest.raises(ValueError, match='must be "pinocchio" or "mujoco"; got \'drake\''):
        model.velocity_map(model.state, "drake")
