"""Signals that a law calls at another time than that of the run, against exact integrals."""

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import PPoly

import rigidjax as rj

TS = np.array([0.0, 0.31, 0.5, 0.62, 1.0, 1.3])
X = np.array([1.0, -2.0, 3.0, 0.5, 1.5, -1.0])
INERTIA, END = 0.3, 1.1


def table(kind: str) -> PPoly:
    """Return the table between its samples, constant outside."""
    slopes = np.diff(X) / np.diff(TS) if kind == "linear" else np.zeros(len(X) - 1)
    coefficients = np.array([[0.0, *slopes, 0.0], [X[0], *X]])
    return PPoly(coefficients, np.array([-10.0, *TS, 10.0]))


def integral(kind: str, rate: float, shift: float) -> float:
    """Return the integral of the table at `rate * t + shift` over the run."""
    return float(table(kind).integrate(shift, rate * END + shift)) / rate


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


def spin(law: Any, **options: Any) -> tuple[Any, rj.Solution]:
    """Return the angular velocity at the end about the third axis, and the solution."""
    steps = {} if "dt" in options else {"rtol": 1e-9, "atol": 1e-9}
    options = {"solver": diffrax.Dopri5(), "max_steps": 500} | steps | options
    model = rj.NullSpace(rj.FixedPointBody((0.5, 0.4, INERTIA), moment=law))
    sol = rj.simulate(model, rj.State(), END, **options)
    return sol.states.angular_velocity[-1, 0, 2], sol


@pytest.mark.exhaustive(but=("hold",))
@pytest.mark.parametrize("kind", ["linear", "hold"])
@pytest.mark.exhaustive
def test_delayed_and_scaled_signals_with_their_derivatives(kind):
    def end(parameters):
        rate, shift = parameters
        omega, sol = spin(Law(signal(kind), rate, shift))
        return omega, sol.stats["num_steps"]

    run = jax.jit(end)
    forward, reverse = (jax.jit(of(end, has_aux=True)) for of in (jax.jacfwd, jax.jacrev))
    x = table(kind)
    for rate, shift in ((1.0, -0.12), (2.0, 0.0), (-1.0, 1.2), (0.4, 0.03)):
        at, last = jnp.array([rate, shift]), rate * END + shift
        omega, steps = run(at)
        exact = integral(kind, rate, shift)
        np.testing.assert_allclose(omega, exact / INERTIA, rtol=0, atol=1e-11)
        assert steps <= 40  # those of tolerance 1e-9, and those that are cut at samples
        by_rate, by_shift = (END * x(last) - exact) / rate, (x(last) - x(shift)) / rate
        J = forward(at)[0]
        np.testing.assert_allclose(J, np.array([by_rate, by_shift]) / INERTIA, atol=1e-8)
        np.testing.assert_allclose(reverse(at)[0], J, rtol=0, atol=1e-11)


@pytest.mark.exhaustive(but=("native",))
@pytest.mark.parametrize("backend", ["native", "xla"])
def test_several_times_of_one_signal(backend):
    """Jumps of a held signal at two times, the step of one table being the delay of the other."""
    ts = np.linspace(0.0, 1.2, 13)
    held = rj.Signal(ts, np.cos(5 * ts), "hold", extrapolation="constant")
    law = Function(held, lambda s, t: s(t) - 2.0 * s(t - 0.1))
    omega, sol = spin(law, backend=backend)
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


@pytest.mark.exhaustive(but=("adaptive",))
@pytest.mark.parametrize("options", [{}, {"dt": 0.01}], ids=["adaptive", "fixed"])
def test_run_ends_where_the_call_leaves_the_table(options):
    inside = signal("linear", extrapolation="error")
    run = jax.jit(lambda rate, shift: spin(Law(inside, rate, shift), throw=False, **options))
    omega, sol = run(0.5, 0.2)
    np.testing.assert_allclose(omega, integral("linear", 0.5, 0.2) / INERTIA, atol=1e-4)
    assert sol.result == rj.RESULTS.successful
    for rate, shift in ((2.0, 0.0), (1.0, -0.1), (-1.0, 1.0)):
        assert run(rate, shift)[1].result == rj.RESULTS.signal_ended
    assert np.isnan(inside(jnp.array(1.4))) and np.isfinite(inside(jnp.array(1.3)))


@pytest.mark.exhaustive
def test_derivatives_of_a_closure_and_of_a_batch():
    """A law that closes over a traced value, with two times of one signal; lanes of a batch have
    samples at different times."""

    def end(factor, delay):
        def law(s, t):
            return factor * (s(t) - 2.0 * s(t - delay))

        return spin(Function(signal("hold"), law))[0]

    x, delays = table("hold"), jnp.array([0.12, 0.23])
    values, by_delay = jax.jit(
        jax.vmap(jax.value_and_grad(lambda delay: end(1.5, delay))),
    )(delays)
    for delay, value, slope in zip(delays, values, by_delay, strict=True):
        exact = integral("hold", 1.0, 0.0) - 2.0 * integral("hold", 1.0, -float(delay))
        np.testing.assert_allclose(value, 1.5 * exact / INERTIA, rtol=0, atol=1e-9)
        exact = 3.0 * (x(END - delay) - x(-delay)) / INERTIA
        np.testing.assert_allclose(slope, exact, rtol=0, atol=1e-8)


class Policy(eqx.Module):
    """A delayed signal as the value of an input."""

    signal: Any

    def __call__(self, t, view):
        return self.signal(t - 0.1)


class Preview(eqx.Module):
    """A sampled controller that reads its signal ahead of time."""

    signal: Any
    ahead: float = eqx.field(static=True)

    def __call__(self, t, view, state):
        return self.signal(t + self.ahead), state


class Delayed(eqx.Module):
    """An input or a signal, read at another time."""

    law: Any
    delay: Any = 0.1

    def __call__(self, t):
        return self.law(t - self.delay)


def drive(torque: Any, value: Any, **options: Any) -> tuple[Any, rj.Solution]:
    """Return the angular momentum of a hinged arm after a run with an input, and the solution."""
    arm = rj.Body.box("arm", (1.0, 0.2, 0.2), mass=1.0, position=(0.5, 0, 0))
    hinge = rj.Revolute("ground", "arm", (0, 0, 0), (0, 0, 1), name="hinge")
    system = rj.System([arm], [hinge], [rj.Motor("hinge", torque)])
    options = {"rtol": 1e-9, "atol": 1e-9} | options
    start = system.reference_state()
    sol = rj.simulate(rj.NullSpace(system), start, END, inputs={"u": value}, **options)
    inertia = 1.04 / 12 + 0.25
    return inertia * sol.states.angular_velocity[-1, 0, 2], sol


@pytest.mark.exhaustive
def test_inputs():
    delayed = integral("hold", 1.0, -0.1)
    for torque, value in (
        (Delayed(rj.Input("u")), signal("hold")),
        (rj.Input("u"), Policy(signal("hold"))),
    ):
        momentum, sol = drive(torque, value)
        np.testing.assert_allclose(momentum, delayed, rtol=1e-12)
        assert sol.stats["num_steps"] <= 12
    # A controller reads its signal at samples, where no step is cut for it.
    ahead = rj.SampledController(Preview(signal("linear"), 0.1), 0.1)
    exact = 0.1 * table("linear")(0.1 * np.arange(1, 12)).sum()
    momentum, sol = drive(rj.Input("u"), ahead)
    np.testing.assert_allclose(momentum, exact, rtol=1e-12)
    assert sol.stats["num_steps"] <= 13
    for value in (ahead, Policy(signal("hold"))):
        with pytest.raises(ValueError, match="evaluates the input 'u' at another time than that"):
            drive(Delayed(rj.Input("u")), value)
    beyond = rj.SampledController(Preview(signal("linear", extrapolation="error"), 0.5), 0.1)
    with pytest.raises(rj.SimulationError):
        drive(rj.Input("u"), beyond, max_steps=300)


@pytest.mark.exhaustive
@pytest.mark.parametrize("index", [0, 3])
def test_implicit_methods(index):
    """A pendulum driven by held torques: the delay of a call is that of the signal."""
    arm = rj.Body.box("arm", (1.0, 0.2, 0.2), mass=1.0, position=(0.5, 0, 0))
    joint = rj.Revolute("ground", "arm", (0, 0, 0), (0, 0, 1), name="hinge")
    solver = rj.solvers.Radau5() if index else rj.solvers.BDF()

    def end(law):
        system = rj.System([arm], [joint], [rj.Motor("hinge", law), rj.Gravity((0, -9.81, 0))])
        model = rj.Absolute(system, index=index) if index else rj.NullSpace(system)
        start = system.reference_state()
        sol = rj.simulate(model, start, 0.9, solver=solver, rtol=1e-7, atol=1e-7, max_steps=4000)
        return sol.states.angular_velocity[-1, 0, 2]

    def by_call(delay):
        return end(Delayed(signal("hold"), delay))

    def by_signal(delay):
        return end(signal("hold", delay=delay))

    at = jnp.array(0.02)
    value, reverse = jax.jit(jax.value_and_grad(by_call))(at)
    of_signal, forward = jax.jit(lambda d: jax.jvp(by_signal, (d,), (jnp.ones_like(d),)))(at)
    np.testing.assert_allclose(value, of_signal, rtol=1e-10)
    np.testing.assert_allclose(reverse, forward, rtol=1e-9)
