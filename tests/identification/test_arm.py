"""The measured arm: what a regression of it finds, and how it predicts the other half."""

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
    """Return the data of both halves of the motion, and the nominal links as a prior."""
    raw = np.load(DATA / "excitation.npz")
    ts = float(raw["dt"]) * np.arange(len(raw["motor_position"]))
    gear = np.diag(raw["reduction"])
    gear[5, 4] = gear[5, 5]
    q = np.linalg.solve(gear, ident.lowpass(ts, raw["motor_position"], 50.0).T).T
    q += np.pi / 2 * np.array([0, -1, 1, 0, 0, 0])
    v, a = (ident.differentiate(ts, q, window=0.01, derivative=k) for k in (1, 2))
    tau = ident.lowpass(ts, raw["motor_torque"], 50.0) @ gear
    robot = rj.models.load(DATA / "tx40.urdf", fixed_base=True)
    system, prior = ident.describe_in_frames(robot.system, robot.frames)
    # Link 6 has no inertia in the file: a ball of 3 cm.
    prior["link_6"] = rj.MassProperties(0.2, (0, 0, 0.042), np.full(3, 0.4 * 0.2 * 0.03**2))
    coupled = {"motor 6": {"joint_5": 1.0, "joint_6": 1.0}}
    middle = len(q) // 2
    data = [
        ident.joint_data(system, *(x[rows] for x in (q, v, a, tau)), terms=TERMS, coupled=coupled)
        for rows in (slice(EDGE, middle, 3), slice(middle, len(q) - EDGE, 3))
    ]
    return *data, prior


def test_halves_of_the_data_agree_within_their_intervals(halves):
    """Root-mean-square difference in standard deviations; friction differs between the halves.

    Standard deviations for independent residuals are far too small, and the report says so first.
    """
    first, second = (ident.regress(data) for data in halves[:2])
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


@pytest.mark.exhaustive
def test_base_parameters_and_friction(halves):
    """The rank that the source of the data states, and its friction from other measurements."""
    linear = ident.regress(halves[0])
    assert linear.base.rank == 61 and len(linear.data.labels) == 87
    assert linear.base.condition < 100
    found = dict(zip(linear.data.labels, linear.parameters, strict=True))
    viscous = np.array([found[f"joint_{i}.viscous"] for i in range(1, 7)])
    # The source counts motor 6 at both joints that it turns.
    viscous[4:] += found["motor 6.viscous"]
    # Friction depends on temperature: not the same numbers on another day.
    np.testing.assert_allclose(viscous, [8.05, 5.53, 1.97, 1.11, 1.86, 0.65], rtol=0.2)


@pytest.mark.exhaustive
@pytest.mark.parametrize("weight", [1.0, 1e-2])
def test_consistent_arm_predicts_the_other_half_better(halves, weight):
    train, test, prior = halves
    linear = ident.regress(train)
    found = ident.consistent_regression(linear, prior=prior, weight=weight)
    for body in found.bodies.values():
        assert np.linalg.eigvalsh(body.pseudo_inertia())[0] > 0
    assert min(found.terms[label] for label in found.terms if "offset" not in label) > 0
    assert np.all(found.rms < 1.1 * linear.rms)

    def error(parameters):
        return np.linalg.norm(test.rms(parameters) / linear.noise)

    assert error(found.parameters) < error(linear.parameters)


@pytest.mark.exhaustive
def test_no_bodies_have_the_parameters_of_least_squares(halves):
    """With a negligible prior the residual remains larger: the minimum is not physical."""
    train, _, prior = halves
    linear = ident.regress(train)
    found = ident.consistent_regression(linear, prior=prior, weight=1e-4)
    excess = np.linalg.norm(found.rms / linear.noise) / np.linalg.norm(linear.rms / linear.noise)
    assert 1.005 < excess < 1.02
