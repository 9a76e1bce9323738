"""Trials that fail, starts that cannot succeed, and fits without an optimum."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from identification import cases

import rigidjax as rj
from rigidjax.identification import (
    Gyroscope,
    IdentificationError,
    Measurements,
    Parameter,
    PrincipalInertia,
    identify,
)


class _Growth(eqx.Module):
    """A moment with which rates go to infinity in finite time if `a` is large."""

    a: jax.Array

    def __call__(self, t, R, omega):
        return self.a * (omega @ omega) ** 2 * omega


def _growth_of(experiment):
    return experiment.model.system.moment.a


def _growing(a):
    return rj.NullSpace(rj.FixedPointBody(np.array(cases.INERTIA), moment=_Growth(jnp.asarray(a))))


@pytest.fixture(scope="module")
def growing_run():
    ts = np.linspace(0, 1, 30)
    values = cases.simulated_rates(_growing(1e-7), cases.RATES[0], ts)
    return Measurements(ts, {Gyroscope(): values}, name="growing")


def _fit_growth(start, run, rates=cases.RATES[0], **options):
    settings = {"max_steps": 500, "max_iterations": 60, "horizons": (1.0,)} | options
    state0 = rj.State(angular_velocity=np.array(rates))
    return identify(_growing(start), run, Parameter("a", _growth_of), state0=state0, **settings)


def test_a_stage_begins_again_if_a_longer_run_fails(growing_run):
    """The first samples are those of a growth with which rates become infinite within the run."""
    first = growing_run.ts <= 0.1
    large = cases.simulated_rates(_growing(1e-6), cases.RATES[0], growing_run.ts[:4])
    values = np.array(growing_run.values[0])
    values[first] = large[: first.sum()]
    run = Measurements(growing_run.ts, {Gyroscope(): values}, {Gyroscope(): 0.01})
    direct = _fit_growth(1e-8, run)
    fit = _fit_growth(1e-8, run, horizons=(0.1, 1.0))
    assert fit.converged and fit.failed_evaluations > direct.failed_evaluations
    np.testing.assert_allclose(fit.values, direct.values, atol=1e-3 * direct.std["a"])


def test_failed_start_raises(growing_run):
    """With the reason of that run: here the steps that were allowed, which the message names."""
    match = r"fails at the start values.*\['growing'\]. In the run 'growing': The maximum number"
    with pytest.raises(IdentificationError, match=match):
        _fit_growth(1e-4, growing_run)


class _SteepDrag(eqx.Module):
    """A moment whose slope by the rate is infinite at rest."""

    c: jax.Array

    def __call__(self, t, R, omega):
        return -self.c * jnp.sign(omega) * jnp.arccos(1.0 - jnp.abs(omega))


def test_non_finite_derivatives_are_named():
    body = rj.FixedPointBody(np.array(cases.INERTIA), moment=_SteepDrag(jnp.ones(())))
    model = rj.NullSpace(body)
    data = Measurements([0.0, 0.1, 0.2], {Gyroscope(): np.zeros((3, 3))}, {Gyroscope(): 0.1})
    match = r"can be simulated, but derivatives of readings by \['I.I1'.* of the gyroscope at t = "
    with pytest.raises(IdentificationError, match=match):
        identify(
            model,
            data,
            Parameter("I", cases.inertia_of, PrincipalInertia()),
            state0=rj.State(angular_velocity=np.zeros(3)),
        )


def test_an_iteration_limit_is_not_an_optimum(growing_run):
    match = r"did not converge: no optimum within 60 iter.*squares fell by 0 % in the last 10 iter"
    with pytest.raises(IdentificationError, match=match):
        _fit_growth(-1e-5, growing_run, tolerance=0.0)
    fit = _fit_growth(-1e-5, growing_run, tolerance=0.0, throw=False)
    # If a step gains nothing in its last digits, the fit continues with tighter tolerances.
    assert not fit.converged and fit.iterations[-1] == 60
    assert "**This fit did not converge: no optimum within 60 iterations, " in fit.report()


def test_parameter_without_effect_is_named(growing_run):
    """A moment proportional to the rates has no effect on a body at rest."""
    with pytest.raises(ValueError, match=r"\['a'\] act on nothing that is .* `state0=` in motion"):
        _fit_growth(1e-7, growing_run, rates=(0.0, 0.0, 0.0))
