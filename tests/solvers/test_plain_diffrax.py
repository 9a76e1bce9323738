"""The implicit and extrapolation solvers in plain `diffrax.diffeqsolve`, under strict promotion."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
import pytest
from jax.flatten_util import ravel_pytree
from scipy.integrate import solve_ivp
from scipy.special import ellipk
from solvers import cases

from rigidjax.solvers import BDF, Odex, Radau5, Seulex, SimplifiedNewton

SOLVERS = {"Radau5": Radau5(), "BDF": BDF(), "Odex": Odex(), "Seulex": Seulex()}


def lotka_volterra(t, y, args):
    prey, hunters = y
    return 2.0 * (prey - prey * hunters), -(hunters - prey * hunters)


def brusselator(t, y, args):
    x, z = y
    return jnp.stack([1 + x * x * z - 4 * x, 3 * x - x * x * z])


def pendulum(t, y, args):
    return jnp.stack([y[1], -9.81 * jnp.sin(y[0])])


def tracking(t, y, args):
    """Prothero and Robinson's equation: the solution follows cos t."""
    return -1000.0 * (y - jnp.cos(t)) - jnp.sin(t)


def solve(field, solver, y0, t1, t0=0.0, tolerance=1e-8, **kwargs):
    settings = dict(
        stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance), max_steps=5_000
    )
    return diffrax.diffeqsolve(
        diffrax.ODETerm(field), solver, t0, t1, kwargs.pop("dt0", None), y0, **settings | kwargs
    )


def solve_by_scipy(field, y0, t1, t0=0.0, args=None):
    """End by SciPy's DOP853 with a tolerance of 1e-12."""
    start, unravel = ravel_pytree(y0)
    rate = jax.jit(lambda t, y: ravel_pytree(field(t, unravel(y), args))[0])
    run = solve_ivp(
        lambda t, y: np.asarray(rate(t, y)), (t0, t1), start, "DOP853", rtol=1e-12, atol=1e-12
    )
    return run.y[:, -1]


def last(solution):
    return ravel_pytree(jax.tree.map(lambda leaf: leaf[-1], solution.ys))[0]


# Field, start, end, arguments.
PROBLEMS = {
    "Radau5": (lotka_volterra, (1.0, 3.0), 20.0, None),
    "BDF": (brusselator, np.array([1.5, 3.0]), 10.0, None),
    "Odex": (lotka_volterra, (1.0, 3.0), 20.0, None),
    "Seulex": (cases.van_der_pol, np.array([2.0, 0.0]), 10.0, 5.0),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_results_and_steps_agree_with_simulate(name):
    solver, (field, y0, t1, args) = SOLVERS[name], PROBLEMS[name]
    y0 = jax.tree.map(jnp.asarray, y0)
    solution = solve(field, solver, y0, t1, args=args)
    end = solve_by_scipy(field, y0, t1, args=args)
    # Errors of steps add up and grow; SciPy's BDF is off by 1e3 tolerances here.
    assert np.max(np.abs(last(solution) - end) / (1 + np.abs(end))) < 200 * 1e-8
    # The controller takes what the method proposes: few steps are rejected.
    assert solution.stats["num_rejected_steps"] < 0.35 * int(solution.stats["num_accepted_steps"])


CONTROLLERS = {
    "Radau5": dict(pcoeff=0.2, icoeff=0.3, dcoeff=0.1),
    "BDF": dict(dtmax=0.05, factormax=3.0, safety=0.8),
    "Odex": dict(dtmax=0.05, factormax=3.0, safety=0.8),
    "Seulex": dict(pcoeff=0.3, icoeff=0.4),
}


@pytest.mark.exhaustive(but=("BDF",))
@pytest.mark.parametrize("name", CONTROLLERS)
def test_coefficients_of_the_controller(name):
    y0 = (jnp.asarray(1.0), jnp.asarray(3.0))
    control = diffrax.PIDController(rtol=1e-7, atol=1e-7, **CONTROLLERS[name])
    solution = solve(lotka_volterra, SOLVERS[name], y0, 5.0, stepsize_controller=control)
    assert np.max(np.abs(last(solution) - solve_by_scipy(lotka_volterra, y0, 5.0))) < 200 * 1e-7


def test_given_and_fixed_steps():
    """`StepTo`, `ConstantStepSize`, and steps clipped to given times."""
    y0, end = jnp.array([1.0, 0.0]), solve_by_scipy(pendulum, jnp.array([1.0, 0.0]), 1.0)
    finder = SimplifiedNewton(rtol=1e-8, atol=1e-8)
    own = Odex(root_finder=finder)
    fixed = solve(pendulum, own, y0, 1.0, dt0=0.004, stepsize_controller=diffrax.ConstantStepSize())
    given = diffrax.StepTo(ts=jnp.linspace(0.0, 1.0, 251) ** 1.1)
    stepped = solve(pendulum, own, y0, 1.0, stepsize_controller=given)
    control = diffrax.PIDController(rtol=1e-8, atol=1e-8)
    clipped = diffrax.ClipStepSizeController(control, step_ts=[0.123], jump_ts=[0.5])
    cut = solve(
        pendulum, Odex(), y0, 1.0, stepsize_controller=clipped, saveat=diffrax.SaveAt(steps=True)
    )
    for solution in (fixed, stepped):
        assert np.max(np.abs(last(solution) - end)) < 1e-6
    times = np.asarray(cut.ts)
    assert 0.123 in times and np.min(np.abs(times - 0.5)) < 1e-15
    assert np.max(np.abs(cut.ys[np.isfinite(times)][-1] - end)) < 1e-6


@pytest.mark.exhaustive("Odex")
@pytest.mark.parametrize("solver", [BDF(), Odex()], ids=["BDF", "Odex"])
def test_backwards_and_saved_values(solver):
    """Dense output, saved steps, functions and times of a run from 2 to 0."""
    y0 = jnp.array([1.0, 0.0])
    times = jnp.linspace(2.0, 0.0, 7)
    subs = {
        "times": diffrax.SubSaveAt(ts=times),
        "energy": diffrax.SubSaveAt(
            ts=times, fn=lambda t, y, args: 0.5 * y[1] ** 2 - 9.81 * jnp.cos(y[0])
        ),
        "steps": diffrax.SubSaveAt(steps=True, t0=True),
    }
    saveat = diffrax.SaveAt(subs=subs, dense=True)
    solution = solve(pendulum, solver, y0, 0.0, t0=2.0, saveat=saveat)
    ends = np.array([solve_by_scipy(pendulum, y0, float(t), t0=2.0) for t in times[1:]])
    assert np.max(np.abs(solution.ys["times"][1:] - ends)) < 2e-5
    assert np.max(np.abs(jax.vmap(solution.evaluate)(times)[1:] - ends)) < 2e-5
    assert np.max(np.abs(solution.ys["energy"] + 9.81 * np.cos(1.0))) < 2e-4
    count = int(solution.stats["num_accepted_steps"])
    assert np.all(np.diff(solution.ts["steps"][: count + 1]) < 0)


@pytest.mark.exhaustive(but=("Radau5", "Seulex"))
@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
def test_event_in_plain_diffrax(solver):
    """The pendulum passes the vertical after a quarter of its period."""
    event = diffrax.Event(lambda t, y, args, **kwargs: y[0], optx.Newton(1e-9, 1e-9))
    solution = solve(pendulum, solver, jnp.array([1.0, 0.0]), 5.0, event=event)
    quarter = ellipk(np.sin(0.5) ** 2) / np.sqrt(9.81)
    assert abs(solution.ts[-1] - quarter) < 1e-5
    assert abs(solution.ys[-1, 0]) < 1e-5


@pytest.mark.parametrize(
    ("name", "adjoint"),
    [
        *((name, diffrax.ForwardMode()) for name in SOLVERS),
        ("BDF", diffrax.DirectAdjoint()),
        ("Odex", diffrax.RecursiveCheckpointAdjoint()),
    ],
)
def test_derivative_in_plain_diffrax(name, adjoint):
    """By a parameter of exponential decay: -t exp(-t)."""

    def end(rate):
        solution = solve(
            lambda t, y, args: -args * y, SOLVERS[name], jnp.array([1.0]), 1.0, args=rate,
            adjoint=adjoint, max_steps=128, tolerance=1e-7,
        )  # fmt: skip
        return solution.ys[-1, 0]

    derivative = jax.jacfwd if isinstance(adjoint, diffrax.ForwardMode) else jax.grad
    assert abs(derivative(end)(jnp.asarray(1.0)) + np.exp(-1.0)) < 1e-5


@pytest.mark.parametrize("solver", [Radau5(), Odex()], ids=["Radau5", "Odex"])
def test_batch_without_a_limit_of_steps(solver):
    starts = jnp.array([0.2, 1.0, 3.0])

    def end(angle):
        y0 = jnp.stack([angle, jnp.zeros_like(angle)])
        return solve(pendulum, solver, y0, 2.0, max_steps=None).ys[-1]

    ends = jax.vmap(end)(starts)
    for angle, found in zip(starts, ends, strict=True):
        exact = solve_by_scipy(pendulum, jnp.stack([angle, 0.0 * angle]), 2.0)
        assert np.max(np.abs(found - exact)) < 1e-4


def test_stiff_components_keep_the_tolerance():
    """Long steps along cos t, whose errors a second filter would hide."""
    saveat = diffrax.SaveAt(steps=True)
    solution = solve(tracking, Radau5(), jnp.array([0.0]), 3.0, saveat=saveat)
    ts = np.asarray(solution.ts)
    ts, ys = ts[np.isfinite(ts)], np.asarray(solution.ys[np.isfinite(ts), 0])
    assert np.max(np.abs(ys - np.cos(ts) + np.exp(-1000 * ts))) < 10 * 1e-8
    assert solution.stats["num_steps"] < 170
