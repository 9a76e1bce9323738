"""Fits with measured inputs, and known values, of every run its own."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from cli.case_files import case_of, replace_text

import rigidjax as rj
from rigidjax.cli.case import read_case
from rigidjax.identification import InertiaTensor, Known
from rigidjax.identification.data.measurements import stack_runs
from rigidjax.identification.search.problem import make_problem

INERTIA = np.array([[0.5, 0.02, -0.01], [0.02, 0.4, 0.03], [-0.01, 0.03, 0.3]])
GYROSCOPE: Any = rj.Gyroscope()


def _inertia(experiment: Any) -> Any:
    return experiment.model.system.inertia


def _delay(experiment: Any) -> Any:
    return experiment.model.system.moment.delay


PARAMETERS = (
    rj.Parameter("J", _inertia, InertiaTensor(), unit="kg m^2"),
    rj.Parameter("delay", _delay, unit="s"),
)


def model_with(ts, torque, inertia, delay: Any, **options):
    given: Any = {"extrapolation": "constant", "name": "wheels"} | options
    signal = rj.Signal(ts, torque, delay=delay, **given)
    return rj.NullSpace(rj.FixedPointBody(inertia, moment=signal))


@pytest.fixture(scope="module")
def runs():
    """Two runs of different length with torques."""
    found = []
    for end in (6.0, 4.0):
        ts, at = np.arange(0.0, end + 0.01, 0.25), np.arange(0.0, end + 0.01, 0.1)
        inputs = {"wheels": (ts, np.ones((len(ts), 3)))}
        found.append(rj.Measurements(at, {GYROSCOPE: np.zeros((len(at), 3))}, inputs=inputs))
    return found


def _with_inputs(run, inputs):
    return eqx.tree_at(lambda m: m.inputs, run, inputs, is_leaf=lambda x: x is run.inputs)


def test_invalid_inputs_raise(runs):
    ts, torque = runs[0].inputs["wheels"]
    stacked, how = stack_runs(runs), None

    def build_problem(model, given=stacked, parameters=PARAMETERS):
        anything: Any = how
        return make_problem(model, given, [rj.State()] * 2, parameters, anything)

    with pytest.raises(
        ValueError, match="no `Signal` or `Input` of the model has this name; there are"
    ):
        build_problem(model_with(ts, torque, INERTIA, 0.0, name="wheel"))
    single = [_with_inputs(run, {"wheels": (ts, torque[:, 0])}) for run in runs]
    with pytest.raises(ValueError, match=r"values of 'wheels' must have shape \(K, 3\), as in"):
        build_problem(model_with(ts, torque, INERTIA, 0.0), stack_runs(single))
    with pytest.raises(ValueError, match="The delay of the Signal 'wheels' is fitted, but its tab"):
        build_problem(model_with(ts, torque, INERTIA, 0.0, extrapolation="error"))
    with pytest.raises(ValueError, match=r"run 1 from 0 to 6 s goes beyond .* covers 0.01 to 6.01"):
        build_problem(
            model_with(ts, torque, INERTIA, 0.01, extrapolation="error"), parameters=PARAMETERS[:1]
        )
    other = _with_inputs(runs[1], {})
    with pytest.raises(ValueError, match=r"All runs must have the same `Measurements\(inputs="):
        build_problem(model_with(ts, torque, INERTIA, 0.0), stack_runs([runs[0], other]))
    for inputs, message in (
        ({"wheels": ts}, r"takes a pair \(ts, values\) for 'wheels'; got"),
        ({"wheels": (ts, ts[:3])}, r"'wheels': `Signal\(values=...\)` must have shape"),
    ):
        anything: Any = inputs
        with pytest.raises(ValueError, match=message):
            rj.Measurements(ts, {GYROSCOPE: jnp.zeros((len(ts), 3))}, inputs=anything)
    wrong: Any = {3: (ts, ts)}
    with pytest.raises(TypeError, match="are names of signals or inputs; got 3"):
        rj.Measurements(ts, {GYROSCOPE: jnp.zeros((len(ts), 3))}, inputs=wrong)


def test_known_values_in_cases(tmp_path):
    """`transform = "known"` holds a value, for each run its own with a leading axis."""
    table = (
        '[[parameter]]\nname = "load"\npath = "model.system.bodies.arm.mass"\n'
        'transform = "known"\nper_run = true\nstart = [1.4]\n\n[method]'
    )
    case = read_case(case_of(tmp_path, replace_text("[method]", table)))
    known = case.parameters[-1]
    assert isinstance(known.transform, Known) and known.per_run
    np.testing.assert_array_equal(np.asarray(known.start), [1.4])
    wrong = table.replace('"known"', '"known"\nlower = 0.0')
    with pytest.raises(ValueError, match="lower"):
        read_case(case_of(tmp_path, replace_text("[method]", wrong)))
