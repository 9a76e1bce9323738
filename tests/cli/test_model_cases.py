"""Cases with a model file: references to its parts, simulations, and a fit."""

import numpy as np
import pytest
from cli.case_files import URDF
from cli.program import assert_refused

import rigidjax as rj
from rigidjax.cli.case import read_run_case

# The arm of examples/pendulum, with the inertia of its data; its hinge is at the base link.
ROD = """<robot name="rod">
  <link name="world"/>
  <link name="arm">
    <inertial>
      <origin xyz="0.4 0 0"/><mass value="1.3"/>
      <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.06" iyz="0" izz="0.06"/>
    </inertial>
    <visual><origin xyz="0.4 0 0"/><geometry><box size="0.8 0.1 0.1"/></geometry></visual>
  </link>
  <joint name="hinge" type="continuous">
    <parent link="world"/><child link="arm"/><axis xyz="0 0 1"/><dynamics damping="0.05"/>
  </joint>
  <link name="tip"/>
  <joint name="end" type="fixed">
    <parent link="arm"/><child link="tip"/><origin xyz="0.8 0 0"/>
  </joint>
</robot>
"""


@pytest.fixture
def rod(tmp_path):
    (tmp_path / "rod.urdf").write_text(ROD)
    return tmp_path


def case_with(folder, text):
    path = folder / "case.toml"
    path.write_text(text)
    return path


def test_model_file_is_a_case(rod):
    case = read_run_case(rod / "rod.urdf", {"model": {"meshes": True}})
    assert (case.title, case.settings) == ("rod", {"t1": 1.0})
    np.testing.assert_array_equal(case.state0.position, [[0.4, 0.0, 0.0]])
    (body,) = case.model.system.bodies
    assert np.ptp(body.shape.vertices, axis=0) == pytest.approx([0.8, 0.1, 0.1])


def test_case_takes_options_of_the_loader(tmp_path):
    text = f"""
        body = [{{ name = "payload", mass = 0.7, inertia = [1e-3, 1e-3, 1e-3], \
                   position = [0.5, 0.0, 0.5] }}]
        joint = [{{ type = "Weld", parent = "tool", child = "payload" }}]
        force = [{{ type = "PointForce", body = "camera", force = [0.0, 0.0, 1.0] }}]
        frame = [{{ name = "probe", body = "left_finger" }}]
        motor = [{{ joint = "elbow", torque = 2.0 }}]
        method = {{ rtol = 1e-6 }}
        run = {{ t1 = 0.1, atol = 1e-7 }}
        [model]
        file = "{URDF}"
        formulation = "relative"
        mimic = false
        gravity = [0.0, 0.0, -1.62]
    """
    case = read_run_case(case_with(tmp_path, text))
    loaded = rj.models.load(URDF, mimic=False, gravity=(0.0, 0.0, -1.62)).system
    system = case.model.system
    assert isinstance(case.model, rj.Relative) and not system.constraints
    assert [b.name for b in system.bodies] == [*(b.name for b in loaded.bodies), "payload"]
    assert system.body_of["probe"] == "left_finger" and system.body_of["tool"] == "wrist"
    kinds = [type(force).__name__ for force in system.forces]
    assert kinds == ["Gravity", "PointForce", "Motor"]
    assert system.forces[0].vector.tolist() == [0.0, 0.0, -1.62]
    assert case.settings == {"rtol": 1e-6, "atol": 1e-7, "t1": 0.1}
    assert case.files[1] == str(URDF)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('model = "absent.urdf"', "There is no file .*absent.urdf"),
        ('[model]\nfile = "rod.urdf"\nignore = ["gear"]', r"\[model\]: `load\(ignore=\['gear'\]\)"),
        ('[model]\nfile = "rod.urdf"\nphysical = "no"', '"keep", "nearest" or "error"'),
        ('[model]\nfile = "rod.urdf"\nmimick = true', "no `mimick` here. Did you mean `mimic`"),
        ('[model]\nfile = "rod.urdf"\nproblem = "four_bar"', "remove `problem` or `file`"),
        ('[model]\nfile = "rod.urdf"\n[fixed_point_body]\ninertia = [1, 1, 1]',
         r"`file` is a model; remove `file` or \[fixed_point_body\]"),
        ('model = "rod.urdf"\n[[force]]\ntype = "Gravity"\nvector = [0, 0, 1]',
         r"a model file has gravity; set `gravity` in \[model\]"),
        ('model = "rod.urdf"\n[[motor]]\njoint = "hing"\ntorque = 1', "hing"),
        ('model = "rod.urdf"', r"no end time: set `t1` in its table \[run\], or `--t1`"),
        ('model = "rod.urdf"\n[run]\nt1 = -1', r"\[run\]: `t1 -1` must be positive"),
        ('model = "rod.urdf"\n[run]\nsample = 3', r"\[run\]: there is no `sample` here"),
        ('model = "rod.urdf"\n[run]\nt1 = 1\nsamples = 1', "must be 2 or more"),
    ],
)  # fmt: skip
def test_invalid_cases_are_refused(rod, text, message):
    assert_refused(message, "run", case_with(rod, text))


def test_settings_and_files_of_other_kinds_are_refused(rod):
    case = case_with(rod, 'model = "rod.urdf"\n[run]\nt1 = 0.5\n')
    assert_refused("`--set` changes problems", "run", case, "--set", "n=3")
    path = rod / "rod.xacro"
    path.write_text(ROD)
    assert_refused("macros of xacro are not expanded", "run", path)
