"""Optima on bounds, compared with least squares within bounds by SciPy, and their reports."""

import functools
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.optimize import least_squares
from scipy.stats import norm

import rigidjax as rj
from rigidjax.identification import (
    Bounded,
    FirstOrder,
    GaussianPrior,
    InertiaTensor,
    Measurements,
    Parameter,
    Positive,
    PrincipalInertia,
    identify,
    identify_batch,
)

ROD = rj.Body.rod(
    "rod", 1.0, 0.02, mass=1.0, position=(0.5, 0, 0), orientation=(0.5**0.5, 0, 0.5**0.5, 0)
)
TS = np.linspace(0, 2, 41)
NOISE = 0.01
ENCODER = rj.JointCoordinate("h")


def swing(damping=0.01, stiffness=0.1):
    hinge = rj.Revolute("ground", "rod", (0, 0, 0), axis=(0, 1, 0), name="h")
    spring = rj.TorsionSpring("h", stiffness, damping)
    return rj.NullSpace(rj.System(ROD, hinge, [rj.Gravity((0, 0, -9.81)), spring]))


STATE = swing().system.reference_state()


@jax.jit
def angles(damping, stiffness):
    sol = rj.simulate(swing(damping, stiffness), STATE, 2.0, ts=TS, rtol=1e-10, atol=1e-10)
    return sol.coordinates["h"][:, 0]


def damping_of(experiment):
    return experiment.model.system.forces[1].damping


def stiffness_of(experiment):
    return experiment.model.system.forces[1].stiffness


def samples(seed):
    return np.asarray(angles(0.0, 0.0)) + NOISE * np.random.default_rng(seed).normal(size=TS.size)


def run(seed, noise=NOISE):
    return Measurements(TS, {ENCODER: samples(seed)}, {ENCODER: noise} if noise else None)


def parameters(kind, priors=(None, None)):
    transforms = {
        "two bounds": (Bounded(0.0, 1.0), Bounded(0.0, 5.0)),
        "one bound": (Bounded(0.0, np.inf), Bounded(0.0, np.inf)),
        "logarithm": (Positive(), Positive()),
    }[kind]
    return [
        Parameter("d", damping_of, transforms[0], unit="N m s/rad", prior=priors[0]),
        Parameter("k", stiffness_of, transforms[1], unit="N m/rad", prior=priors[1]),
    ]


@functools.cache
def solve_by_scipy(seed, prior=None):
    """The least squares within bounds at zero, by SciPy, and standard deviations without bounds."""

    def residuals(x):
        r = (np.asarray(angles(*x)) - samples(seed)) / NOISE
        return r if prior is None else np.append(r, (x[1] - prior[0]) / prior[1])

    found = least_squares(
        residuals, [0.01, 0.1], bounds=([0.0, 0.0], [1.0, 5.0]), method="dogbox", diff_step=1e-6,
        gtol=1e-12, ftol=1e-15, xtol=1e-15,
    )  # fmt: skip
    return found.x, np.sqrt(np.diag(np.linalg.inv(found.jac.T @ found.jac)))


# With these seeds both are on their bounds, and the damping alone.
BOTH, ONE = 3, 5


def test_a_bound_is_reported_with_a_one_sided_interval(tmp_path):
    fit = identify(swing(), run(ONE), parameters("two bounds"), state0=STATE)
    std = fit.std["d"]
    assert fit.confidence_intervals(0.9)["d"] == pytest.approx((0.0, norm.ppf(0.9) * std))
    low, high = fit.confidence_intervals(0.9)["k"]
    np.testing.assert_allclose(high - low, 2 * norm.ppf(0.95) * fit.std["k"])
    text = fit.report(tmp_path / "fit.md")
    assert "d is at its lower bound, 0 N m s/rad" in text and "one-sided, 0 to 0.0" in text
    record = json.loads(fit.report(tmp_path / "fit.json"))
    assert record["converged"]
    assert [p["bound"] for p in record["parameters"]] == ["lower", None]
    assert record["parameters"][0]["interval"] == pytest.approx([0.0, norm.ppf(0.95) * std])
    (bound,) = record["bounds"]
    assert (bound["quantity"], bound["limit"], bound["bound"]) == ("d", 0.0, "lower")


def test_an_upper_bound_and_a_start_on_a_bound():
    """The damping starts on its lower bound and leaves it; the stiffness ends on its upper one."""
    exact = Measurements(TS, {ENCODER: np.asarray(angles(0.05, 0.3))}, {ENCODER: NOISE})
    both = [
        Parameter("d", damping_of, Bounded(0.0, 1.0), start=0.0),
        Parameter("k", stiffness_of, Bounded(-1.0, 0.2)),
    ]
    fit = identify(swing(), exact, both, state0=STATE)
    assert fit.values[1] == 0.2 and [b.is_lower for b in fit.bounds] == [False]
    assert fit.confidence_intervals()["k"][1] == 0.2

    def residuals(x):
        return (np.asarray(angles(x[0], 0.2)) - np.asarray(angles(0.05, 0.3))) / NOISE

    options = {"jac": "3-point", "diff_step": 1e-3, "xtol": 1e-14, "ftol": 1e-14}
    x = least_squares(residuals, [0.05], **options).x
    np.testing.assert_allclose(fit.values[0], x[0], rtol=1e-5)


def test_prior_counts_at_a_bound():
    """A prior moves the stiffness off its bound; the damping remains on it."""
    prior = GaussianPrior(0.05, 0.001)
    fit = identify(swing(), run(BOTH), parameters("two bounds", (None, prior)), state0=STATE)
    x, std = solve_by_scipy(BOTH, (0.05, 0.001))
    np.testing.assert_allclose(fit.values, x, atol=0.02 * std.min())
    assert [b.label for b in fit.bounds] == ["d"]


def test_noise_is_estimated_at_a_bound():
    fit = identify(swing(), run(ONE, None), parameters("logarithm"), state0=STATE)
    known = identify(swing(), run(ONE), parameters("two bounds"), state0=STATE)
    np.testing.assert_allclose(fit.values, known.values, atol=0.05 * known.std["d"])
    np.testing.assert_allclose(fit.noise, NOISE * np.sqrt(known.chi_square), rtol=1e-3)
    assert [b.label for b in fit.bounds] == ["d"]


@pytest.mark.exhaustive(but=("many starts",))
@pytest.mark.parametrize(
    "options",
    [
        {"method": FirstOrder(optax.adam(1e-2), steps=20)},
        {"starts": 3},
        {"segments": 4, "horizons": (1.0,)},
    ],
    ids=["first order", "many starts", "segments"],
)
def test_search_reaches_the_bound_exactly(options):
    fit = identify(swing(), run(ONE), parameters("two bounds"), state0=STATE, **options)
    x, std = solve_by_scipy(ONE)
    np.testing.assert_allclose(fit.values, x, atol=0.02 * std.min())
    assert [b.label for b in fit.bounds] == ["d"]


def test_batch_reaches_bounds():
    seeds = (ONE, BOTH, 0, 7)
    batch = identify_batch(
        swing(), [run(seed) for seed in seeds], parameters("two bounds"), state0=STATE
    )
    assert batch.converged.all()
    for seed, values, held in zip(seeds, batch.values, batch.at_bound, strict=True):
        x, std = solve_by_scipy(seed)
        np.testing.assert_allclose(values, x, atol=0.02 * std.min())
        np.testing.assert_array_equal(held, values == 0.0)
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


@pytest.mark.parametrize("kind", ["moments", "tensor"])
@pytest.mark.exhaustive
def test_a_flat_body_is_an_optimum(kind):
    """A plate: noise would have its third Euler value negative in about half of the cases."""
    E = np.array([0.015, 0.01, 0.008])
    start = plate(np.diag(E.sum() - E) if kind == "tensor" else E.sum() - E)
    transform = InertiaTensor() if kind == "tensor" else PrincipalInertia()
    inertia = Parameter("I", lambda e: e.model.system.inertia, transform, unit="kg m^2")
    for seed, is_flat in ((0, True), (4, False)):
        noise = 0.02 * np.random.default_rng(seed).normal(size=(31, 3))
        measured = np.asarray(spins(FLAT)) + noise
        data = Measurements(TIMES, {GYRO: measured}, {GYRO: 0.02})
        fit = identify(start, data, [inertia], state0=SPIN)
        assert len(fit.bounds) == is_flat
        found = np.asarray(fit.model.system.inertia)
        moments = np.linalg.eigvalsh(found) if kind == "tensor" else found
        for bound in fit.bounds:
            assert bound.label is None and bound.limit == 0.0 and bound.unit == "kg m^2"
            assert bound.quantity.startswith("The principal Euler value")
            assert "(a flat body)" in " ".join(fit.warnings)
            assert abs(moments[2] - moments[0] - moments[1]) < 1e-5 * moments[2]
            assert 0 < bound.std < 1e-2 * moments[2]
        if kind == "moments":

            def residuals(E, measured=measured):
                return np.ravel((np.asarray(spins(0.02 * (E.sum() - E))) - measured) / 0.02)

            oracle = least_squares(
                residuals, [1.1, 0.65, 0.02], bounds=(1e-7, np.inf), diff_step=1e-6, gtol=1e-12,
            )  # fmt: skip
            # SciPy stops a little above the minimum, never below.
            squares = fit.chi_square * fit.degrees_of_freedom
            assert 2 * oracle.cost - 1e-2 < squares < 2 * oracle.cost + 1e-4
