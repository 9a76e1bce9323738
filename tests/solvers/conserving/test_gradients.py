"""Derivatives of the conserving schemes: forward, reverse, finite differences, second order."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from solvers.conserving import models

import rigidjax as rj
from rigidjax.solvers import EnergyMomentum, ModelTerm, MuntheKaas, Variational

X0 = jnp.array([6.0, 8.0, 3.0, 1.0, 2.0, 2.0])
TOP, UNEVEN = rj.bodies.AxialGravityPotential(3.0), models.Quartic(jnp.asarray(3.0))
FORMS = {
    "EnergyMomentum": (rj.NullSpace, rj.Quaternion(), EnergyMomentum()),
    "DIR.EM": (rj.Absolute, rj.Directors(), EnergyMomentum()),
    "Variational": (rj.NullSpace, rj.Quaternion(), Variational()),
}


def attitude(x, form="EnergyMomentum", count=20, dt=0.05, potential=TOP):
    """Rotation matrix, flattened, after some steps; `x`: inertia and angular velocity."""
    make, rotation, solver = FORMS[form]
    body = rj.FixedPointBody(x[:3], potential)
    model = make(body, rotation)
    state0 = rj.State(orientation=(0.8, 0.0, 0.6, 0.0), angular_velocity=x[3:])
    sol = rj.simulate(
        model, state0, count * dt, solver=solver, dt=dt, max_steps=count + 2, throw=False
    )
    return rj.Quaternion().to_matrix(sol.states.orientation[-1, 0]).ravel()


@pytest.mark.exhaustive
def test_gradient_over_a_thousand_steps():
    """Final attitude by inertia and initial state: forward = reverse = central differences."""
    function = jax.jit(lambda x: attitude(x, count=1000, dt=0.01, potential=UNEVEN))
    forward = jax.jit(jax.jacfwd(function))(X0)
    w = jnp.linspace(-1.0, 1.0, 9)
    reverse = jax.jit(jax.grad(lambda x: w @ function(x)))(X0)
    scale = np.max(np.abs(forward))
    assert np.max(np.abs(w @ forward - reverse)) < 1e-10 * scale
    # Differences of sixth order: their own error is some 1e-11, and 1e-10 of round-off.
    h = 5e-4

    def difference(v):
        parts = [(45, 1), (-9, 2), (1, 3)]
        total = sum(a * (function(X0 + k * h * v) - function(X0 - k * h * v)) for a, k in parts)
        return total / (60 * h)

    numeric = np.stack([difference(v) for v in np.eye(6)], axis=1)
    assert np.max(np.abs(numeric - forward)) < 1e-8 * scale


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", FORMS)
def test_modes_agree(form):

    def function(x):
        return attitude(x, form)

    forward = jax.jit(jax.jacfwd(function))(X0)
    w = jnp.linspace(-1.0, 1.0, 9)
    reverse = jax.jit(jax.grad(lambda x: w @ function(x)))(X0)
    assert np.max(np.abs(w @ forward - reverse)) < 1e-10 * np.max(np.abs(forward))
    assert np.all(np.isfinite(forward))
    assert np.max(np.abs(forward)) > 0.1


@pytest.mark.exhaustive
def test_hessian_is_symmetric():
    """Second derivatives against differences of first ones."""

    def loss(x):
        return jnp.sum(attitude(x, count=5)[:4] ** 2)

    hessian = jax.jit(jax.hessian(loss))(X0)
    gradient = jax.jit(jax.grad(loss))
    h = 1e-4
    numeric = np.stack([(gradient(X0 + h * v) - gradient(X0 - h * v)) / (2 * h) for v in np.eye(6)])
    assert np.max(np.abs(hessian - hessian.T)) < 1e-10
    assert np.max(np.abs(hessian - numeric)) < 1e-6


@pytest.mark.exhaustive
def test_at_rest_and_without_potential():
    """Derivatives at zero rotation are finite, and right where they are known."""
    body = rj.FixedPointBody((1.0, 2.0, 3.0))

    def end(omega):
        state0 = rj.State(angular_velocity=omega)
        sol = rj.simulate(rj.NullSpace(body), state0, 1.0, solver=EnergyMomentum(), dt=0.1)
        return sol.ys[-1, 1:4]

    # q = omega t / 2 to first order.
    for jacobian in (jax.jacfwd(end), jax.jacrev(end)):
        assert np.allclose(jacobian(jnp.zeros(3)), 0.5 * np.eye(3), atol=1e-14)


@pytest.mark.exhaustive
def test_batch_of_gradients():
    """A batch of 1,024 bodies: each trajectory as if it were alone."""
    rates = jnp.asarray(np.random.default_rng(1).normal(size=(1024, 3)) * 5.0)
    xs = jnp.concatenate([jnp.broadcast_to(X0[:3], (1024, 3)), rates], axis=1)
    batch = jax.jit(jax.vmap(attitude))(xs)
    alone = jax.jit(attitude)
    for k in (0, 511, 1023):
        assert np.max(np.abs(batch[k] - alone(xs[k]))) < 1e-12


def test_plain_diffrax():
    """`diffrax.diffeqsolve` makes the same steps; backwards it undoes them, by symmetry."""
    body, state0 = models.quartic_body()
    model = rj.NullSpace(body)
    y0 = model.encode(state0)

    def solve(y, t0, t1, dt):
        return diffrax.diffeqsolve(
            ModelTerm(model), EnergyMomentum(), t0, t1, dt, y, max_steps=100
        ).ys[-1]

    end = solve(y0, 0.0, 1.0, 0.05)
    ours = models.run(model, state0, 0.05, 20, EnergyMomentum(), 1)
    assert np.max(np.abs(end - ours.ys[-1])) < 1e-13
    assert np.max(np.abs(solve(end, 1.0, 0.0, -0.05) - y0)) < 1e-12


def test_counts_and_dense_output():
    """Newton iterations are counted; between steps the error is that of a cubic polynomial."""
    model = rj.NullSpace(models.FREE.system)
    sol = rj.simulate(
        model, models.FREE.state0, 0.5, solver=EnergyMomentum(), dt=0.01,
        saveat=diffrax.SaveAt(dense=True, t1=True),
    )  # fmt: skip
    assert 50 * 2 <= sol.stats["num_rhs"] <= 50 * 6
    fine = models.run(model, models.FREE.state0, 0.01, 50, EnergyMomentum())
    assert np.max(np.abs(sol.evaluate(0.3).orientation - fine.states.orientation[30])) < 1e-12
    between = sol.evaluate(0.305)
    assert abs(np.linalg.norm(between.orientation) - 1) < 1e-12
    mean = 0.5 * (fine.ys[30] + fine.ys[31])
    assert np.max(np.abs(between.orientation[0] - mean[:4])) < 5e-3
    # The value at the end of a step, with the rate of the motion by time.
    _, rate = jax.jvp(lambda t: sol.interpolation.evaluate(t), (0.3,), (1.0,))
    assert np.allclose(rate, model.vector_field(0.3, fine.ys[30]), rtol=1e-9, atol=1e-9)


@pytest.mark.exhaustive
@pytest.mark.exhaustive
def test_adaptive_steps_and_saved_times():
    """Lie-group steps that are rejected now and then, by inertia, start and final time."""

    def function(x, t1):
        model = rj.NullSpace(rj.FixedPointBody(x[:3], rj.bodies.AxialGravityPotential(30.0)))
        state0 = rj.State(orientation=(0.8, 0.0, 0.6, 0.0), angular_velocity=x[3:])
        sol = rj.simulate(
            model, state0, t1, ts=t1 * jnp.array([0.2, 0.21, 0.7, 1.0]),
            solver=MuntheKaas(diffrax.Bosh3()), rtol=1e-5, atol=1e-5, max_steps=256,
        )  # fmt: skip
        return jnp.sum(jnp.sin(jnp.arange(28.0)) * sol.ys.ravel()), sol.stats

    t1 = jnp.asarray(2.0)
    assert int(jax.jit(function)(X0, t1)[1]["num_rejected_steps"]) > 0
    found = [
        jax.jit(form(function, argnums=(0, 1), has_aux=True))(X0, t1)[0]
        for form in (jax.jacfwd, jax.grad)
    ]
    for forward, reverse in zip(*found, strict=True):
        assert float(jnp.max(jnp.abs(forward))) > 0.1
        np.testing.assert_allclose(reverse, forward, rtol=1e-10, atol=1e-10)
