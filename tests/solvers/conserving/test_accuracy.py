"""Errors against closed forms; equations of the papers against automatic differentiation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from solvers.conserving import models

import rigidjax as rj
from rigidjax.rotations.euler_map import euler_map
from rigidjax.rotations.so3 import multiply
from rigidjax.solvers import EnergyMomentum, Variational
from rigidjax.solvers.conserving import invariants

STEPS = (20, 40, 80, 160, 320, 640, 1280)


def attitude_errors(model, solver, counts):
    """Norm of R_ref R^T - 1 of the free body after 1 s."""
    true = models.matrices(models.FREE.reference([1.0]))[0]
    ends = [models.run(model, models.FREE.state0, 1 / n, n, solver, 1) for n in counts]
    return [np.linalg.norm(true @ models.matrices(end.states)[-1].T - np.eye(3)) for end in ends]


def slope(errors):
    """Mean order over the last halvings of the step."""
    return np.log2(errors[-3] / errors[-1]) / 2


def test_energy_momentum_against_figure_1():
    model = rj.NullSpace(models.FREE.system)
    errors = attitude_errors(model, EnergyMomentum(), STEPS)
    assert np.allclose(errors[:4], [2.545, 0.868, 0.2255, 0.0567], rtol=0.02)
    assert abs(slope(errors) - 2) < 0.1


@pytest.mark.parametrize("make", [rj.NullSpace, rj.Absolute])
def test_order_of_free_rotation_in_directors(make):
    model = make(models.FREE.system, rj.Directors())
    errors = attitude_errors(model, EnergyMomentum(), STEPS[-3:])
    assert abs(slope(errors) - 2) < 0.1


@pytest.mark.parametrize("scheme", models.SCHEMES)
def test_order_of_steady_precession(scheme):
    """Error of the centre of mass at 1 s, relative, against the closed form."""
    model = rj.NullSpace(models.STEADY.system)
    true = models.matrices(models.STEADY.reference([1.0]))[0, :, 2]
    errors = [
        np.linalg.norm(models.matrices(end.states)[-1, :, 2] - true)
        for end in (
            models.run(model, models.STEADY.state0, 1 / n, n, models.SCHEMES[scheme], 1)
            for n in (1000, 2000, 4000)
        )
    ]
    assert abs(slope(errors) - 2) < 0.1


def test_variational_fails_where_no_step_exists():
    """The paper: no convergence at 0.01 s, hence 0.007 s. There is no solution: h Omega_3 > 1."""
    model = rj.NullSpace(models.STEADY.system)
    failed = rj.simulate(
        model, models.STEADY.state0, 1.0, solver=Variational(), dt=0.01, throw=False
    )
    assert failed.result == rj.RESULTS.nonlinear_divergence
    assert failed.stats["num_steps"] == 1
    with pytest.raises(rj.SimulationError, match="diverge"):
        rj.simulate(model, models.STEADY.state0, 1.0, solver=Variational(), dt=0.01)
    rate = models.STEADY.state0.angular_velocity[0, 2]
    assert 0.007 * rate < 1.0 < 0.01 * rate
    done = models.run(model, models.STEADY.state0, 0.007, 140, Variational(), 1)
    assert done.result == rj.RESULTS.successful


def test_discrete_euler_lagrange_equations(rng):
    """(E1), differentiated automatically, vanishes across the sphere for three nodes of a run."""
    body, state0 = models.quartic_body()
    h = 0.05
    sol = models.run(rj.NullSpace(body), state0, h, 2, Variational())
    inertia = jnp.asarray(body.inertia)

    def lagrangian(q0, q1):
        # With the non-singular mass matrix, the radial inertia included.
        middle, rate = 0.5 * (q0 + q1), (q1 - q0) / h
        Q = jax.jacfwd(lambda x: multiply(middle, x))(jnp.zeros(4))
        J = jnp.diag(jnp.concatenate([0.5 * inertia.sum()[None], inertia]))
        return h * (2.0 * rate @ Q @ J @ Q.T @ rate - body.potential(euler_map(middle)))

    @jax.jit
    def evaluate(q):
        (p, after), (before, _) = (jax.grad(lagrangian, (0, 1))(q[i], q[i + 1]) for i in range(2))
        along = multiply(jnp.concatenate([q[1, :1], -q[1, 1:]]), after + before)
        return along, after, invariants.momentum_map(q[0], -p)

    along, after, spin = evaluate(sol.ys[:, :4])
    scale = np.linalg.norm(after)
    assert np.max(np.abs(along[1:])) < 1e-13 * scale
    # The discrete momentum at the start is that of the state, (35).
    assert np.allclose(spin, sol.angular_momentum[0], rtol=0, atol=1e-13 * scale)


def test_invariants_against_their_definitions(rng):
    """Momentum, invariants and energy of section 4 against the Lagrangian of (32)."""
    inertia = jnp.asarray([1.0, 1.6, 2.1])
    q = rng.normal(size=4)
    q, omega = jnp.asarray(q / np.linalg.norm(q)), jnp.asarray(rng.normal(size=3))
    rotation = rj.Quaternion(radial_inertia="half-trace")
    rate = rotation.rate(q, omega)
    p = rotation.mass_matrix(q, inertia) @ rate
    assert np.allclose(invariants.quaternion_momentum(inertia, q, omega), p, atol=1e-14)
    assert np.allclose(invariants.invariants(q, p), [0.0, *(2 * inertia * omega)], atol=1e-14)
    energy = invariants.kinetic_energy(inertia, q, p)
    assert abs(energy - 0.5 * jnp.sum(inertia * omega**2)) < 1e-14
    assert np.allclose(invariants.momentum_map(q, p), euler_map(q) @ (inertia * omega), atol=1e-14)
    assert abs(invariants.length_invariant(q) - 1) < 1e-15
    # Off the tangent space too: T(q, p) = p M^-1 p / 2.
    p = p + 0.3 * q
    M = rotation.mass_matrix(q, inertia)
    assert abs(invariants.kinetic_energy(inertia, q, p) - 0.5 * p @ jnp.linalg.solve(M, p)) < 1e-14
    d = rj.Directors().from_quaternion(q)
    d_dot = rj.Directors().rate(d, omega)
    assert abs(invariants.director_energy(inertia, d_dot) - energy) < 1e-14
    spin = invariants.director_momentum(inertia, d, d_dot)
    assert np.allclose(spin, euler_map(q) @ (inertia * omega), atol=1e-14)


def test_discrete_multiplier():
    """Remark 4.3 against the ninth unknown of the equations (51)."""
    from rigidjax.solvers.conserving.equations import find_root
    from rigidjax.solvers.conserving.saddle_point import SaddlePointStep

    body, state0 = models.quartic_body()
    q0, omega0 = state0.orientation[0], state0.angular_velocity[0]
    step = SaddlePointStep(body, jnp.array(0.0), jnp.array(0.1), q0, omega0)
    root = jax.jit(lambda step: find_root(step, step.guess(), 30))(step)
    assert root.okay

    def potential(q):
        return body.potential(euler_map(q))

    lam = invariants.discrete_multiplier(potential, q0, root.Z[:4])
    assert abs(root.Z[8] - lam) < 1e-11 * abs(lam)
    gain = potential(root.Z[:4]) - potential(q0)
    slope = invariants.discrete_gradient(potential, q0, root.Z[:4])
    assert abs(slope @ (root.Z[:4] - q0) - gain) < 1e-14
    assert np.all(np.isfinite(invariants.discrete_gradient(potential, q0, q0)))
