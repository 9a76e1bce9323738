"""Robust losses, noise that is estimated, several starts, Gauss-Newton."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.identification import Cauchy, Huber, Measurements, Parameter, Positive, identify
from rigidjax.identification.search.trust_region import reduce_problem

STIFFNESS, DAMPING = 4.0, 0.3
TS = np.linspace(0.0, 3.0, 61)
ANGLE, RATE = rj.JointCoordinate("hinge"), rj.JointRate("hinge")
NOISE = {ANGLE: 2e-3, RATE: 3e-2}


def stiffness_of(experiment):
    return experiment.model.system.forces[0].stiffness


def damping_of(experiment):
    return experiment.model.system.forces[0].damping


def model(stiffness=STIFFNESS, damping=DAMPING):
    body = rj.Body("bob", 1.0, (0.3, 0.3, 0.5), (0.5, 0.0, 0.0))
    hinge = rj.Revolute("ground", "bob", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), name="hinge")
    return rj.NullSpace(rj.System(body, [hinge], [rj.TorsionSpring("hinge", stiffness, damping)]))


STATE0 = rj.consistent_state(
    model().system,
    rj.State((0.5, 0.0, 0.0), velocity=(0.0, 1.0, 0.0), angular_velocity=(0.0, 0.0, 2.0)),
)
# One set of options for all tests: each further set needs its own compilation. Without
# projection a fit compiles faster; the estimates differ by 1e-8.
OPTIONS = {"state0": STATE0, "horizons": (1.0,), "projection": False}
PARAMETERS = (
    Parameter("stiffness", stiffness_of, Positive(), unit="N m"),
    Parameter("damping", damping_of, Positive(), unit="N m s"),
)


def closed_form(stiffness=STIFFNESS, damping=DAMPING):
    """Angle and rate of the hinge: a damped oscillator about the joint."""
    inertia = 0.5 + 1.0 * 0.25
    root = np.sqrt(stiffness / inertia - (0.5 * damping / inertia) ** 2)
    decay = 0.5 * damping / inertia
    angle = 2.0 / root * np.exp(-decay * TS) * np.sin(root * TS)
    rate = 2.0 * np.exp(-decay * TS) * (np.cos(root * TS) - decay / root * np.sin(root * TS))
    return angle[:, None], rate[:, None]


def measure(noise=None, outliers=0, seed=0):
    rng = np.random.default_rng(seed)
    values = {
        s: v + NOISE[s] * rng.standard_normal(v.shape)
        for s, v in zip((ANGLE, RATE), closed_form(), strict=True)
    }
    for k in rng.choice(len(TS), outliers, replace=False):
        values[ANGLE][k] += 0.5
    return Measurements(TS, {s: v.reshape(-1, *s.value_shape) for s, v in values.items()}, noise)


def start(stiffness=3.0, damping=0.5):
    return model(stiffness, damping)


@pytest.fixture(scope="module")
def plain():
    return identify(start(), measure(NOISE), PARAMETERS, **OPTIONS)


@pytest.mark.exhaustive
def test_factorisation_does_not_modify_its_input(rng):
    """Least squares avoids LAPACK's `dormqr`, which XLA runs concurrently with readers of R."""
    J, r, damping = rng.normal(size=(20, 3)), rng.normal(size=20), 0.1
    step = jax.jit(lambda J, r: reduce_problem(J, r, len(r)).step(damping))
    assert "ormqr" not in step.lower(J, r).as_text()
    size = np.linalg.norm(J, axis=0)
    rows = np.concatenate([J, np.sqrt(damping) * np.diag(size)])
    expected = np.linalg.lstsq(rows, np.concatenate([-r, np.zeros(3)]), rcond=None)[0]
    np.testing.assert_allclose(step(J, r), expected, rtol=1e-12)


@pytest.mark.exhaustive
def test_gauss_newton_reaches_the_optimum(plain):
    fit = identify(start(), measure(NOISE), PARAMETERS, **OPTIONS, method="gauss-newton")
    assert np.allclose(fit.values, plain.values, rtol=1e-6)
    assert sum(fit.iterations) <= sum(plain.iterations)


@pytest.mark.exhaustive
def test_noise_is_estimated_per_sensor(plain):
    """Both are found to the accuracy of 60 samples, and with them the estimates and their std."""
    fit = identify(start(), measure(), PARAMETERS, **OPTIONS)
    assert any(note.startswith("The noise was estimated from the residuals") for note in fit.notes)
    found = list(fit.noise_by_sensor.values())
    assert np.allclose(found, list(NOISE.values()), rtol=0.25)
    assert fit.chi_square == pytest.approx(1.0, abs=0.02)
    assert not fit.noise_is_known
    std = np.array(list(plain.std.values()))
    assert np.all(np.abs(fit.values - plain.values) < std)
    assert np.allclose(list(fit.std.values()), std, rtol=0.25)


@pytest.mark.exhaustive
@pytest.mark.parametrize("loss", [Huber(), Cauchy()])
def test_robust_losses_resist_outliers(plain, loss):
    """One sample in ten is far off: least squares is led astray, robust losses are not."""
    std = np.array(list(plain.std.values()))
    true = np.array([STIFFNESS, DAMPING])
    data = measure(NOISE, outliers=6)
    squares = identify(start(), data, PARAMETERS, **OPTIONS)
    robust = identify(start(), data, PARAMETERS, **OPTIONS, loss=loss)
    assert np.max(np.abs(squares.values - true) / std) > 10
    assert np.max(np.abs(robust.values - true) / std) < 4
    assert any("times as large as the noise" in text for text in squares.warnings)
    # As certain as without outliers, except for the samples that were lost.
    assert np.all(np.array(list(robust.std.values())) < 1.6 * std)


@pytest.mark.parametrize("loss", [Huber(1.2), Cauchy(1.7)])
def test_losses_against_their_formulas(loss):
    """The root squared is twice the loss, whose derivative is the influence."""
    r = jnp.array([-30.0, -2.0, -1e-3, 0.0, 1e-6, 0.3, 1.2, 5.0])
    psi, derivative = loss.influence(np.asarray(r))

    def rho(r):
        return 0.5 * loss.root(r) ** 2

    assert np.allclose(jax.vmap(jax.grad(rho))(r), psi, rtol=1e-9, atol=1e-15)
    smooth = np.abs(np.abs(np.asarray(r)) - 1.2) > 1e-6
    second = jax.vmap(jax.grad(jax.grad(rho)))(r)
    assert np.allclose(second[smooth], derivative[smooth], rtol=1e-6, atol=1e-12)
    assert np.allclose(loss.slope(jnp.zeros(1)), 1.0)


@pytest.mark.exhaustive
def test_several_starts_reach_the_lowest_minimum():
    """From a spring forty times too stiff one start reaches a wrong minimum; of six starts some do
    not.
    """
    data, far = measure(NOISE), start(160.0, 0.01)
    alone = identify(far, data, PARAMETERS, **OPTIONS, throw=False)
    many = identify(far, data, PARAMETERS, **OPTIONS, starts=6, start_spread=4.0)
    assert many.chi_square < 1.5 < alone.chi_square
    assert any("of 6 starts came to the lowest minimum" in note for note in many.notes)


def test_invalid_arguments_raise():
    data = measure(NOISE)
    with pytest.raises(ValueError, match=r"method=...\).*gauss-newton.*got 'newton'"):
        identify(start(), data, PARAMETERS, state0=STATE0, method="newton")  # pyright: ignore
    with pytest.raises(TypeError, match=r"loss=...\)` must be a loss .*Huber.*got 'huber'"):
        identify(start(), data, PARAMETERS, state0=STATE0, loss="huber")  # pyright: ignore
    with pytest.raises(ValueError, match=r"starts=...\)` must be a number of starts.*got 0"):
        identify(start(), data, PARAMETERS, state0=STATE0, starts=0)
    with pytest.raises(ValueError, match=r"Huber\(k=...\)` must be positive"):
        Huber(0.0)
    with pytest.raises(ValueError, match=r"Cauchy\(k=...\)` must be positive"):
        Cauchy(-1.0)
    one = Measurements(TS, {ANGLE: closed_form()[0][:, 0]}, {ANGLE: 1e-3})
    other = Measurements(TS, {ANGLE: closed_form()[0][:, 0]})
    with pytest.raises(ValueError, match=r"of a sensor must be given for every run"):
        identify(start(), [one, other], PARAMETERS, state0=STATE0)
