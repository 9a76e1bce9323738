"""Friction, springs and stops of joints, and cables, in case files."""

import pytest
from cli.case_files import case_of

from rigidjax.cli.case import read_case

CASE = """
body = [{ name = "block", mass = 2.0, inertia = [0.1, 0.1, 0.1] }]
[[joint]]
type = "Prismatic"
name = "slide"
parent = "ground"
child = "block"
axis = [1.0, 0.0, 0.0]
stiffness = 20.0
rest = 0.1
limits = [-inf, 0.5]
friction = { coulomb = 1.5, viscous = 0.2, stribeck = [2.0, 0.1], velocity = 0.05 }
stop = { stiffness = 900.0, dissipation = 0.3 }
[[force]]
type = "Cable"
points = [["ground", [-1.0, 0.0, 0.0]], ["ground", [-1.0, 1.0, 0.0]], "block"]
stiffness = 5.0
length = 4.0
[state]
joints = { slide = 0.4 }
joint_rates = { slide = 2.0 }
"""
REST = """
sensor = [{ type = "JointCoordinate", joint = "slide", columns = ["x"], noise = 1e-4 }]
data = { file = "slide.csv", time = "t" }
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "slide.csv").write_text("t,x\n0,0.4\n0.1,0.5\n")
    return tmp_path


URDF = """<robot name="arm"><link name="world"/><link name="one"><inertial><mass value="1"/>
<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
<joint name="hinge" type="revolute"><parent link="world"/><child link="one"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="0.5" effort="9" velocity="9"/><dynamics friction="0.4"/></joint></robot>
"""


def test_model_files_take_friction_and_stops_from_the_case(folder):
    (folder / "arm.urdf").write_text(URDF)
    rest = REST.replace('"slide"', '"hinge"') + "state = { joints = { hinge = 0.4 } }\n"
    rest += 'parameter = [{ name = "m", path = "model.system.bodies.one.mass" }]\n'
    cases = {
        "": (0.01, None),
        "friction_velocity = 0.2\nstops = { stiffness = 300.0 }\n": (0.2, 300.0),
        "friction = false\n": (None, None),
    }
    for options, (velocity, stiffness) in cases.items():
        text = f'{rest}[model]\nfile = "arm.urdf"\n{options}'
        (joint,) = read_case(case_of(folder, text)).model.system.joints
        assert (joint.friction and float(joint.friction.velocity[0])) == velocity
        assert (joint.stop and float(joint.stop.stiffness[0])) == stiffness
    text = f'{rest}[model]\nfile = "arm.urdf"\nstops = 3.0\n'
    with pytest.raises(ValueError, match=r"`stops` must be a table; got 3.0"):
        read_case(case_of(folder, text))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "friction = { coulomb = 1.5, ",
            "friction = 0.3 #",
            r"`friction` must be a table; got 0.3",
        ),
        ("viscous = 0.2", "viscuous = 0.2", r"\[friction\]: there is no `viscuous` here. Did you"),
        ("coulomb = 1.5, ", "", r"\[friction\]: `coulomb` is missing, an argument of Friction"),
        ("coulomb = 1.5", "coulomb = -1.5", r"`Friction\(coulomb=...\)` must not be negative"),
        ("limits = [-inf, 0.5]", "limits = [0.5, -0.5]", r"`Prismatic\(limits=...\)` must be"),
        ('"block"]\nstiffness', '"blok"]\nstiffness', r"Did you mean 'block'"),
    ],
)
def test_invalid_tables_are_refused(folder, old, new, message):
    assert old in CASE
    with pytest.raises(ValueError, match=message):
        read_case(case_of(folder, REST + CASE.replace(old, new)))
