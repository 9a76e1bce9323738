"""Arguments of `identify` and `Parameter` that do not fit."""

import numpy as np
import pytest
from identification import cases

import rigidjax as rj
from rigidjax.identification import (
    Experiment,
    Gyroscope,
    Measurements,
    Orientation,
    Parameter,
    Positive,
    PrincipalInertia,
    identify,
)

RUNS = [Measurements([0.0, 0.1, 0.2], {Gyroscope(): np.ones((3, 3))}, name=name) for name in "abc"]


def fit(parameters=None, model=cases.START, measurements=RUNS, **options):
    return identify(model, measurements, parameters or cases.parameters(), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizons": (0.5, 0.7)}, r"must increase, from above 0, to 1"),
        ({"horizons": ()}, r"must increase, from above 0, to 1"),
        ({"max_iterations": 2}, r"must be at least 4; got 2"),
        ({"state0": [rj.State()]}, r"one for each of the 3 runs; got 1"),
    ],
)
def test_invalid_options_raise(options, message):
    with pytest.raises(ValueError, match=message):
        fit(**options)


@pytest.mark.parametrize(
    ("where", "options", "message"),
    [
        (lambda e: e.model.system.mass, {}, r"`Parameter\('x', where=\.\.\.\)` finds nothing"),
        (lambda e: e.model.system, {}, r"one array of real numbers; got FixedPointBody"),
        (lambda e: e.model.system.inertia[0], {}, r"must pick an array as it is stored"),
        (cases.inertia_of, {"labels": ("a", "b")}, r"must have 3 entries, one for each component"),
        (cases.inertia_of, {"start": [1.0]}, r"must have shape \(3,\); got \(1,\)"),
        (cases.inertia_of, {"start": [1.0, 1.0, np.nan]}, r"The start of x must be finite"),
        (
            cases.drag_of,
            {"transform": Positive(), "start": -1.0},
            r"The start of x cannot be used: a positive parameter must start above zero",
        ),
        (
            cases.drag_of,
            {"transform": PrincipalInertia()},
            r"Parameter 'x': `PrincipalInertia` takes principal moments",
        ),
    ],
)
def test_invalid_parameters_of_a_fit_raise(where, options, message):
    with pytest.raises(ValueError, match=message):
        fit(Parameter("x", where, **options))


def test_invalid_arguments_raise():
    with pytest.raises(TypeError, match=r"takes a system or a formulation such as"):
        fit(model=1.0)
    with pytest.raises(TypeError, match=r"takes `rj.Parameter` objects; got str"):
        fit(["inertia"])
    with pytest.raises(ValueError, match=r"needs parameters of different names"):
        fit([Parameter("a", cases.drag_of), Parameter("a", cases.inertia_of)])
    with pytest.raises(ValueError, match=r"Parameters 'a' and 'b' pick the same leaf"):
        fit([Parameter("a", cases.drag_of), Parameter("b", cases.drag_of)])
    two = Measurements([0.0, 1.0], {Gyroscope(): np.ones((2, 3))})
    orientation = Parameter("y", cases.orientation_of, Orientation())
    with pytest.raises(ValueError, match=r"There are 6 scalar samples for 9 parameters"):
        fit([*cases.parameters(), orientation], measurements=two)
    named = Measurements([0.0, 1.0], {Gyroscope("a"): np.ones((2, 3))})
    with pytest.raises(ValueError, match=r"a `FixedPointBody` has no name"):
        fit(measurements=named)
    with pytest.raises(TypeError, match=r"must be a non-empty string"):
        Parameter("", cases.drag_of)
    with pytest.raises(TypeError, match=r"must be a function of an `Experiment`"):
        Parameter("x", "inertia")
    with pytest.raises(TypeError, match=r"must be a transformation such as"):
        Parameter("x", cases.drag_of, "positive")
    assert Experiment(cases.START, rj.State(), ()).model is cases.START
