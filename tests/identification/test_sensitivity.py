"""Failures and invalid arguments of derivatives of trajectories."""

import diffrax
import pytest
from identification.cases import inertia_of

import rigidjax as rj
from rigidjax.identification import Parameter
from rigidjax.results import RESULTS

MODEL = rj.NullSpace(rj.FixedPointBody((0.5, 0.4, 0.3)))
STATE = rj.State(angular_velocity=(1.0, -2.0, 6.0))
INERTIA = Parameter("I", inertia_of)


def test_failures_are_reported():
    arguments = (MODEL, STATE, 0.5, INERTIA)
    with pytest.raises(rj.SimulationError, match=r"maximum number of"):
        rj.sensitivity(*arguments, solver=diffrax.Heun(), max_steps=2)
    found = rj.sensitivity(*arguments, solver=diffrax.Heun(), max_steps=2, throw=False)
    assert found.result == RESULTS.max_steps_reached


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"model": 3}, TypeError, r"`sensitivity\(model, \.\.\.\)` takes a system"),
        ({"mode": "adjoint"}, ValueError, r'must be "forward", "reverse" or None; got \'adjoint\''),
        ({"sensors": ["gyroscope"]}, TypeError, r"takes sensors such as `rj.Gyroscope\(\)`"),
        ({"sensors": [rj.Gyroscope(), rj.Gyroscope()]}, ValueError, r"needs a name of its own"),
        ({"sensors": rj.JointRate("x")}, ValueError, r"this model has no joints"),
        ({"parameters": ["I"]}, TypeError, r"takes `rj.Parameter` objects; got str"),
        ({"parameters": []}, ValueError, r"needs parameters of different names; got \[\]"),
        (
            {"parameters": Parameter("I", inertia_of, start=[1.0])},
            ValueError,
            r"`Parameter\('I', start=\.\.\.\)` must have shape \(3,\); got \(1,\)",
        ),
        (
            {"parameters": [Parameter("a", inertia_of), Parameter("b", inertia_of)]},
            ValueError,
            r"Parameters 'a' and 'b' pick the same leaf",
        ),
        ({"ts": [0.5, 0.1]}, ValueError, r"must be strictly increasing"),
    ],
)
def test_invalid_arguments_raise(change, error, message):
    arguments = {"model": MODEL, "state0": STATE, "t1": 1.0, "parameters": INERTIA, **change}
    with pytest.raises(error, match=message):
        rj.sensitivity(**arguments)
