"""Derivatives through adaptive steps, against complex steps and each other."""

import _ivp as ivp
import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
import pytest
from solvers import cases

import rigidjax as rj
from rigidjax.solvers import BDF, Odex, Radau5, Seulex

# d y(1.5) / d mu of van der Pol's equation at mu = 5 from (2, 0), by a complex step through DOP853
# at rtol 3e-14; the second derivative of y_1 by differences of it.
FIRST = np.array([0.04279965559040926, 0.037958876604801635])
SECOND = -0.01753070438
SOLVERS = {"Radau5": Radau5(), "BDF": BDF(), "Odex": Odex(), "Seulex": Seulex()}


def end(solver, mu, tolerance=1e-10, adjoint=None, max_steps=512):
    term = diffrax.ODETerm(cases.van_der_pol)
    return diffrax.diffeqsolve(
        term, solver, 0.0, 1.5, None, jnp.array([2.0, 0.0]), mu, max_steps=max_steps,
        stepsize_controller=solver.controller(tolerance, tolerance, optx.rms_norm),
        adjoint=rj.AnyMode() if adjoint is None else adjoint,
    ).ys[-1]  # fmt: skip


@pytest.mark.parametrize("name", SOLVERS)
def test_tangent(name):
    """The tangent of the steps is that of the solution."""
    tangent = jax.jit(lambda mu: jax.jvp(lambda mu: end(SOLVERS[name], mu), (mu,), (1.0,))[1])
    assert np.max(np.abs(tangent(jnp.array(5.0)) / FIRST - 1.0)) < 1e-8


@pytest.mark.parametrize("name", ["Radau5", "BDF"])
def test_reverse(name):
    """The transpose of the tangent, for a one-step and a multistep method."""
    value = lambda mu: end(SOLVERS[name], mu)[0]  # noqa: E731
    gradient = jax.jit(jax.grad(value))(jnp.array(5.0))
    tangent = jax.jit(lambda mu: jax.jvp(value, (mu,), (1.0,))[1])(jnp.array(5.0))
    # Round-off of a run of some hundred steps, relative to a small slope.
    assert abs(gradient / tangent - 1.0) < 1e-11


def test_second_derivative():
    """Forward over forward, of steps chosen once."""
    slope = lambda mu: jax.jvp(lambda mu: end(Radau5(), mu)[0], (mu,), (1.0,))[1]  # noqa: E731
    second = jax.jit(lambda mu: jax.jvp(slope, (mu,), (1.0,))[1])(jnp.array(5.0))
    assert abs(second / SECOND - 1.0) < 1e-6


def test_batch_of_gradients():
    """Trajectories of a batch take steps of their own; those that are ready do not spoil others."""
    mus = jnp.array([0.5, 5.0, 60.0])
    gradients = jax.jit(jax.vmap(jax.grad(lambda mu: end(BDF(), mu)[0])))(mus)
    assert abs(gradients[1] / FIRST[0] - 1.0) < 1e-8
    assert np.all(np.isfinite(gradients))


def test_gradient_of_dae():
    """Derivative of a pendulum of index 3 by its start, against that of the angle's equation."""
    solver = Radau5()

    def tension(rate):
        y0 = jnp.stack([1.0, 0.0, 0.0, rate, 0.5 * rate**2])
        return diffrax.diffeqsolve(
            cases.pendulum(3), solver, 0.0, 0.6, 1e-3, y0, max_steps=1000,
            stepsize_controller=solver.controller(1e-11, 1e-11, optx.rms_norm),
            adjoint=rj.AnyMode(),
        ).ys[-1]  # fmt: skip

    def angle(rate):
        field = lambda t, y, args: jnp.stack([y[1], -ivp.GRAVITY * jnp.cos(y[0])])  # noqa: E731
        y = diffrax.diffeqsolve(
            diffrax.ODETerm(field), diffrax.Dopri8(), 0.0, 0.6, 1e-3, jnp.stack([0.0, rate]),
            max_steps=1000, stepsize_controller=diffrax.PIDController(rtol=1e-12, atol=1e-12),
            adjoint=rj.AnyMode(),
        ).ys[-1]  # fmt: skip
        a, w = y
        return jnp.stack([jnp.cos(a), jnp.sin(a), -jnp.sin(a) * w, jnp.cos(a) * w])

    rate = jnp.array(-0.7)
    got = jax.jit(lambda r: jax.jvp(tension, (r,), (1.0,))[1])(rate)
    expected = jax.jit(lambda r: jax.jvp(angle, (r,), (1.0,))[1])(rate)
    # Velocities of index 3 have errors by 1/h larger than positions.
    assert np.max(np.abs(got[:2] - expected[:2])) < 1e-8
    assert np.max(np.abs(got[2:4] - expected[2:])) < 1e-6
