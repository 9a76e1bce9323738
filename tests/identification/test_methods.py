"""Robust losses, descent along gradients, tied parameters, and the step of least squares."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from identification import oscillator

import rigidjax as rj
from rigidjax.identification import (
    Cauchy,
    FirstOrder,
    Huber,
    Measurements,
    Parameter,
    Positive,
    identify,
    identify_batch,
)
from rigidjax.identification.search.trust_region import reduce_problem


def test_factorisation_does_not_modify_its_input(rng):
    """Least squares avoids LAPACK's `dormqr`, which XLA runs concurrently with readers of R."""
    J, r, damping = rng.normal(size=(20, 3)), rng.normal(size=20), 0.1
    step = jax.jit(lambda J, r: reduce_problem(J, r, len(r)).step(damping))
    assert "ormqr" not in step.lower(J, r).as_text()
    size = np.linalg.norm(J, axis=0)
    rows = np.concatenate([J, np.sqrt(damping) * np.diag(size)])
    expected = np.linalg.lstsq(rows, np.concatenate([-r, np.zeros(3)]), rcond=None)[0]
    np.testing.assert_allclose(step(J, r), expected, rtol=1e-12)


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


def second_of(experiment):
    return experiment.model.system.forces[1].stiffness


def test_tied_parameters():
    """Two equal springs are one parameter: the sum that the motion determines, halved."""
    system = oscillator.model(1.0, damping=0.0).system
    springs = [*system.forces, rj.TorsionSpring("hinge", 2.5)]
    model = rj.NullSpace(rj.System(system.bodies, system.joints, springs))
    angle = oscillator.closed_form(2.0, stiffness=3.0, damping=0.0)
    data = Measurements(oscillator.TS, {oscillator.ANGLE: angle}, {oscillator.ANGLE: 1e-3})
    options = {"state0": oscillator.start(2.0), **oscillator.OPTIONS}
    both = Parameter("stiffness", oscillator.stiffness_of, Positive(), tied=[second_of])
    fit = identify(model, data, both, **options)
    assert fit.estimates["stiffness"] == pytest.approx(1.5, abs=1e-6)
    springs = fit.model.system.forces
    assert springs[0].stiffness == springs[1].stiffness
    assert fit.identifiability.identifiable

    twice = Parameter("again", second_of, Positive())
    with pytest.raises(ValueError, match="'stiffness' and 'again' pick the same leaf"):
        identify(model, data, [both, twice], **options)
    inertia_of = lambda e: e.model.system.bodies[0].inertia  # noqa: E731
    other = Parameter("stiffness", oscillator.stiffness_of, Positive(), tied=[inertia_of])
    with pytest.raises(ValueError, match=r"tied=...\)` must pick leaves of the same shape"):
        identify(model, data, other, **options)
    with pytest.raises(TypeError, match=r"tied=...\)` must be a list of functions"):
        Parameter("stiffness", oscillator.stiffness_of, tied=second_of)  # pyright: ignore


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"method": "newton"}, ValueError, r"method=...\).*gauss-newton.*got 'newton'"),
        ({"loss": "huber"}, TypeError, r"loss=...\)` must be a loss .*Huber.*got 'huber'"),
        ({"starts": 0}, ValueError, r"starts=...\)` must be a number of starts.*got 0"),
        (
            {"method": FirstOrder(optax.adam(0.1), batch=4)},
            ValueError,
            "at most the number of runs, 3; got 4",
        ),
    ],
)
def test_invalid_options_raise(options, error, message):
    with pytest.raises(error, match=message):
        oscillator.fit(oscillator.measure(), **options)


def test_invalid_arguments_raise():
    with pytest.raises(ValueError, match=r"Huber\(k=...\)` must be positive"):
        Huber(0.0)
    with pytest.raises(ValueError, match=r"Cauchy\(k=...\)` must be positive"):
        Cauchy(-1.0)
    with pytest.raises(TypeError, match=r"FirstOrder\(optimizer=...\)` must be an optimiser"):
        FirstOrder("adam")
    with pytest.raises(ValueError, match=r"steps=..., batch=...\)` must be positive; got 0"):
        FirstOrder(optax.adam(0.1), steps=0)
    data, model = oscillator.measure(), oscillator.model()
    mixed = [data[0], oscillator.measure(noise=None)[1]]
    with pytest.raises(ValueError, match=r"of a sensor must be given for every run"):
        oscillator.fit(mixed, rates=oscillator.RATES[:2])
    first = FirstOrder(optax.adam(0.1))
    with pytest.raises(ValueError, match="identify_batch` has no `FirstOrder`"):
        identify_batch(model, [data], oscillator.STIFF, method=first)


def test_gradient_steps_lead_to_the_optimum_of_least_squares():
    data = oscillator.measure()
    how = FirstOrder(optax.adam(0.05), steps=40, batch=2)
    fit, plain = oscillator.fit(data, method=how), oscillator.fit(data)
    words = next(n for n in fit.notes if n.startswith("40 steps of the first order")).split()
    assert float(words[-1].rstrip(".")) < 0.5 * float(words[-3])
    np.testing.assert_allclose(fit.values, plain.values, rtol=1e-6)


def test_noise_is_estimated_per_sensor():
    """Two sensors without a given noise: both are found, and the deviations with them."""
    ts, rng, rate = oscillator.TS, np.random.default_rng(2), rj.JointRate("hinge")
    model, state0 = oscillator.model(), oscillator.start(2.0)
    sol = rj.simulate(model, state0, ts[-1], ts=ts)
    noise = {oscillator.ANGLE: 5e-3, rate: 0.08}
    exact = {oscillator.ANGLE: sol.coordinates["hinge"][:, 0], rate: sol.rates["hinge"][:, 0]}
    data = {s: np.asarray(exact[s]) + std * rng.normal(size=ts.size) for s, std in noise.items()}
    parameters = [rj.Parameter("TorsionSpring.stiffness"), rj.Parameter("TorsionSpring.damping")]
    given = identify(model, Measurements(ts, data, noise), parameters, state0=state0)
    fit = identify(model, Measurements(ts, data), parameters, state0=state0)
    # Two standard errors of a deviation from 31 samples.
    np.testing.assert_allclose(list(fit.noise_by_sensor.values()), list(noise.values()), rtol=0.25)
    assert fit.chi_square == pytest.approx(1.0, abs=0.05) and not fit.noise_is_known
    assert np.all(np.abs(fit.values - given.values) < list(given.std.values()))
