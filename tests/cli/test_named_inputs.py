"""Cases with actuators and named inputs, `{ input = "u" }`."""

from typing import Any

import jax
import numpy as np
import pytest
from cli.case_files import ARM

import rigidjax as rj
from rigidjax.cli.case import read_case, read_run_case
from rigidjax.identification.experiment.inputs import bind_measured

MOTOR = """
[[force]]
type = "DCMotor"
joint = "hinge"
command = { input = "volts" }
resistance = 1.5
inductance = 0.3
torque_constant = 0.4
"""
DATA = """
data = { file = "run.csv", time = "t", run = "run" }
sensor = [{ type = "JointRate", joint = "hinge", columns = ["rate"], noise = 0.001 }]
parameter = [{ name = "k", path = "model.system.forces.DCMotor.torque_constant" }]
"""


def case_in(folder, text):
    (folder / "case.toml").write_text(text)
    return folder / "case.toml"


def test_motors_with_measured_voltages(tmp_path):
    """A case is the model in Python; runs need values of the input, and one segment."""
    ts, zeros = np.arange(3.0), np.zeros(3)
    (tmp_path / "run.csv").write_text("run,t,volts,rate\n1,0,3,0\n1,1,4,0\n1,2,5,0\n")
    text = DATA + ARM + MOTOR + '[inputs]\nvolts = { columns = ["volts"] }\n'
    case = read_case(case_in(tmp_path, text))
    arm = rj.Body("arm", 1.0, (0.5, 0.4, 0.3))
    hinge = rj.Revolute("ground", "arm", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), name="hinge")
    volts = rj.Input("volts", default=None)
    model = rj.NullSpace(rj.System(arm, hinge, rj.DCMotor("hinge", volts, 1.5, 0.3, 0.4)))
    sensor: Any = rj.JointRate("hinge")
    inputs = {"volts": (ts, ts + 3.0)}
    run = rj.Measurements(ts, {sensor: zeros}, {sensor: 1e-3}, inputs=inputs)
    bound = bind_measured(model, run.inputs)
    assert jax.tree.structure(bound) == jax.tree.structure(case.model)
    (found,) = case.measurements
    np.testing.assert_allclose(found.inputs["volts"], run.inputs["volts"], rtol=1e-14)
    state = model.system.reference_state()
    with pytest.raises(ValueError, match="`identify.segments=.*states of actuators are not among"):
        rj.identify(model, [run], case.parameters, state0=state, segments=2)
    without = [rj.Measurements(ts, {sensor: zeros}, {sensor: 1e-3})]
    with pytest.raises(ValueError, match="no values of the input 'volts', which has no default"):
        rj.identify(model, without, case.parameters, state0=state)


def test_every_actuator_can_be_described(tmp_path):
    text = ARM + """
[inputs]
u = 0.5
""" + "".join(
        f'[[force]]\njoint = "hinge"\ncommand = {{ input = "u" }}\n{rest}\n'
        for rest in (
            'type = "LaggedMotor"\ntime_constant = 0.1\nlimit = 2.0',
            'type = "PIController"\nproportional = 1.0\nintegral = 2.0\nvariable = "coordinate"',
            'type = "PIDController"\nproportional = 1.0\nintegral = 2.0\nderivative = 0.1\n'
            "filter_time = 0.01\ninitial = [0.1, 0.0]",
            'type = "PositionServo"\nstiffness = 9.0\ndamping = 1.0\nnatural_frequency = 20.0',
        )
    )  # fmt: skip
    model = read_run_case(case_in(tmp_path, text)).model
    system: Any = model.system
    kinds = [rj.LaggedMotor, rj.PIController, rj.PIDController, rj.PositionServo]
    assert [type(force) for force in system.forces] == kinds
    assert model.layout.num_states == 6


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[inputs]", "[other]", r"there is no `other` here"),
        ("volts = 2.0", "", r"\[\[force\]\] 1: the input 'volts' has neither a value nor"),
        ("volts = 2.0", "volts = 2.0\nvolt = 1.0",
         r"\[inputs\], \[volt\]: no law of the model names the input 'volt'.*mean 'volts'"),
        ("volts = 2.0", "volts = [2.0, 1.0]",
         r"\[inputs\], \[volts\]: `inputs\['volts'\]` must have shape \(\); got shape \(2,\)"),
        ("volts = 2.0", 'volts = "high"', r"\[inputs\], \[volts\]: `value` must be a number or an"),
        ("volts = 2.0", "volts = { columns = [] }",
         r"\[volts\]: `columns` must name at least one column"),
        ("volts = 2.0", "volts = nan", r"\[inputs\], \[volts\]: .*must be finite"),
        ("volts = 2.0", "volts = { value = 1.0, unit = 'V' }", r"there is no `unit` here"),
        ("volts = 2.0", 'volts = { type = "fourier", frequency = 1.0, sine = [[1.0, 0.0, 0.0]] }',
         r"\[volts\]: the series has the shape \(3,\), but the input 'volts' of the model"),
        ("volts = 2.0", 'volts = 2.0\n[[input]]\nname = "volts"\nvalue = 1.0',
         r"\[inputs\], \[volts\]: there are two inputs called 'volts'"),
        ('{ input = "volts" }', '{ inputs = "volts" }',
         r"\[\[force\]\] 1, \[command\]: there is no `inputs` here. Did you mean `input`"),
        ('{ input = "volts" }', '{ input = "volts", entry = 1 }',
         r"\[command\]: `Input\('volts'\)` is a scalar and has no entries"),
        ('{ input = "volts" }', '{ input = "volts", size = 0 }',
         r"\[command\]: `Input\(size=...\)` must be an integer above 0"),
        ("resistance = 1.5", "resistance = -1.5",
         r"\[\[force\]\] 1: `DCMotor\(resistance=...\)` must be positive"),
    ],
)  # fmt: skip
def test_invalid_named_inputs_are_located(tmp_path, old, new, message):
    text = ARM + MOTOR + "[inputs]\nvolts = 2.0\n"
    assert old in text
    with pytest.raises(ValueError, match=message):
        read_run_case(case_in(tmp_path, text.replace(old, new)))
