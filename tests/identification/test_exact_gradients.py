"""Derivatives of trajectories by every kind of solver, against digits of `tools/exact`.

A body turns about a fixed point; the derivatives of its attitude and rates at the end are those by
its moments of inertia, the moment that acts on it and its start rates.
"""

import json

import diffrax
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.identification import Parameter
from tools.exact import gradients as reference

EXACT = {
    name: np.array(columns, float).T
    for name, columns in json.loads(reference.FILE.read_text()).items()
}
PARAMETERS = (
    Parameter("J", lambda e: e.model.system.inertia),
    Parameter("mu", lambda e: e.model.system.moment.value),
    Parameter("Omega", lambda e: e.state0.angular_velocity),
)
BODY = rj.FixedPointBody(reference.INERTIA, moment=rj.ConstantMoment(reference.MOMENT))
STATE = rj.State(angular_velocity=reference.RATES)
RADAU = rj.solvers.Radau5()
# The steps of the last one are exact, the others are as good as their tolerance.
CASES = {
    "explicit": ("motion", rj.NullSpace(BODY), diffrax.Dopri8(), {"rtol": 1e-13, "atol": 1e-13}),
    "implicit": ("motion", rj.NullSpace(BODY), RADAU, {"rtol": 1e-10, "atol": 1e-10}),
    "index 3": ("motion", rj.Absolute(BODY, index=3), RADAU, {"rtol": 1e-9, "atol": 1e-9}),
    "structure-preserving": (
        "steps",
        rj.NullSpace(BODY),
        rj.solvers.EnergyMomentum(),
        {"dt": reference.END / reference.NUM_STEPS},
    ),
}


def relative_error(found, sensors, expected):
    J = np.concatenate([found.jacobian[sensor.name][-1] for sensor in sensors])
    return np.max(np.abs(J - expected)) / np.max(np.abs(expected))


@pytest.mark.exhaustive(but=("explicit-forward",))
@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("case", CASES)
def test_gradients_against_thirty_digits(case, mode):
    name, model, solver, options = CASES[case]
    sensors = (rj.Attitude(), rj.Gyroscope())
    found = rj.sensitivity(
        model, STATE, reference.END, PARAMETERS, sensors=sensors, mode=mode, solver=solver,
        **options,
    )  # fmt: skip
    assert found.mode == mode
    assert relative_error(found, sensors, EXACT[name]) < 1e-8


@pytest.mark.parametrize("name", EXACT)
def test_stored_digits_are_reproduced(name):
    """One column again, by fewer digits and another difference."""
    function = {"motion": reference.motion, "steps": reference.steps}[name]
    again = reference.column(function, 4, digits=50, step=12)
    np.testing.assert_allclose(np.array(again, float), EXACT[name][:, 4], rtol=1e-14)
