"""Cases with actuators and named inputs, `{ input = "u" }`, and a fit with measured inputs."""

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
[data]
file = "run.csv"
time = "t"
run = "run"
[[sensor]]
type = "JointRate"
joint = "hinge"
columns = ["rate"]
noise = 0.001
"""
PARAMETERS = """
[[parameter]]
name = "R"
path = 'model.system.forces["DCMotor hinge"].resistance'
transform = "positive"
start = 1.0
[[parameter]]
name = "k"
path = "model.system.forces.DCMotor.torque_constant"
transform = "positive"
start = 0.6
"""
VOLTS = '\n[inputs]\nvolts = { columns = ["volts"] }\n'


def case_in(folder, text):
    (folder / "case.toml").write_text(text)
    return folder / "case.toml"


def arm_with(*forces):
    arm = rj.Body("arm", 1.0, (0.5, 0.4, 0.3))
    hinge = rj.Revolute("ground", "arm", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), name="hinge")
    return rj.NullSpace(rj.System(arm, hinge, forces))


def motor():
    return rj.DCMotor("hinge", rj.Input("volts", default=None), 1.5, 0.3, 0.4)


def measure(folder):
    """Write two runs with different voltages; return their measurements."""
    model, rows, runs = arm_with(motor()), ["run,t,volts,rate"], []
    for number, end in ((1, 1.5), (2, 1.0)):
        ts = np.round(np.arange(0.0, end + 0.01, 0.05), 10)
        volts = 3.0 + number * np.sin(4.0 * ts)
        inputs = {"volts": rj.Signal(ts, volts)}
        sol = rj.simulate(
            model, model.system.reference_state(), end, ts=ts, inputs=inputs, rtol=1e-11, atol=1e-11
        )
        rates = np.asarray(sol.rates["hinge"])[:, 0]
        rows += [f"{number},{t},{u},{v}" for t, u, v in zip(ts, volts, rates, strict=True)]
        sensor: Any = rj.JointRate("hinge")
        data = {sensor: rates}, {sensor: 1e-3}
        runs.append(rj.Measurements(ts, *data, inputs={"volts": (ts, volts)}, name=str(number)))
    (folder / "run.csv").write_text("\n".join(rows) + "\n")
    return runs


@pytest.mark.exhaustive
@pytest.mark.exhaustive
def test_fit_of_a_motor_with_measured_voltages(tmp_path):
    """In Python and as a case; without noise the fit is the truth."""
    runs = measure(tmp_path)
    case = read_case(case_in(tmp_path, ARM + MOTOR + DATA + VOLTS + PARAMETERS))
    model = arm_with(motor())
    bound = bind_measured(model, runs[0].inputs)
    assert jax.tree.structure(bound) == jax.tree.structure(case.model)
    for found, run in zip(case.measurements, runs, strict=True):
        np.testing.assert_allclose(found.inputs["volts"], run.inputs["volts"], rtol=1e-14)
    state = model.system.reference_state()
    fit = rj.identify(model, runs, case.parameters, state0=state)
    assert fit.converged and fit.labels == ("R", "k")
    np.testing.assert_allclose(fit.values, [1.5, 0.4], rtol=1e-6)
    with pytest.raises(ValueError, match="`identify.segments=.*states of actuators are not among"):
        rj.identify(model, runs, case.parameters, state0=state, segments=2)
    without = [rj.Measurements(r.ts, dict(zip(r.sensors, r.values, strict=True))) for r in runs]
    with pytest.raises(ValueError, match="no values of the input 'volts', which has no default"):
        rj.identify(model, without, case.parameters, state0=state)
    wrong = rj.DCMotor("hinge", rj.Input("volts", 2)[1], 1.5, 0.3, 0.4)
    with pytest.raises(ValueError, match=r"values of 'volts' must have shape \(K, 2\), as in"):
        bind_measured(arm_with(wrong), runs[0].inputs)


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
