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

START = cases.model((0.016, 0.015, 0.006), 4e-4)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"model": rj.FixedPointBody([1.0, 1.0, 1.0])}, TypeError, r"takes a formulation such as"),
        ({"parameters": ["inertia"]}, TypeError, r"takes `rj.Parameter` objects; got str"),
        ({"parameters": []}, ValueError, r"needs parameters of different names"),
        ({"horizons": (0.5, 0.7)}, ValueError, r"must increase, from above 0, to 1"),
        ({"horizons": ()}, ValueError, r"must increase, from above 0, to 1"),
        ({"max_iterations": 2}, ValueError, r"must be at least 4; got 2"),
        ({"state0": [rj.State()]}, ValueError, r"one for each of the 3 runs; got 1"),
        (
            {"parameters": [Parameter("a", cases.drag_of), Parameter("b", cases.drag_of)]},
            ValueError,
            r"Parameters 'a' and 'b' pick the same leaf",
        ),
        (
            {"parameters": Parameter("x", lambda e: e.model.system.mass)},
            ValueError,
            r"`Parameter\('x', where=\.\.\.\)` finds nothing",
        ),
        (
            {"parameters": Parameter("x", lambda e: e.model.system)},
            ValueError,
            r"must pick one array of real numbers; got FixedPointBody",
        ),
        (
            {"parameters": Parameter("x", lambda e: e.model.system.inertia[0])},
            ValueError,
            r"must pick an array as it is stored",
        ),
        (
            {"parameters": Parameter("x", cases.inertia_of, labels=("a", "b"))},
            ValueError,
            r"must have 3 entries, one for each component",
        ),
        (
            {"parameters": Parameter("x", cases.inertia_of, start=[1.0])},
            ValueError,
            r"must have shape \(3,\); got \(1,\)",
        ),
        (
            {"parameters": Parameter("x", cases.inertia_of, start=[1.0, 1.0, np.nan])},
            ValueError,
            r"The start of x must be finite",
        ),
        (
            {"parameters": Parameter("x", cases.drag_of, Positive(), start=-1.0)},
            ValueError,
            r"The start of x cannot be used: a positive parameter must start above zero",
        ),
        (
            {"parameters": Parameter("x", cases.drag_of, PrincipalInertia())},
            ValueError,
            r"Parameter 'x': `PrincipalInertia` takes principal moments",
        ),
        (
            {
                "measurements": Measurements([0.0, 1.0], {Gyroscope(): np.ones((2, 3))}),
                "parameters": [Parameter("x", cases.inertia_of), *cases.parameters()[1:],
                               Parameter("y", cases.orientation_of, Orientation())],
            },
            ValueError,
            r"There are 6 scalar samples for 10 parameters",
        ),
        (
            {"measurements": Measurements([0.0, 1.0], {Gyroscope("a"): np.ones((2, 3))})},
            ValueError,
            r"a `FixedPointBody` has no name",
        ),
    ],
)  # fmt: skip
def test_invalid_arguments_raise(change, error, message):
    arguments = {
        "model": START,
        "measurements": ERROR_RUNS,
        "parameters": cases.parameters(),
        **change,
    }
    with pytest.raises(error, match=message):
        identify(**arguments)


ERROR_RUNS = [
    Measurements([0.0, 0.1, 0.2, 0.3], {Gyroscope(): np.ones((4, 3))}, name=f"{k}")
    for k in range(3)
]


def test_invalid_parameters_raise():
    with pytest.raises(TypeError, match=r"must be a non-empty string"):
        Parameter("", cases.drag_of)
    with pytest.raises(TypeError, match=r"must be a function of an `Experiment`"):
        Parameter("x", "inertia")
    with pytest.raises(TypeError, match=r"must be a transformation such as"):
        Parameter("x", cases.drag_of, "positive")
    assert Experiment(START, rj.State(), ()).model is START
