"""Optima on bounds, compared with least squares within bounds by SciPy, and their reports."""

import functools
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from identification import oscillator
from scipy.optimize import least_squares
from scipy.stats import norm

import rigidjax as rj
from rigidjax.identification import (
    Bounded,
    GaussianPrior,
    InertiaTensor,
    Measurements,
    Parameter,
    Positive,
    identify,
    identify_batch,
)

NOISE = oscillator.NOISE


def fit(seed, bounded=True, prior=None, noise=NOISE, **options):
    """Fit an oscillator without damping whose stiffness is the upper bound."""
    transforms = Bounded(0.0, 1.0), Bounded(1.0, 4.0)
    if not bounded:
        transforms = Positive(), Positive()
    data = oscillator.measure(seed, damping=0.0, noise=noise)
    return oscillator.fit(data, make_parameters(*transforms, prior), damping=0.01, **options)


def make_parameters(damping, stiffness, prior=None):
    return (
        Parameter("d", oscillator.damping_of, damping, unit="N m s"),
        Parameter("k", oscillator.stiffness_of, stiffness, unit="N m", prior=prior),
    )


@functools.cache
def solve_by_scipy(seed, prior=None):
    """The least squares within bounds, by SciPy, and standard deviations without bounds."""
    data = oscillator.measure(seed, damping=0.0)

    def residuals(x):
        r = oscillator.weighted_residuals(data, NOISE, damping=x[0], stiffness=x[1])
        return r if prior is None else np.append(r, (x[1] - prior[0]) / prior[1])

    found = least_squares(
        residuals, [0.01, 3.8], bounds=([0.0, 1.0], [1.0, 4.0]), method="dogbox", diff_step=1e-6,
        gtol=1e-12, ftol=1e-15, xtol=1e-15,
    )  # fmt: skip
    return found.x, np.sqrt(np.diag(np.linalg.inv(found.jac.T @ found.jac)))


# With these seeds both are on their bounds, and the damping alone.
BOTH, ONE = 10, 2


def test_a_bound_is_reported_with_a_one_sided_interval(tmp_path):
    found = fit(ONE)
    std = found.std["d"]
    assert found.confidence_intervals(0.9)["d"] == pytest.approx((0.0, norm.ppf(0.9) * std))
    low, high = found.confidence_intervals(0.9)["k"]
    np.testing.assert_allclose(high - low, 2 * norm.ppf(0.95) * found.std["k"])
    text = found.report(tmp_path / "fit.md")
    assert "d is at its lower bound, 0 N m s" in text and "one-sided, 0 to 0.0" in text
    record = json.loads(found.report(tmp_path / "fit.json"))
    assert record["converged"]
    assert [p["bound"] for p in record["parameters"]] == ["lower", None]
    assert record["parameters"][0]["interval"] == pytest.approx([0.0, norm.ppf(0.95) * std])
    (bound,) = record["bounds"]
    assert (bound["quantity"], bound["limit"], bound["bound"]) == ("d", 0.0, "lower")


def test_an_upper_bound_and_a_start_on_a_bound():
    """The damping starts on its lower bound and leaves it; the stiffness ends on its upper one."""
    exact = oscillator.measure(std=0.0)
    both = make_parameters(Bounded(0.0, 1.0), Bounded(1.0, 3.9))
    found = oscillator.fit(exact, both, damping=0.0)
    assert found.values[1] == 3.9 and [b.is_lower for b in found.bounds] == [False]
    assert found.confidence_intervals()["k"][1] == 3.9

    def residuals(x):
        return oscillator.weighted_residuals(exact, NOISE, damping=x[0], stiffness=3.9)

    options = {"jac": "3-point", "diff_step": 1e-3, "xtol": 1e-14, "ftol": 1e-14}
    x = least_squares(residuals, [0.3], **options).x
    np.testing.assert_allclose(found.values[0], x[0], rtol=1e-5)


def test_prior_counts_at_a_bound():
    """A prior moves the stiffness off its bound; the damping remains on it."""
    found = fit(BOTH, prior=GaussianPrior(3.99, 0.001))
    x, std = solve_by_scipy(BOTH, (3.99, 0.001))
    np.testing.assert_allclose(found.values, x, atol=0.02 * std.min())
    assert [b.label for b in found.bounds] == ["d"]


def test_noise_is_estimated_at_a_bound():
    found, known = fit(ONE, bounded=False, noise=None), fit(ONE)
    np.testing.assert_allclose(found.values, known.values, atol=0.05 * known.std["d"])
    np.testing.assert_allclose(found.noise, NOISE * np.sqrt(known.chi_square), rtol=1e-3)
    assert [b.label for b in found.bounds] == ["d"]


@pytest.mark.exhaustive("options1")
@pytest.mark.parametrize("options", [{"starts": 3}, {"segments": 3}])
def test_search_reaches_the_bound_exactly(options):
    found = fit(ONE, **options)
    x, std = solve_by_scipy(ONE)
    np.testing.assert_allclose(found.values, x, atol=0.02 * std.min())
    assert [b.label for b in found.bounds] == ["d"]


def test_batch_reaches_bounds():
    seeds = (ONE, BOTH, 0, 4)
    data = [oscillator.measure(seed, damping=0.0) for seed in seeds]
    states = [oscillator.start(v) for v in oscillator.RATES]
    batch = identify_batch(
        oscillator.model(3.8, 0.01), data, make_parameters(Bounded(0.0, 1.0), Bounded(1.0, 4.0)),
        state0=states, **oscillator.OPTIONS,
    )  # fmt: skip
    assert batch.converged.all()
    for seed, values, held in zip(seeds, batch.values, batch.at_bound, strict=True):
        x, std = solve_by_scipy(seed)
        np.testing.assert_allclose(values, x, atol=0.02 * std.min())
        np.testing.assert_array_equal(held, values == [0.0, 4.0])
    assert np.isfinite(batch.std).all() and 0 < batch.at_bound.sum() < batch.at_bound.size


class Push(eqx.Module):
    """A moment about the axes of the body that is known."""

    def __call__(self, t, R, omega):
        return 0.02 * jnp.stack([jnp.sin(9 * t), jnp.cos(7 * t), jnp.sin(5 * t + 1)])


FLAT = np.array([0.013, 0.022, 0.035])
GYRO = rj.Gyroscope()
TIMES = np.linspace(0, 1.5, 31)
SPIN = rj.State(angular_velocity=[1.0, 2.0, -3.0])


def plate(inertia):
    return rj.NullSpace(rj.FixedPointBody(jnp.asarray(inertia), moment=Push()))


@jax.jit
def spins(inertia):
    sol = rj.simulate(plate(inertia), SPIN, 1.5, ts=TIMES, rtol=1e-10, atol=1e-10)
    return sol.states.angular_velocity[:, 0]


@pytest.mark.exhaustive
def test_a_flat_body_is_an_optimum():
    """A plate: noise would have its third Euler value negative in about half of the cases."""
    E = np.array([0.015, 0.01, 0.008])
    inertia = Parameter("I", lambda e: e.model.system.inertia, InertiaTensor(), unit="kg m^2")
    for seed, is_flat in ((0, True), (4, False)):
        noise = 0.02 * np.random.default_rng(seed).normal(size=(31, 3))
        data = Measurements(TIMES, {GYRO: np.asarray(spins(FLAT)) + noise}, {GYRO: 0.02})
        found = identify(plate(np.diag(E.sum() - E)), data, [inertia], state0=SPIN)
        assert len(found.bounds) == is_flat
        moments = np.linalg.eigvalsh(found.model.system.inertia)
        for bound in found.bounds:
            assert bound.label is None and bound.limit == 0.0 and bound.unit == "kg m^2"
            assert bound.quantity.startswith("The principal Euler value")
            assert "(a flat body)" in " ".join(found.warnings)
            assert abs(moments[2] - moments[0] - moments[1]) < 1e-5 * moments[2]
            assert 0 < bound.std < 1e-2 * moments[2]
