"""Descent along gradients before the least-squares iterations, and tied parameters."""

import numpy as np
import optax
import pytest
from identification import cases

import rigidjax as rj
from rigidjax.identification import FirstOrder, Measurements, Parameter, Positive, identify

START = cases.model((0.022, 0.0185, 0.006), 4e-4)
TS = np.linspace(0.0, 2.0, 41)
ANGLE = rj.JointCoordinate("hinge")


def first_of(experiment):
    return experiment.model.system.forces[0].stiffness


def second_of(experiment):
    return experiment.model.system.forces[1].stiffness


def vector_of(experiment):
    return experiment.model.system.bodies[0].inertia


@pytest.mark.exhaustive
def test_invalid_arguments_raise():
    with pytest.raises(TypeError, match=r"FirstOrder\(optimizer=...\)` must be an optimiser"):
        FirstOrder("adam")
    with pytest.raises(ValueError, match=r"steps=..., batch=...\)` must be positive; got 0"):
        FirstOrder(optax.adam(0.1), steps=0)
    data = cases.measurements(cases.NOISE, known=True)
    many = FirstOrder(optax.adam(0.1), batch=4)
    with pytest.raises(ValueError, match="at most the number of runs, 3; got 4"):
        identify(START, data, cases.parameters(), method=many)
    with pytest.raises(ValueError, match="identify_batch` has no `FirstOrder`"):
        rj.identification.identify_batch(START, [data], cases.parameters(), method=many)


def hinge(first, second):
    body = rj.Body("bob", 1.0, (0.3, 0.3, 0.5), (0.5, 0.0, 0.0))
    joint = rj.Revolute("ground", "bob", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), name="hinge")
    springs = [rj.TorsionSpring("hinge", first), rj.TorsionSpring("hinge", second)]
    return rj.NullSpace(rj.System(body, [joint], springs))


@pytest.mark.exhaustive
def test_tied_parameters():
    """Two equal springs are one parameter: the sum that the motion determines, halved."""
    state0 = rj.State((0.5, 0.0, 0.0), velocity=(0.0, 1.0, 0.0), angular_velocity=(0.0, 0.0, 2.0))
    root = np.sqrt(3.0 / 0.75)
    data = Measurements(TS, {ANGLE: 2.0 / root * np.sin(root * TS)}, {ANGLE: 1e-3})
    both = Parameter("stiffness", first_of, Positive(), tied=[second_of], unit="N m")
    options = {"state0": state0, "horizons": (1.0,), "projection": False}
    fit = identify(hinge(1.0, 2.5), data, both, **options)
    assert fit.estimates["stiffness"] == pytest.approx(1.5, abs=1e-6)
    springs = fit.model.system.forces
    assert springs[0].stiffness == springs[1].stiffness
    assert fit.identifiability.identifiable

    twice = Parameter("again", second_of, Positive())
    with pytest.raises(ValueError, match="'stiffness' and 'again' pick the same leaf"):
        identify(hinge(1.0, 2.5), data, [both, twice], state0=state0)
    other = Parameter("stiffness", first_of, Positive(), tied=[vector_of])
    with pytest.raises(ValueError, match=r"tied=...\)` must pick leaves of the same shape"):
        identify(hinge(1.0, 2.5), data, other, state0=state0)
    with pytest.raises(TypeError, match=r"tied=...\)` must be a list of functions"):
        Parameter("stiffness", first_of, tied=second_of)  # pyright: ignore[reportArgumentType]
