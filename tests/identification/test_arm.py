"""Regressions of the measured arm."""

import pathlib

import numpy as np
import pytest

import rigidjax as rj
from rigidjax import identification as ident

DATA = pathlib.Path(rj.__file__).resolve().parents[1] / "datasets" / "staubli_tx40"
TERMS = ("rotor", "viscous", "coulomb", "offset")
# Beginning and end of a filter without delay are wrong.
EDGE = 20


@pytest.fixture(scope="module")
def halves():
    """Return the data of both halves of the motion."""
    raw = np.load(DATA / "excitation.npz")
    ts = float(raw["dt"]) * np.arange(len(raw["motor_position"]))
    gear = np.diag(raw["reduction"])
    gear[5, 4] = gear[5, 5]
    q = np.linalg.solve(gear, ident.lowpass(ts, raw["motor_position"], 50.0).T).T
    q += np.pi / 2 * np.array([0, -1, 1, 0, 0, 0])
    v, a = (ident.differentiate(ts, q, window=0.01, derivative=k) for k in (1, 2))
    tau = ident.lowpass(ts, raw["motor_torque"], 50.0) @ gear
    robot = rj.models.load(DATA / "tx40.urdf", fixed_base=True)
    system, _ = ident.describe_in_frames(robot.system, robot.frames)
    coupled = {"motor 6": {"joint_5": 1.0, "joint_6": 1.0}}
    middle = len(q) // 2
    return [
        ident.joint_data(system, *(x[rows] for x in (q, v, a, tau)), terms=TERMS, coupled=coupled)
        for rows in (slice(EDGE, middle, 3), slice(middle, len(q) - EDGE, 3))
    ]


def test_halves_of_the_data_agree_within_their_intervals(halves):
    """Root-mean-square difference in standard deviations; friction differs between the halves.

    Standard deviations for independent residuals are far too small, and the report says so first.
    """
    first, second = (ident.regress(data) for data in halves)
    assert first.base.chosen == second.base.chosen and first.method == second.method == "hac"

    def differ(method):
        variance = sum(linear.covariances[method].std ** 2 for linear in (first, second))
        return np.sqrt(np.mean((first.values - second.values) ** 2 / variance))

    assert differ("hac") < 1.6 and differ("model") > 3
    text = first.report()
    assert text.startswith("**Warning: the intervals may")
    assert "residuals of joint_1, joint_2, joint_3 and 3 more are not white" in text.split("\n")[0]
    assert "std (model)" in text and "allow for dependence within a run" in text
    assert str(first).startswith("Warning: ")
