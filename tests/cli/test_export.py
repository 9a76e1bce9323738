"""`rigidjax export`."""

from cli.case_files import ARM, PENDULUM, case_of
from cli.program import assert_refused

from rigidjax.cli.case import read_export_case

DRIVEN = (
    """
motor = [{ joint = "hinge", torque = { input = "u" } }]
inputs = { u = 0.5 }
sensor = [{ type = "JointCoordinate", joint = "hinge", columns = "angle", \
            file = "nowhere.csv", noise = 0.01 }]
parameter = [{ name = "inertia", path = "model.system.bodies.arm.inertia" }]
run = { solver = "dopri5", dt = 1e-3, t1 = 1.0 }
"""
    + ARM
)


def test_case_for_export(tmp_path):
    """Sensors need no data, and numbers of inputs are their defaults."""
    case = read_export_case(case_of(tmp_path, DRIVEN))
    assert case.arguments["dt"] == 1e-3 and "t1" not in case.arguments
    assert [sensor.name for sensor in case.arguments["outputs"]] == ["coordinate of hinge"]
    assert [parameter.name for parameter in case.arguments["parameters"]] == ["inertia"]
    assert float(case.model.system.forces[0].torque.default) == 0.5
    assert len(read_export_case(PENDULUM / "pendulum.toml").arguments["outputs"]) == 2


def test_refusals(tmp_path):
    case = case_of(tmp_path, DRIVEN)
    assert_refused(".fmu", "export", case, "--out", tmp_path / "arm.zip")
    assert_refused("nowhere.toml", "export", "nowhere.toml")
    out = "--out", tmp_path / "arm.fmu"
    assert_refused('must be "2.0" or "3.0"', "export", case, *out, "--fmi", "1.0")
    assert_refused("takes a list of names", "export", case, *out, "--platform", "riscv")
    # Options are checked before the case.
    bad = case_of(tmp_path, "[model]\nproblem = 3\n")
    assert_refused('must be "2.0" or "3.0"; got \'4\'', "export", bad, "--fmi", "4")
    assert not (tmp_path / "arm.fmu").exists()
