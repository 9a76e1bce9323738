"""Measured functions of time: between samples, at samples, and through runs."""

from typing import Any, cast

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from simulate.signals import INERTIA, TS, X, integral, spin

import rigidjax as rj

evaluated = eqx.filter_jit(lambda signal, at: jax.vmap(signal)(jnp.asarray(at)))


def about_axis(values):
    """A moment about the third axis."""
    return np.stack([0.0 * values, 0.0 * values, values], axis=1)


def test_times_outside_the_table():
    at = jnp.array([-0.2, 0.02, 1.35, 2.0])
    for kind in ("linear", "hold", "cubic"):
        constant = rj.Signal(TS, X, kind, delay=0.05, bias=0.25, extrapolation="constant")
        zero = rj.Signal(TS, X, kind, delay=0.05, bias=0.25, extrapolation="zero")
        np.testing.assert_array_equal(evaluated(constant, at), np.array([1, 1, -1, -1]) + 0.25)
        np.testing.assert_array_equal(evaluated(zero, at), np.full(4, 0.25))


class Scaled(eqx.Module):
    """A signal times what a function closes over."""

    signal: rj.Signal
    factor: Any

    def __call__(self, t, R, omega):
        return self.factor() * self.signal(t)


def test_steps_end_at_samples_of_traced_signals():
    """diffrax wraps what is saved in a closure over the direction of time."""

    @jax.jit
    def run(scale):
        signal = rj.Signal(TS, about_axis(X), "hold")
        saveat = diffrax.SaveAt(ts=jnp.array([0.4, 1.1]), fn=lambda t, y, args: y)
        moment = Scaled(signal, lambda: scale)
        model = rj.NullSpace(rj.FixedPointBody((0.5, 0.4, INERTIA), moment=moment))
        sol = rj.simulate(model, rj.State(), 1.1, saveat=saveat, solver=diffrax.Dopri5())
        return jax.vmap(model.decode)(sol.ts, sol.ys).angular_velocity[-1, 0, 2], sol.stats

    expected = 2.0 * integral("hold") / INERTIA
    (omega, stats), (by_scale, _) = jax.jvp(run, (2.0,), (1.0,))
    np.testing.assert_allclose(omega, expected, rtol=1e-12)
    np.testing.assert_allclose(by_scale, expected / 2, rtol=1e-12)
    assert stats["num_steps"] < 30


def test_batch_with_different_samples():
    """Tables of different length are padded by infinite times."""
    steps, padded = (
        jnp.array([0.0, 0.31, 0.5, 0.62, 1.0, 1.3]),
        jnp.array([0, 0.44, 1.2, *[jnp.inf] * 3]),
    )

    @jax.jit
    @jax.vmap
    def run(ts):
        signal = rj.Signal(TS, about_axis(X))
        omega, sol = spin(eqx.tree_at(lambda s: s.ts, signal, ts))
        return omega, sol.stats["num_steps"]

    omega, count = run(jnp.stack([steps, padded]))
    short = np.interp(np.linspace(0, 1.1, 2), np.array(padded[:3]), X[:3])
    trapezia = [0.0, 0.44, 1.1], [X[0], X[1], short[1]]
    exact = [integral("linear"), np.trapezoid(trapezia[1], trapezia[0])]
    np.testing.assert_allclose(omega, np.array(exact) / INERTIA, rtol=1e-12)
    # As many as tolerance 1e-9 takes, and those that are cut.
    assert count[0] <= 40 and count[1] <= 40


def test_a_long_table_costs_its_steps():
    ts = np.linspace(0.0, 6.0, 6001)
    omega, sol = spin(rj.Signal(ts, about_axis(np.sin(40 * ts))), 6.0, max_steps=6100)
    assert sol.stats["num_steps"] <= 6010
    exact = np.trapezoid(np.sin(40 * ts), ts) / INERTIA
    np.testing.assert_allclose(omega, exact, rtol=0, atol=1e-12)


def test_steps_of_a_fixed_length():
    """They end where they end: jumps must be there, and are then met exactly."""
    ts = np.array([0.0, 0.25, 0.75, 1.5])
    signal = rj.Signal(ts, about_axis(X[[0, 1, 3, 2]]), "hold")
    exact = (0.25 * X[0] + 0.5 * X[1] + 0.25 * X[3]) / INERTIA
    for solver in (diffrax.Dopri5(), rj.solvers.EnergyMomentum()):
        omega, _ = spin(signal, 1.0, solver=solver, dt=0.05)
        np.testing.assert_allclose(omega, exact, rtol=1e-12)
        with pytest.raises(rj.SimulationError, match="jumps within a step of fixed length"):
            spin(signal, 1.0, solver=solver, dt=0.1)
    delayed = eqx.tree_at(lambda s: s.delay, signal, jnp.array(0.0), is_leaf=lambda x: x is None)
    with pytest.raises(ValueError, match="jumps and has a delay; steps of a fixed length"):
        spin(delayed, 1.0, dt=0.05)
    with pytest.raises(ValueError, match="`GeneralizedAlpha` carries accelerations from step to"):
        spin(signal, 1.0, solver=rj.solvers.GeneralizedAlpha(), dt=0.05)


def test_run_ends_at_the_end_of_its_table():
    signal = rj.Signal(TS, about_axis(X), name="wheel")
    with pytest.raises(ValueError, match=r"from 0 to 1.4 s .* 'wheel', which covers 0 to 1.3"):
        spin(signal, 1.4)
    ended = jax.jit(lambda t1: spin(signal, t1, throw=False)[1].result)
    assert ended(1.3) == rj.RESULTS.successful
    assert ended(1.4) == rj.RESULTS.signal_ended


def hinge(*args, **options):
    ts = np.linspace(0.0, 1.0, 9)
    motion = rj.Signal(ts, np.sin(3 * ts), *args, **options)
    return rj.Revolute("ground", "arm", (0, 0, 0), (0, 0, 1), motion=motion, name="hinge")


def test_motion_requires_cubic_signals():
    for kind in ("linear", "hold"):
        with pytest.raises(ValueError, match=r"Revolute\(motion=...\)` needs a motion with veloc"):
            hinge(kind)
    with pytest.raises(ValueError, match='got "cubic" and "constant"'):
        hinge("cubic", extrapolation="constant")


def test_invalid_signals_raise():
    refused: Any = (
        (([0.0], [1.0]), {}, r"ts=...\)` must have shape \(T,\) with at least two"),
        (([0.0, 1.0, 1.0], X[:3]), {}, "strictly increasing; sample 2 is at 1.0 s after 1.0"),
        (([0.0, np.nan], X[:2]), {}, r"ts=...\)` must be finite"),
        ((TS, X[:3]), {}, r"values=...\)` must have shape \(6,\) or \(6, n\)"),
        ((TS, X), {"gain": (1.0, 2.0)}, r"gain=...\)` must have shape \(\)"),
        ((TS, X), {"bias": (1.0, 2.0)}, r"bias=...\)` must have shape \(\)"),
        ((TS, X), {"delay": np.inf}, r"delay=...\)` must be finite"),
        ((TS, X, "spline"), {}, "must be one of 'linear', 'hold', 'cubic'; got 'spline'"),
        ((TS, X), {"extrapolation": 0.0}, "must be one of 'error', 'constant', 'zero'; got 0.0"),
    )
    for arguments, options, message in refused:
        with pytest.raises(ValueError, match=message):
            rj.Signal(*arguments, **options)
    with pytest.raises(TypeError, match=r"name=...\)` must be a text; got 3"):
        rj.Signal(TS, X, name=cast(str, 3))
    with pytest.raises(Exception, match="must be strictly increasing"):
        jax.jit(lambda ts: rj.Signal(ts, X).ts)(jnp.asarray(TS[::-1]))
