"""Friction, springs and stops of joints, and cables, in case files and in fits."""

import numpy as np
import pytest
from cli.case_files import case_of

import rigidjax as rj
from rigidjax.cli.case import read_case

CASE = """
[[body]]
name = "block"
mass = 2.0
inertia = [0.1, 0.1, 0.1]
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
[data]
file = "slide.csv"
time = "t"
[[sensor]]
type = "JointCoordinate"
joint = "slide"
columns = ["x"]
noise = 1e-4
"""
PATHS = {
    "model.system.joints.slide.friction.coulomb": 1.5,
    "model.system.joints.slide.friction.viscous": 0.2,
    "model.system.joints.slide.friction.stribeck.static": 2.0,
    "model.system.joints.slide.friction.velocity": 0.05,
    "model.system.joints.slide.stiffness": 20.0,
    "model.system.joints.slide.rest": 0.1,
    "model.system.joints.slide.stop.dissipation": 0.3,
    "model.system.forces.Cable.length": 4.0,
}
PARAMETERS = "".join(
    f'[[parameter]]\nname = "p{k}"\npath = "{path}"\n' for k, path in enumerate(PATHS)
)


def system_of_case():
    """The system of `CASE`, built in Python."""
    friction = rj.Friction(1.5, 0.2, (2.0, 0.1), 0.05)
    slide = rj.Prismatic(
        "ground", "block", (1, 0, 0), name="slide", stiffness=20.0, rest=0.1,
        limits=(-np.inf, 0.5), friction=friction, stop=rj.Stop(900.0, 0.3),
    )  # fmt: skip
    cable = rj.Cable([("ground", (-1, 0, 0)), ("ground", (-1, 1, 0)), "block"], 5.0, length=4.0)
    return rj.System(rj.Body("block", 2.0, (0.1, 0.1, 0.1)), [slide], cable)


@pytest.fixture(scope="module")
def run():
    """The motion of the block, which rebounds from its stop."""
    system = system_of_case()
    state = rj.jointed_state(system, {"slide": 0.4}, {"slide": 2.0})
    ts = np.linspace(0, 1.0, 41)
    sol = rj.simulate(rj.NullSpace(system), state, 1.0, ts=ts)
    x = np.asarray(sol.states.position[:, 0, 0])
    assert x.max() > 0.55
    return ts, x


@pytest.fixture
def folder(tmp_path, run):
    rows = [f"{t!r},{x!r}" for t, x in zip(*(values.tolist() for values in run), strict=True)]
    (tmp_path / "slide.csv").write_text("\n".join(["t,x", *rows]))
    return tmp_path


URDF = """<robot name="arm"><link name="world"/><link name="one"><inertial><mass value="1"/>
<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
<joint name="hinge" type="revolute"><parent link="world"/><child link="one"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="0.5" effort="9" velocity="9"/><dynamics friction="0.4"/></joint></robot>
"""


@pytest.mark.exhaustive
def test_model_files_take_friction_and_stops_from_the_case(folder):
    (folder / "arm.urdf").write_text(URDF)
    rest = CASE[CASE.index("[data]") :].replace('"slide"', '"hinge"')
    rest += "[state]\njoints = { hinge = 0.4 }\n"
    rest += '[[parameter]]\nname = "m"\npath = "model.system.bodies.one.mass"\n'
    cases = {
        "": (0.01, None),
        "friction_velocity = 0.2\nstops = { stiffness = 300.0 }\n": (0.2, 300.0),
        "friction = false\n": (None, None),
    }
    for options, (velocity, stiffness) in cases.items():
        text = f'[model]\nfile = "arm.urdf"\n{options}{rest}'
        (joint,) = read_case(case_of(folder, text)).model.system.joints
        assert (joint.friction and float(joint.friction.velocity[0])) == velocity
        assert (joint.stop and float(joint.stop.stiffness[0])) == stiffness
    text = f'[model]\nfile = "arm.urdf"\nstops = 3.0\n{rest}'
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
        read_case(case_of(folder, CASE.replace(old, new) + PARAMETERS))
