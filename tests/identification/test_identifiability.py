"""The verdict of a fit on experiments that were planted to determine something, or not."""

import functools

import numpy as np
import pytest
from identification import planted
from identification.planted import UNSEEN, draw_dependent, draw_outliers, draw_steps, fit_planted

from rigidjax.identification.experiment.parameters import ComponentTable
from rigidjax.identification.statistics.identifiability import judge

TRIAXIAL, SYMMETRIC, SPHERE = (0.02, 0.017, 0.006), (0.02, 0.02, 0.03), (0.02, 0.02, 0.02)
TUMBLING = (1.0, 9.0, -4.0)


def free_body(inertia, torque, drag=2e-4):
    return planted.free_body(inertia, torque, TUMBLING, drag), planted.FREE_BODY


def mounted_gyroscope(inertia, **numbers):
    return planted.mounted_experiment(inertia, TUMBLING, **numbers), planted.MOUNTED


def pendulum(torque, camera):
    return planted.pendulum(torque, camera), planted.PENDULUM


# For each experiment: which parameters can change together without changing a prediction, and
# what the verdict says about it.
CASES = {
    "torque-free body": (
        lambda: free_body(TRIAXIAL, (0.0, 0.0, 0.0)),
        [{"I1", "I2", "I3", "drag"}],
        ["only the ratios of I1, I2, I3 and drag", "I1/I3 = 3.3", "drag/I3 = 0.033"],
    ),
    "a known torque fixes the scale": (
        lambda: free_body(TRIAXIAL, (0.1, 0.0, 0.0)),
        [],
        ["All 4 fitted parameters are identifiable."],
    ),
    "no drag": (
        lambda: free_body(TRIAXIAL, (0.1, 0.0, 0.0), 0.0),
        [],
        ["All 4 fitted parameters", "drag cannot be distinguished from zero"],
    ),
    "mounting on a symmetric body": (
        lambda: mounted_gyroscope(SYMMETRIC),
        [{"mounting", "rate[0]", "rate[1]"}],
        ["mounting, rate[0] and rate[1] are not determined individually: changing them together"],
    ),
    "bias and drift on a sphere": (
        lambda: mounted_gyroscope(SPHERE),
        [
            {"bias[0]", "rate[0]", "rate[1]"},
            {"bias[1]", "rate[0]", "rate[1]"},
            {"bias[2]", "rate[2]"},
            {"drift", "torque3"},
            {"mounting", "rate[0]", "rate[1]"},
        ],
        ["bias[2] + rate[2] = -3.9", "drift and torque3 are not determined individually"],
    ),
    "pendulum": (
        lambda: pendulum(0.0, UNSEEN),
        [{"length", "I1"}, {"mass", "I1"}],
        ["only one combination of them: mass*length/I1 = 1.13", "Hold two of them"],
    ),
    "pendulum with both": (
        lambda: pendulum(4.0, 0.001),
        [],
        ["All 3", "The fixed values of I2 and I3 have no effect on the predictions."],
    ),
}
NOISE = {
    "white": {},
    "none": {"noise": 0.0},
    "dependent": {"draw": draw_dependent, "seed": 1},
    "outliers": {"draw": draw_outliers, "seed": 2},
    "steps": {"draw": draw_steps, "seed": 3},
}


@functools.cache
def fit_case(name, noise="white"):
    return fit_planted(*CASES[name][0](), **NOISE[noise])


@pytest.mark.parametrize(
    ("name", "noise"),
    [
        *((name, "white") for name in CASES),
        *(
            (name, noise)
            for name in ("torque-free body", "a known torque fixes the scale", "no drag")
            for noise in ("dependent", "outliers", "steps")
        ),
        ("mounting on a symmetric body", "none"),
    ],
)
def test_planted_cases_are_recognised(name, noise):
    _, undetermined, words = CASES[name]
    fit = fit_case(name, noise)
    verdict = fit.identifiability
    assert fit.converged
    assert verdict.num_parameters == len(fit.labels)
    assert verdict.rank == len(fit.labels) - len(undetermined)
    assert verdict.identifiable == (not undetermined)
    assert sorted(map(sorted, verdict.undetermined)) == sorted(map(sorted, undetermined))
    loose = set().union(*undetermined)
    for covariance in fit.covariances.values():
        infinite = np.isinf(covariance.std)
        assert {x for x, no in zip(fit.labels, infinite, strict=True) if no} == loose
    assert {label for label, std in fit.std.items() if np.isinf(std)} == loose
    assert not np.isnan(fit.covariance).any() and not np.isnan(fit.correlations).any()
    for text in words if noise == "white" else ():
        assert text in str(verdict)


NOTHING = {"bias": (0.0, 0.0, 0.0), "drift": 0.0, "angle": 0.0, "torque": 0.0}
ZERO = {"bias[0]", "bias[1]", "bias[2]", "drift", "mounting", "torque3"}


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_parameters_equal_to_zero_can_be_determined(noise):
    """The true value is zero, and so is the start: only the data determine the scale."""
    fit = fit_planted(*mounted_gyroscope(TRIAXIAL, **NOTHING), noise=noise)
    verdict = fit.identifiability
    assert verdict.identifiable and fit.converged
    assert f"All {len(fit.labels)} fitted parameters are identifiable." in str(verdict)
    assert "changes no prediction" not in str(verdict)
    for label in ZERO:
        assert abs(fit.estimates[label]) < (4 if noise else 1e-3) * fit.std[label]
        assert f"{label} cannot be distinguished from zero" in str(verdict)
    exact = dict(zip(fit.labels, fit.starts, strict=True))
    assert np.max([abs(fit.estimates[x] - exact[x]) / fit.std[x] for x in fit.labels]) < 4


def test_undetermined_combinations_with_zeros_have_units():
    fit = fit_planted(*mounted_gyroscope(SPHERE, **NOTHING | {"torque": 0.02}), noise=0.0)
    # With a sensor that is not turned a bias is a rate about the same axis.
    pairs = [{f"bias[{k}]", f"rate[{k}]"} for k in range(3)]
    pairs += [{"drift", "torque3"}, {"mounting", "rate[0]", "rate[1]"}]
    found = fit.identifiability.undetermined
    assert sorted(map(sorted, found)) == sorted(map(sorted, pairs))
    # By hand: the rate about the third axis grows by what the torque does, 0.02 / 0.02 rad/s^2.
    text = "changing them together (drift by -0.01 rad/s^2, torque3 by +1 %, to first order)"
    assert text in str(fit.identifiability)


def test_undetermined_changes_preserve_the_equations_of_motion():
    """A torque compensates a drift, and a rotated sensor rotates the rates."""
    fit = fit_case("bias and drift on a sphere")
    value = fit.estimates
    by_labels = {frozenset(c): c for c in fit.identifiability.undetermined}
    change = by_labels[frozenset({"drift", "torque3"})]
    # d + tau / I stays as it is.
    drift, torque = change["drift"] * value["drift"], change["torque3"] * value["torque3"]
    np.testing.assert_allclose(torque / SPHERE[2], -drift, rtol=1e-6)
    change = by_labels[frozenset({"mounting", "rate[0]", "rate[1]"})]
    angle = change["mounting"] * value["mounting"]
    rates = [change[f"rate[{k}]"] * value[f"rate[{k}]"] for k in (0, 1)]
    np.testing.assert_allclose(
        rates, [-angle * value["rate[1]"], angle * value["rate[0]"]], rtol=1e-6
    )


def judge_jacobian(jacobian, values, unit="N m/rad", starts=None):
    count = len(values)
    labels, units = tuple(f"k{i + 1}" for i in range(count)), (unit,) * count
    fitted, sizes = np.ones(count, bool), np.zeros(count)
    of = ComponentTable(labels, units, np.arange(count), sizes, fitted, values)
    return judge(of, values if starts is None else starts, jacobian, 1.0, 1e-7)[1]


def test_two_parallel_springs_determine_their_sum():
    """By hand: with equal columns the sum has the standard deviation of one of them alone."""
    column = np.random.default_rng(0).normal(size=30)
    column /= 8 * np.linalg.norm(column)
    verdict = judge_jacobian(np.stack([column, column], axis=1), np.array([2.0, 3.0]))
    assert "k1 + k2 = 5.0 N m/rad (standard deviation 8)" in str(verdict)
    verdict = judge_jacobian(np.stack([column, -column], axis=1), np.array([2.0, 3.0]))
    assert "k1 - k2 = -1.0 N m/rad (standard deviation 8)" in str(verdict)


def test_undetermined_powers_give_a_monomial():
    """By hand: readings of a^2 b / c, 12 of them with a standard deviation of one."""
    a, b, c = values = np.array([2.0, 3.0, 4.0])
    gradient = a**2 * b / c * np.array([2 / a, 1 / b, -1 / c])
    verdict = judge_jacobian(np.tile(gradient, (12, 1)), values)
    assert "k1^2*k2/k3 = 3.00 (standard deviation 0.29)" in str(verdict)
    assert "Hold two of them fixed at known values." in str(verdict)


def test_other_combinations_are_reported_as_changes():
    verdict = judge_jacobian(np.tile([1.0, 0.7], (5, 1)), np.array([1.0, 1.0]))
    assert "changing them together (k1 by -0.7 %, k2 by +1 %, to first order)" in str(verdict)


@pytest.mark.parametrize("power", [0, -90, 60])
def test_report_does_not_depend_on_units(power):
    """Parameters in other units, by powers of two: the same verdict, and scaled deviations."""
    rng = np.random.default_rng(3)
    J = rng.normal(size=(40, 5)) * np.array([1e-3, 1.0, 1e4, 1e8, 0.0])
    J[:, 4] = J[:, :2] @ np.array([2e3, 3.0])
    values, factor = (
        np.array([0.0, 1.0, 0.0, 1e-9, 2.0]),
        2.0 ** (power * np.array([1, -1, 2, 0, 1])),
    )
    here, there = judge_jacobian(J, values), judge_jacobian(J / factor, values * factor)
    assert there.rank == here.rank == 4 and there.messages[0].startswith("k1, k2 and k5 are not")
    np.testing.assert_allclose(there.singular_values, here.singular_values, atol=1e-14)
    assert [set(c) for c in there.undetermined] == [set(c) for c in here.undetermined]


def test_large_deviations_are_named():
    J = np.random.default_rng(4).normal(size=(30, 2)) * np.array([1.0, 1e-2])
    verdict = judge_jacobian(J, np.array([1.0, 1.0]))
    assert verdict.identifiable and "k2 is hardly determined" in str(verdict)


def test_round_off_columns_carry_no_information():
    """A column as small as round-off, of a parameter of known size; and of one without any."""
    J = np.random.default_rng(4).normal(size=(30, 2)) * np.array([1.0, 1e-13])
    assert judge_jacobian(J, np.array([1.0, 1.0])).rank == 1
    assert "k2 is not determined: it changes no prediction." in str(
        judge_jacobian(J, np.array([1.0, 1.0]))
    )
    # Zero, in units in which one is as large as 1e13 of the other parameter.
    verdict = judge_jacobian(J, np.array([1.0, 0.0]))
    assert verdict.rank == 2 and "k2 cannot be distinguished from zero: 0 with a" in str(verdict)
    # Nor does a value that started at zero tell its size: it may be round-off itself.
    assert (
        judge_jacobian(J * [1, 1e20], np.array([1.0, 1e-25]), starts=np.array([1.0, 0.0])).rank == 2
    )
