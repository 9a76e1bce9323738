"""Runs with closed forms, their derivatives with respect to forces, batches of forces."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from forces.cases import BODIES, GRAVITY, PUSH, SPRING, T, states, wrench
from formulations import cases

import rigidjax as rj

WEIGHT, PULL, SPIN = np.array([0.3, -0.2, -9.81]), np.array([1.5, -0.4, 2.0]), 0.6
POSITION, VELOCITY = np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.1, 4.0])
MASS, MOMENTS, T1 = 2.0, np.array([0.5, 0.42, 0.3]), 1.5
THETA = jnp.concatenate([WEIGHT, PULL, jnp.array([SPIN])])


def run(theta):
    """A free body under gravity, a force at its centre that grows with time, and a moment."""
    weight, pull, spin = theta[:3], theta[3:6], theta[6]
    forces = (
        rj.Gravity(weight),
        rj.PointForce("top", np.zeros(3), lambda t: t * pull),
        # About a principal axis; half of the moment as a couple of forces.
        rj.Torque("top", jnp.stack([0.0 * spin, 0.0 * spin, 0.5 * spin])),
        rj.PointForce("top", (0.5, 0.0, 0.0), jnp.array([0.0, 0.5, 0.0]) * spin, "body"),
        rj.PointForce("top", (-0.5, 0.0, 0.0), jnp.array([0.0, -0.5, 0.0]) * spin, "body"),
    )
    body = rj.Body("top", MASS, MOMENTS, POSITION, velocity=VELOCITY)
    system = rj.System(body, forces=forces)
    state = system.reference_state()
    solution = rj.simulate(rj.NullSpace(system), state, T1, dt=0.03, solver=diffrax.Dopri5())
    end = jax.tree.map(lambda x: x[-1, 0], solution.states)
    # The angle about the third axis, from its half.
    angle = 2.0 * jnp.arctan2(end.orientation[3], end.orientation[0])
    return jnp.concatenate([end.position, end.velocity, end.angular_velocity, angle[None]])


def closed_form(theta):
    weight, pull, spin = theta[:3], theta[3:6], theta[6] / MOMENTS[2]
    x = POSITION + T1 * VELOCITY + T1**2 / 2 * weight + T1**3 / (6 * MASS) * pull
    v = VELOCITY + T1 * weight + T1**2 / (2 * MASS) * pull
    turn = jnp.stack([0.0 * spin, 0.0 * spin, T1 * spin, T1**2 / 2 * spin])
    return jnp.concatenate([x, v, turn])


@pytest.fixture(scope="module")
def jacobian():
    """The end of the run, and its derivatives."""
    slope, value = jax.jit(jax.jacfwd(lambda theta: (run(theta),) * 2, has_aux=True))(THETA)
    return value, slope


def test_run_under_known_forces(jacobian):
    # Position and velocity are polynomials, which the method integrates without error; the
    # attitude has an error of order 5 in the step of 0.03.
    expected = closed_form(THETA)
    assert cases.error(jacobian[0][:9], expected[:9]) < 1e-13
    assert cases.error(jacobian[0], expected) < 1e-10


def test_derivatives_of_a_run_with_respect_to_forces(jacobian):
    expected = jax.jacfwd(closed_form)(THETA)
    assert cases.error(jacobian[1][:9], expected[:9]) < 1e-13
    assert cases.error(jacobian[1], expected) < 1e-9


class Law(eqx.Module):
    """A law with parameters, of time or of time, attitude and rate."""

    gain: jax.Array

    def __call__(self, t, R=None, omega=None):
        value = self.gain * jnp.sin(t)
        return value if omega is None else value - self.gain[0] ** 2 * omega + R[0]


class Well(eqx.Module):
    """A potential with parameters."""

    depth: jax.Array

    def __call__(self, x, R):
        return self.depth * jnp.sum((x[0] - x[1]) ** 2) ** 2 + self.depth**2 * R[0, 0, 1]


def all_forces(rng):
    gain = lambda: jnp.asarray(rng.normal(size=3))  # noqa: E731
    return (
        rj.Gravity(gain()),
        rj.PointForce("one", gain(), gain()),
        rj.PointForce("two", gain(), Law(gain()), "body"),
        rj.Torque("one", gain(), "space"),
        rj.Torque("two", Law(gain())),
        rj.Potential(Well(jnp.array(0.4))),
    )


def test_derivatives_with_respect_to_every_parameter():
    """Modules keep their parameters as leaves; forward, reverse and finite differences agree."""
    rng = np.random.default_rng(37)
    forces, direction = all_forces(rng), all_forces(rng)
    state = jax.tree.map(lambda x: x[0], states(1))
    value = lambda forces: jnp.stack(wrench(forces, state))  # noqa: E731
    assert len(jax.tree.leaves(forces)) == 8
    _, slope = jax.jvp(value, (forces,), (direction,))
    h = 1e-5
    moved = [jax.tree.map(lambda x, d, s=s: x + s * h * d, forces, direction) for s in (1, -1)]
    difference = (value(moved[0]) - value(moved[1])) / (2 * h)
    # Third derivatives are zero: products of two parameters. Round-off of 1e-16 * 10 / h remains.
    assert cases.error(slope, difference) < 1e-9
    weights = jnp.asarray(rng.normal(size=slope.shape))
    (gradient,) = jax.vjp(value, forces)[1](weights)
    pairs = zip(jax.tree.leaves(gradient), jax.tree.leaves(direction), strict=True)
    backward = sum(jnp.sum(g * d) for g, d in pairs)
    assert cases.error(backward, jnp.sum(weights * slope)) < 1e-13
    assert all(float(jnp.max(jnp.abs(g))) > 1e-3 for g in jax.tree.leaves(gradient))


def test_batches_of_forces():
    """`vmap` over the parameters of all forces and the state at once, compiled."""
    rng = np.random.default_rng(41)
    forces = [all_forces(rng) for _ in range(4)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *forces)
    batch = states(4)
    found = jax.jit(jax.vmap(wrench))(stacked, batch)
    for i in range(4):
        alone = wrench(forces[i], jax.tree.map(lambda x, i=i: x[i], batch))
        assert cases.error(jnp.stack(found)[:, i], jnp.stack(alone)) < 1e-14


def test_power_of_the_forces_is_the_change_of_the_energy():
    """Along the equations of motion of every formulation, for a system given as an argument."""
    forces = (GRAVITY, PUSH, SPRING, rj.Torque("one", (0.6, 1.1, -0.8)))
    system, state = rj.System(BODIES, forces=forces), jax.tree.map(lambda x: x[0], states(1))
    push, moment = wrench(PUSH, state), wrench(forces[3], state)
    expected = sum(
        jnp.sum(part[0] * state.velocity) + jnp.sum(part[1] * state.angular_velocity)
        for part in (push, moment)
    )

    @jax.jit
    def change(system, state):
        out = []
        for model in (rj.NullSpace(system), rj.Absolute(system, rj.Directors())):
            y = model.pack(state)
            field = model.vector_field(T, y)
            out.append(jax.jvp(model.energy, (T, y), (jnp.ones(()), field))[1])
        return jnp.stack(out)

    assert cases.error(change(system, state), jnp.full(2, expected)) < 1e-13
