"""Where fits end: at an optimum, soon, or with a word on what to do."""

import dataclasses
import types

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from identification.cases import inertia_of

import rigidjax as rj
from rigidjax.identification import PrincipalInertia
from rigidjax.identification.result.from_minimum import _describe_ending
from rigidjax.identification.search.least_squares import MAX_DISTANCE
from rigidjax.identification.search.options import make_search


def ending(converged, offset, undetermined=(), cost=(9.0, 5.0, 4.0), condition=1.0):
    """Return the message of a search that ended in this way."""
    search = dataclasses.replace(make_search(jnp.float64), tolerance=jnp.asarray(5e-3))
    minimum = types.SimpleNamespace(
        converged=converged, iterations=np.array([2, len(cost)]), cost=np.array([cost, cost])
    )
    verdict = types.SimpleNamespace(
        identifiable=not undetermined,
        condition=condition,
        undetermined=[dict.fromkeys(undetermined, 1)],
    )
    result, warnings = _describe_ending(minimum, offset, search, verdict)
    return result, " ".join(warnings)


def test_fit_reports_only_established_reasons():
    assert ending(True, 0.1) == ("converged", "")
    result, told = ending(True, 0.2)
    assert "stopped 0.2 standard errors from the optimum, as `tolerance` allows" in result
    assert "Lower `tolerance` (here 0.005)" in told
    result, told = ending(True, 1.04)
    assert result == "no step leads closer to the optimum, which is 1 standard errors away"
    assert "rtol" not in told
    result, told = ending(False, 3.0)
    assert result == "no optimum within 200 iterations, 3 standard errors from it"
    assert told == (
        "The sum of squares fell by 56 % in the last 3 iterations; more of them "
        "(`max_iterations`) lead further."
    )
    _, told = ending(False, 3.0, cost=(4.0, 4.0))
    assert told == "The sum of squares fell by 0 % in the last 2 iterations."
    result, told = ending(False, float("nan"), ("k1", "k2"))
    assert result == "no optimum within 200 iterations, far from it"
    assert (
        "The data do not determine k1 and k2: fix some of them at known values, or give priors."
        in told
    )
    assert "hardly determine" in ending(False, 1.0, condition=1e6)[1]


class Table(eqx.Module):
    """A moment as a table that steps jump over."""

    ts: jax.Array
    values: jax.Array

    def __call__(self, t, R, omega):
        return jnp.stack([jnp.interp(t, self.ts, v) for v in self.values])


@pytest.mark.exhaustive
def test_integration_errors_do_not_stop_a_fit_early():
    """The sum of squares jumps from trial to trial by more than there is to gain.

    A rough table of torques drives a body, integrated at 1e-6. At 1e-10 a run takes some 5,000
    steps, more than the 4,096 of `max_steps`.
    """
    rng = np.random.default_rng(1)
    knots, ts = np.linspace(0, 8.0, 161), np.linspace(0, 8.0, 401)
    torque = np.stack([0.02 * np.sin(1.3 * knots + k) for k in range(3)])
    torque = jnp.asarray(torque + 0.02 * rng.normal(size=torque.shape))

    def model(inertia):
        moment = Table(jnp.asarray(knots), torque)
        return rj.NullSpace(rj.FixedPointBody(inertia, moment=moment))

    truth, state = (0.02, 0.017, 0.006), rj.State(angular_velocity=(0.3, 0.5, -0.2))
    run = rj.simulate(model(truth), state, ts[-1], ts=ts, rtol=1e-11, atol=1e-11)
    rates = np.asarray(run.states.angular_velocity[:, 0])
    gyroscope = rj.Gyroscope()
    data = {gyroscope: rates + 1e-3 * rng.normal(size=rates.shape)}
    fit = rj.identify(
        model((0.025, 0.02, 0.008)),
        rj.Measurements(ts, data, {gyroscope: 1e-3}),
        rj.Parameter("inertia", inertia_of, PrincipalInertia(), labels=("I1", "I2", "I3")),
        state0=state,
        rtol=1e-6,
        atol=1e-6,
        horizons=(1.0,),
        throw=False,
    )
    assert fit.converged and fit.offset <= MAX_DISTANCE
    assert any("rtol = 1e-08 in the end: at 1e-06 the fit ended" in note for note in fit.notes)
    assert np.all(np.abs(fit.values - truth) < 4 * np.array(list(fit.std.values())))
