"""Steps of differentiated runs near an equilibrium, where the error of the motion is zero."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
import pytest
import scipy.linalg

import rigidjax as rj

# Relative errors of first derivatives, in units of the tolerance.
ALLOWED = 1e3
END = 5.0
MASS, LENGTH, INERTIA, GRAVITY = 1.3, 0.4, 0.05, 9.81
HINGE_INERTIA = INERTIA + MASS * LENGTH**2
FREQUENCY = np.sqrt(MASS * GRAVITY * LENGTH / HINGE_INERTIA)


class Sine(eqx.Module):
    """A moment that is zero if its size is."""

    size: jax.Array

    def __call__(self, t):
        return self.size * jnp.sin(2 * t)


def pendulum(moment):
    rod = rj.Body("rod", MASS, (INERTIA, INERTIA, 1e-3), (0, 0, -LENGTH))
    hinge = rj.Revolute("ground", "rod", (0, 0, 0), axis=(0, 1, 0), name="h")
    return rj.System(rod, hinge, [rj.Gravity((0, 0, -GRAVITY)), rj.Motor("h", Sine(moment))])


def final_rate(inputs, rtol, adjoint=None):
    """Rate of the hinge after `END` seconds by its start rate and the size of the moment."""
    rate, moment = inputs
    system = pendulum(moment)
    start = rj.jointed_state(system, {"h": 0.0}, {"h": rate})
    sol = rj.simulate(rj.NullSpace(system), start, END, rtol=rtol, atol=rtol, adjoint=adjoint)
    return sol.rates["h"][-1, 0], sol.stats


def exact_derivatives():
    """Derivatives of the rate at rest: q'' = -FREQUENCY^2 q + moment sin(2 t) / HINGE_INERTIA."""
    turned = FREQUENCY * END
    by_moment = 2 * (np.cos(2 * END) - np.cos(turned)) / (FREQUENCY**2 - 4) / HINGE_INERTIA
    return np.array([np.cos(turned), by_moment])


def test_derivatives_of_a_pendulum_at_rest():
    values = jax.jit(final_rate)
    forward = jax.jit(jax.jacfwd(final_rate, has_aux=True))
    reverse = jax.jit(jax.grad(final_rate, has_aux=True))
    for rtol in (1e-4, 1e-7, 1e-10):
        for rate in (0.0, 1e-12, 1e-6):
            inputs = jnp.array([rate, 0.0])
            found, stats = forward(inputs, rtol)
            error = np.abs(found - exact_derivatives()).max() / np.abs(exact_derivatives()).max()
            assert error < ALLOWED * rtol
            # Local errors may grow on their way to the end.
            assert 0.1 * error < stats["derivative_error"] < ALLOWED * rtol
            again, stats_again = reverse(inputs, rtol)
            np.testing.assert_allclose(again, found, rtol=0, atol=1e-9 * np.abs(found).max())
            # Round-off decides on the last step at the tightest tolerance.
            assert abs(stats_again["num_steps"] - stats["num_steps"]) <= (rtol < 1e-9)
    # Steps of a run that is not differentiated go on to grow.
    _, stats = values(jnp.zeros(2), 1e-10)
    assert stats["num_steps"] < 8
    assert np.isnan(stats["derivative_error"])


def test_point_on_a_circle_at_index_3_in_plain_diffrax():
    """With `consistent`, forwards and backwards in time; a warning without it."""

    def field(t, y, args):
        x, v, tension = y[:2], y[2:4], y[4]
        acceleration = jnp.array([0.0, -GRAVITY]) - tension * x
        return jnp.concatenate([v, acceleration, 0.5 * (x @ x - 1.0)[None]])

    def consistent(t, y, args):
        x = y[:2] / jnp.sqrt(y[:2] @ y[:2])
        v = y[2:4] - (x @ y[2:4]) * x
        return jnp.concatenate([x, v, (v @ v - GRAVITY * x[1])[None]])

    solver, mass = rj.solvers.Radau5(), np.diag([1.0, 1.0, 1.0, 1.0, 0.0])

    def end(rate, t1, consistent):
        term = rj.solvers.MassMatrixTerm(field, mass, index=(1, 1, 2, 2, 3), consistent=consistent)
        y0 = jnp.array([0.0, -1.0, rate, 0.0, GRAVITY + rate * rate])
        return diffrax.diffeqsolve(
            term, solver, 0.0, t1, None, y0, max_steps=512, adjoint=rj.AnyMode(),
            stepsize_controller=solver.controller(1e-6, 1e-6, optx.rms_norm),
        ).ys[-1, 2]  # fmt: skip

    slope = jax.jit(jax.jacfwd(lambda rate, t1: end(rate, t1, consistent)))
    for t1 in (END, -END):
        expected = np.cos(np.sqrt(GRAVITY) * END)
        np.testing.assert_allclose(slope(0.0, t1), expected, rtol=ALLOWED * 1e-6)
    with pytest.warns(UserWarning, match=r"MassMatrixTerm\(consistent=\.\.\.\)"):
        jax.jit(jax.jacfwd(lambda rate: end(rate, END, None))).lower(0.0)


def test_steps_without_the_probe():
    adjoint = rj.AnyMode(controls_derivatives=False)
    found, stats = jax.jacfwd(lambda x: final_rate(x, 1e-8, adjoint), has_aux=True)(jnp.zeros(2))
    assert stats["num_steps"] < 8
    assert np.abs(found - exact_derivatives()).max() > 1.0


def test_solvers_in_plain_diffrax():
    """Damped oscillators, a slow and a fast one, at rest, with a force of size zero on both."""
    solver = rj.solvers.BDF()
    A = np.array([[0, 1, 0, 0], [-4, -0.4, 1, 0], [0, 0, 0, 1], [1, 0, -60, -0.8]], float)
    b = np.array([0.0, 1.0, 0.0, 1.0])

    def field(t, y, size):
        return jnp.asarray(A) @ jnp.sin(y) + size * jnp.cos(3 * t) * jnp.asarray(b)

    def end(y0, size, rtol):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(field), solver, 0.0, 6.0, None, y0, size, max_steps=4096,
            stepsize_controller=solver.controller(rtol, rtol, optx.rms_norm),
            adjoint=rj.AnyMode(backend="native"),
        )  # fmt: skip
        return solution.ys[-1]

    # exp of A with the states of cos and sin at 3 rad/s.
    whole = np.zeros((6, 6))
    whole[:4, :4], whole[:4, 4] = A, b
    whole[4, 5], whole[5, 4] = -3.0, 3.0
    flow = scipy.linalg.expm(6.0 * whole)
    for rtol in (1e-5, 1e-8):
        point = jnp.zeros(4), 0.0, rtol
        for jacobian in (jax.jacfwd, jax.jacrev):
            by_start, by_size = jax.jit(jacobian(end, (0, 1)))(*point)
            for found, right in ((by_start, flow[:4, :4]), (by_size, flow[:4, 4])):
                error = np.abs(found - right).max() / np.abs(right).max()
                assert error < ALLOWED * rtol
