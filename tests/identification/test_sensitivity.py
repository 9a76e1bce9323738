"""Derivatives of trajectories: both modes against differences, choice of the mode, errors."""

import diffrax
import numpy as np
import pytest
from identification.cases import inertia_of

import rigidjax as rj
from rigidjax.identification import Parameter
from rigidjax.results import RESULTS

INERTIA = np.array([0.5, 0.4, 0.3])
STATE = rj.State(
    orientation=np.array([0.9, 0.3, -0.2, np.sqrt(1 - 0.94)]), angular_velocity=(1.0, -2.0, 6.0)
)


def first_moment_of(experiment):
    return experiment.model.system.potential.first_moment


def top(formulation, inertia=INERTIA, **options):
    potential = rj.GravityPotential((0.1, -0.05, 0.4), (0.0, 0.0, -9.81))
    return formulation(rj.FixedPointBody(inertia, potential), **options)


def parameters(inertia=None, first_moment=None):
    return (
        Parameter("I", inertia_of, start=inertia, unit="kg m^2"),
        Parameter("mc", first_moment_of, start=first_moment, unit="kg m"),
    )


def test_failures_are_reported():
    model = top(rj.NullSpace)
    arguments = (model, STATE, 0.5, Parameter("I", inertia_of))
    with pytest.raises(rj.SimulationError, match=r"maximum number of"):
        rj.sensitivity(*arguments, solver=diffrax.Heun(), max_steps=2)
    found = rj.sensitivity(*arguments, solver=diffrax.Heun(), max_steps=2, throw=False)
    assert found.result == RESULTS.max_steps_reached


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"model": 3}, TypeError, r"`sensitivity\(model, \.\.\.\)` takes a formulation"),
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
    arguments = {
        "model": top(rj.NullSpace), "state0": STATE, "t1": 1.0,
        "parameters": Parameter("I", inertia_of), **change,
    }  # fmt: skip
    with pytest.raises(error, match=message):
        rj.sensitivity(**arguments)
