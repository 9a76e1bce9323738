"""Signals that a law calls at another time than that of the run, against exact integrals."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from simulate.signals import INERTIA, TS, X, integral, spin

import rigidjax as rj


class Law(eqx.Module):
    """A moment about the third axis, of a signal at `rate * t + shift`."""

    signal: Any
    rate: Any = 1.0
    shift: Any = 0.0

    def __call__(self, t, R, omega):
        return jnp.array([0.0, 0.0, 1.0]) * self.signal(self.rate * t + self.shift)


class Function(eqx.Module):
    """A moment about the third axis, a function of time and a signal."""

    signal: Any
    function: Any = eqx.field(static=True)

    def __call__(self, t, R, omega):
        return jnp.array([0.0, 0.0, 1.0]) * self.function(self.signal, t)


def signal(kind: str, **options: Any) -> rj.Signal:
    return rj.Signal(TS, X, kind, **{"extrapolation": "constant", **options})  # pyright: ignore


def test_several_times_of_one_signal():
    """Jumps of a held signal at two times, the step of one table being the delay of the other."""
    ts = np.linspace(0.0, 1.2, 13)
    held = rj.Signal(ts, np.cos(5 * ts), "hold", extrapolation="constant")
    law = Function(held, lambda s, t: s(t) - 2.0 * s(t - 0.1))
    omega, sol = spin(law, backend="native")
    values = np.cos(5 * ts)
    exact = 0.1 * values[:11].sum() - 0.2 * (values[0] + values[:10].sum())
    np.testing.assert_allclose(omega, exact / INERTIA, rtol=0, atol=1e-10)
    assert sol.stats["num_steps"] <= 60


def test_times_that_are_not_linear_in_time():
    """The step-size control bounds the error."""
    law = Function(signal("linear"), lambda s, t: s(jnp.maximum(t - 0.1, 0.0)) + s(t))
    exact = integral("linear", 1.0, -0.1) + integral("linear", 1.0, 0.0)
    np.testing.assert_allclose(spin(law)[0], exact / INERTIA, rtol=0, atol=2e-6)
    beyond = Function(signal("linear", extrapolation="error"), lambda s, t: s(t * t))
    with pytest.raises(ValueError, match="at times that depend on the state, or not linearly"):
        spin(beyond)
    with pytest.warns(UserWarning, match="calls a Signal without a name, which jumps, at times"):
        jax.jit(jax.grad(lambda b: spin(Function(signal("hold"), lambda s, t: s(b * t * t)))[0]))(
            1.0
        )


def test_calls_in_branches_and_loops():
    """Times are found there, so that jumps are met exactly, and the calls at the time of the run
    need no search."""

    def branch(s, t):
        return jax.lax.cond(t < 2.0, lambda: s(t - 0.1), lambda: 0.0 * t)

    def loop(s, t):
        return jax.lax.fori_loop(0, 3, lambda k, total: total + s(t - 0.1) / 3, 0.0 * t)

    for function in (branch, loop):
        omega, sol = spin(Function(signal("hold"), function))
        np.testing.assert_allclose(omega, integral("hold", 1.0, -0.1) / INERTIA, rtol=1e-12)
        assert sol.stats["num_steps"] <= 30


def test_steps_of_a_fixed_length():
    law = Law(rj.Signal([0.0, 0.5, 1.0], [1.0, -2.0, 3.0], "hold", extrapolation="constant"))
    delayed = eqx.tree_at(lambda law: law.shift, law, -0.1)
    omega, _ = spin(delayed, dt=0.1)
    np.testing.assert_allclose(omega, (0.6 - 2.0 * 0.5) / INERTIA, rtol=1e-12)
    with pytest.raises(rj.SimulationError, match="jumps within a step of fixed length"):
        spin(eqx.tree_at(lambda law: law.shift, law, -0.15), dt=0.1)
    twice = Function(law.signal, lambda s, t: s(t) + s(t - 0.1))
    with pytest.raises(ValueError, match="jumps, at several times or at times that are not"):
        spin(twice, dt=0.1)


def test_run_ends_where_the_call_leaves_the_table():
    inside = signal("linear", extrapolation="error")
    run = jax.jit(lambda rate, shift: spin(Law(inside, rate, shift), throw=False))
    omega, sol = run(0.5, 0.2)
    np.testing.assert_allclose(omega, integral("linear", 0.5, 0.2) / INERTIA, atol=1e-4)
    assert sol.result == rj.RESULTS.successful
    for rate, shift in ((2.0, 0.0), (1.0, -0.1), (-1.0, 1.0)):
        assert run(rate, shift)[1].result == rj.RESULTS.signal_ended
    assert np.isnan(inside(jnp.array(1.4))) and np.isfinite(inside(jnp.array(1.3)))
