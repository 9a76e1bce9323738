"""Derivatives through adaptive steps, against complex steps and each other."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
import pytest
from solvers import cases

import rigidjax as rj
from rigidjax.solvers import BDF, Odex, Radau5

# d y(1.5) / d mu of van der Pol's equation at mu = 5 from (2, 0), by a complex step through DOP853
# at rtol 3e-14; the second derivative of y_1 by differences of it.
FIRST = np.array([0.04279965559040926, 0.037958876604801635])
SECOND = -0.01753070438
SOLVERS = {"Radau5": Radau5(), "BDF": BDF(), "Odex": Odex()}


def end(solver, mu, max_steps=512):
    term = diffrax.ODETerm(cases.van_der_pol)
    return diffrax.diffeqsolve(
        term, solver, 0.0, 1.5, None, jnp.array([2.0, 0.0]), mu, max_steps=max_steps,
        stepsize_controller=solver.controller(1e-10, 1e-10, optx.rms_norm),
        adjoint=rj.AnyMode(),
    ).ys[-1]  # fmt: skip


@pytest.mark.parametrize("name", SOLVERS)
def test_derivatives_against_differences(name):
    """The tangent of the steps is that of the solution, and the gradient is its transpose."""

    def value(mu):
        return end(SOLVERS[name], mu)

    def derivatives(mu):
        tangent = jax.jvp(value, (mu,), (1.0,))[1]
        return tangent, jax.grad(lambda mu: value(mu)[0])(mu)

    tangent, gradient = jax.jit(derivatives)(jnp.array(5.0))
    assert np.max(np.abs(tangent / FIRST - 1.0)) < 1e-8
    # Round-off of a run of some hundred steps, relative to a small slope.
    assert abs(gradient / tangent[0] - 1.0) < 1e-11


def test_reverse_with_dense_output_and_times():
    """All that a run between given times depends on, forwards and backwards."""
    solver = Radau5()
    weights = jnp.linspace(0.5, 1.0, 10).reshape(5, 2)

    def value(mu, y0, t0, span, first, part):
        return jnp.sum(weights * diffrax.diffeqsolve(
            diffrax.ODETerm(cases.van_der_pol), solver, t0, t0 + span, first, y0, mu,
            max_steps=100, stepsize_controller=solver.controller(1e-5, 1e-5, optx.rms_norm),
            saveat=diffrax.SaveAt(ts=t0 + span * jnp.array([0.0, 0.3, 0.3, part]), t1=True),
            adjoint=rj.AnyMode(),
        ).ys)  # fmt: skip

    numbers = tuple(map(jnp.array, (5.0, [2.0, 0.1], 0.1, 1.2, 1e-3, 0.9)))
    every = range(len(numbers))
    reverse = jax.jit(jax.grad(value, every))(*numbers)
    forward = jax.jit(jax.jacfwd(value, every))(*numbers)
    for a, b in zip(reverse, forward, strict=True):
        # Derivatives of order one; those by the steps are small, of the order of the tolerance.
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_end_of_a_run_whose_last_step_is_rejected():
    """The steps that replace it move with the end."""
    field, solver = diffrax.ODETerm(cases.van_der_pol), Radau5()

    def value(t1):
        solution = diffrax.diffeqsolve(
            field, solver, 0.0, t1, None, jnp.array([2.0, 0.0]), 5.0, max_steps=200,
            stepsize_controller=solver.controller(1e-4, 1e-4, optx.rms_norm),
            adjoint=rj.AnyMode(),
        )  # fmt: skip
        return solution.ys[-1, 0]

    # These end times, of 120 from 3 to 9, end with a rejected step.
    ends = jnp.array([5.57142857, 8.64705882, 8.69747899, 8.74789916])
    reverse = jax.jit(jax.vmap(jax.grad(value)))(ends)
    forward = jax.jit(jax.vmap(jax.jacfwd(value)))(ends)
    np.testing.assert_allclose(reverse, forward, rtol=1e-11)


def test_second_derivative():
    """Forward over forward, of steps chosen once."""

    def slope(mu):
        return jax.jvp(lambda mu: end(Radau5(), mu)[0], (mu,), (1.0,))[1]

    mu = jnp.array(5.0)
    second = jax.jit(lambda mu: jax.jvp(slope, (mu,), (1.0,))[1])(mu)
    assert abs(second / SECOND - 1.0) < 1e-6


def test_second_derivative_of_reverse_mode():
    """Forward over reverse is forward over forward."""

    def value(mu):
        return diffrax.diffeqsolve(
            diffrax.ODETerm(cases.van_der_pol), diffrax.Heun(), 0.0, 1.5, 0.03,
            jnp.array([2.0, 0.0]), mu, max_steps=64, adjoint=rj.AnyMode(),
        ).ys[-1, 0]  # fmt: skip

    mu = jnp.array(5.0)
    mixed = jax.jit(jax.jacfwd(jax.grad(value)))(mu)
    forward = jax.jit(jax.jacfwd(jax.jacfwd(value)))(mu)
    assert abs(mixed / forward - 1.0) < 1e-10


def test_batch_of_gradients():
    """Trajectories of a batch have their own steps; finished ones do not affect others."""
    mus = jnp.array([0.5, 5.0, 60.0])
    gradient = jax.grad(lambda mu: end(BDF(), mu, max_steps=2048)[0])
    gradients = jax.jit(jax.vmap(gradient))(mus)
    assert abs(gradients[1] / FIRST[0] - 1.0) < 1e-8
    # A batch makes the steps of each segment again; one trajectory has them recorded.
    one = jax.jit(gradient)
    np.testing.assert_allclose(gradients, [one(mu) for mu in mus], rtol=1e-9)


def test_reverse_mode_through_changes_of_charts():
    def value(theta):
        body = rj.FixedPointBody(theta[:3], rj.AxialGravityPotential(theta[3]), physical=False)
        start = rj.State(orientation=[0.8, 0.6, 0.0, 0.0], angular_velocity=theta[4:])
        model = rj.NullSpace(body, rj.RodriguesParameters())
        states = rj.simulate(model, start, 0.5, rtol=1e-5, atol=1e-5, max_steps=64).states
        return states.angular_velocity[-1, 0] @ jnp.array([1.0, -2.0, 3.0])

    theta, along = jnp.array([50.0, 42.0, 10.0, 108.8, 0.1, 0.2, 5.0]), jnp.arange(1.0, 8.0)
    slope = jax.jit(lambda theta: jax.jvp(value, (theta,), (along,))[1])(theta)
    np.testing.assert_allclose(jax.jit(jax.grad(value))(theta) @ along, slope, rtol=1e-10)
