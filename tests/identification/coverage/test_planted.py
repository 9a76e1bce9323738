"""Forty experiments whose identifiability is planted: no verdict may be wrong.

Parameters are zero or on a bound, noise is dependent, and inputs excite only some of them.
"""

import numpy as np
import pytest
from identification import planted
from identification.planted import (
    UNSEEN,
    draw_dependent,
    draw_outliers,
    draw_steps,
    draw_white,
    fit_planted,
)

TRIAXIAL, SYMMETRIC, SPHERE = (0.02, 0.017, 0.006), (0.02, 0.02, 0.03), (0.02, 0.02, 0.02)
TUMBLING, TORQUE, NO_TORQUE = (1.0, 9.0, -4.0), (0.1, 0.0, 0.0), (0.0, 0.0, 0.0)
ALL = {"I1", "I2", "I3", "drag"}


def free_body(torque, drag):
    return planted.free_body(TRIAXIAL, torque, TUMBLING, drag), planted.FREE_DRAG


def bounded_drag():
    return planted.free_body(TRIAXIAL, TORQUE, TUMBLING, 0.0), planted.FREE_BOUND


def servo(*numbers):
    return planted.servo(*numbers), planted.SERVO


def pendulum(torque, camera):
    return planted.pendulum(torque, camera), planted.PENDULUM


def mounted_gyroscope(inertia):
    return planted.mounted_experiment(inertia, TUMBLING), planted.MOUNTED


TWO, FOUR = (draw_white, draw_dependent), (draw_white, draw_dependent, draw_outliers, draw_steps)
TURNED = {"mounting", "rate[0]", "rate[1]"}
# Experiments, the changes of parameters that change no prediction, and the errors of the data.
EXPERIMENTS = {
    "body": (lambda: free_body(TORQUE, 2e-4), [], FOUR),
    "no torque": (lambda: free_body(NO_TORQUE, 2e-4), [ALL], FOUR),
    "drag zero": (lambda: free_body(TORQUE, 0.0), [], FOUR),
    "drag on bound": (bounded_drag, [], FOUR),
    "servo": (lambda: servo(2, 3, 0.5), [], TWO),
    "no voltage": (lambda: servo(0, 3, 0.5), [{"c", "K"}], TWO),
    "equal springs": (lambda: servo(2, 3, 0), [{"k1", "k2"}], TWO),
    "servo without torque": (lambda: servo(2, 0, 0.5), [{"I3", "k1", "k2", "c", "K"}], TWO),
    "oscillator": (lambda: servo(0, 0, 0), [{"c", "K"}, {"k1", "k2"}, {"I3", "k2", "K"}], TWO),
    "pendulum": (lambda: pendulum(0.0, UNSEEN), [{"length", "I1"}, {"mass", "I1"}], TWO),
    "seen pendulum": (lambda: pendulum(0.0, 0.001), [{"mass", "I1"}], TWO),
    "driven pendulum": (lambda: pendulum(4.0, UNSEEN), [{"mass", "length"}], TWO),
    "both": (lambda: pendulum(4.0, 0.001), [], TWO),
    "mounting": (lambda: mounted_gyroscope(TRIAXIAL), [], TWO),
    "mounting, symmetric": (lambda: mounted_gyroscope(SYMMETRIC), [TURNED], TWO),
    "mounting, sphere": (
        lambda: mounted_gyroscope(SPHERE),
        [
            {"bias[0]", "rate[0]", "rate[1]"},
            {"bias[1]", "rate[0]", "rate[1]"},
            {"bias[2]", "rate[2]"},
            {"drift", "torque3"},
            TURNED,
        ],
        TWO,
    ),
}  # fmt: skip
CASES = [
    pytest.param(
        make, undetermined, draw, seed, id=f"{name}, {draw.__name__[5:]}",
        marks=() if name in ("body", "no torque", "drag zero") else pytest.mark.exhaustive,
    )
    for name, (make, undetermined, draws) in EXPERIMENTS.items()
    for seed, draw in enumerate(draws)
]  # fmt: skip


def test_there_are_forty():
    assert len(CASES) == 40


@pytest.mark.parametrize(("make", "undetermined", "draw", "seed"), CASES)
def test_verdicts_are_right(make, undetermined, draw, seed):
    fit = fit_planted(*make(), seed=seed, draw=draw)
    verdict = fit.identifiability
    assert fit.converged and verdict.identifiable == (not undetermined)
    assert sorted(map(sorted, verdict.undetermined)) == sorted(map(sorted, undetermined))
    loose = set().union(*undetermined)
    assert {label for label, std in fit.std.items() if np.isinf(std)} == loose
    for covariance in fit.covariances.values():
        infinite = np.isinf(covariance.std)
        assert {x for x, no in zip(fit.labels, infinite, strict=True) if no} == loose
