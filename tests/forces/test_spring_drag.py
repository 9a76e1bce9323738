"""Springs between points, and drag."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from forces.multibody import (
    BODIES,
    ENDS,
    OTHER,
    POINT,
    along,
    energy_error,
    first,
    kinematics,
    pose,
    power,
    states,
    virial,
    worst,
    wrench,
)
from formulations import cases

import rigidjax as rj
from rigidjax.rotations import euler_map

ARMS = [
    euler_map(body.orientation).T @ (jnp.asarray(point) - body.position)
    for body, point in zip(BODIES, (POINT, OTHER), strict=True)
]


def distance(x, R):
    """Between the points of the two bodies."""
    gap = x[0] + R[0] @ ARMS[0] - x[1] - R[1] @ ARMS[1]
    return jnp.sqrt(jnp.sum(gap * gap))


@pytest.mark.float32
@pytest.mark.parametrize("ends", ENDS, ids="-".join)
def test_power_is_the_loss_of_potential_energy(ends):
    forces = [rj.Spring(*ends, POINT, OTHER, 3.0, length=length) for length in (None, 0.0, 0.4)]
    errors = lambda state: [energy_error(force, state) for force in forces]  # noqa: E731
    assert worst(errors) < cases.round_off(50)


def test_spring_equals_its_potential():
    """Wrench and virial; the free length is the distance in the reference configuration."""
    free = np.linalg.norm(POINT - OTHER)
    potential = rj.Potential(lambda x, R: 0.5 * 3.0 * (distance(x, R) - free) ** 2)
    spring = rj.Spring("one", "two", POINT, OTHER, 3.0)

    def errors(state):
        pair = jnp.stack(wrench(spring, state)), jnp.stack(wrench(potential, state))
        return [cases.error(*pair), cases.error(virial(spring, state), virial(potential, state))]

    assert worst(errors) < 1e-13
    state = rj.System(BODIES).reference_state()
    assert cases.error(jnp.stack(wrench(spring, state)), jnp.zeros((2, 2, 3))) < 1e-15


def test_damping_loses_energy():
    """The power lost is c times the rate of the length squared."""
    damper = rj.Spring("one", "two", POINT, OTHER, 0.0, 0.7)

    def errors(state):
        _, rate = along(distance, state)
        return cases.error(power(damper, state), -0.7 * rate**2)

    assert worst(errors) < 1e-13


def test_coincident_points_have_finite_derivatives():
    """Without free length the spring is smooth there; with it, and the damper, finite."""
    body = rj.Body("one", 2.0, (0.5, 0.42, 0.3), velocity=(0.3, 0.2, 0.1))
    state = rj.System(body).reference_state()
    _, R = pose(state)

    def load(x, force):
        system = rj.System(body, forces=force)
        f = system.wrenches(0.0, kinematics(state, x[None], R))[0, :3]
        return f, system.potential_energy(0.0, kinematics(state, x[None], R))

    zero = jnp.zeros(3)
    for length in (None, 0.0):
        force = rj.Spring("ground", "one", zero, zero, 5.0, 0.4, length)
        f, V = load(zero, force)
        assert not np.any(f)
        assert V == 0
        for jacobian in (jax.jacfwd, jax.jacrev):
            slope, gradient = jax.jit(jacobian(load))(zero, force)
            assert cases.error(slope, -5.0 * np.eye(3)) < 1e-15
            assert not np.any(gradient)
        hessian = jax.jit(jax.hessian(lambda x, force: load(x, force)[1]))(zero, force)
        assert cases.error(hessian, 5.0 * np.eye(3)) < 1e-15
        parameters = jax.jit(jax.grad(lambda force: jnp.sum(load(zero, force)[0])))(force)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(parameters))
    f, V = load(zero, rj.Spring("ground", "one", zero, zero, 5.0, 0.4, 0.6))
    assert not np.any(f)
    assert abs(V - 0.5 * 5.0 * 0.36) < 1e-15


def test_derivatives_and_batches_of_springs():
    state = first(states())

    def value(parameters):
        k, c, length = parameters
        return jnp.stack(wrench(rj.Spring("one", "two", POINT, OTHER, k, c, length), state))

    at, direction, h = jnp.array([3.0, 0.7, 0.4]), jnp.array([0.5, -0.2, 0.3]), 1e-5
    _, slope = jax.jit(lambda at: jax.jvp(value, (at,), (direction,)))(at)
    # Quadratic in the parameters: round-off over h is left.
    difference = (value(at + h * direction) - value(at - h * direction)) / (2 * h)
    assert cases.error(slope, difference) < 1e-9
    batch = jax.jit(jax.vmap(value))(jnp.stack([at, 2 * at]))
    assert cases.error(batch[1], value(2 * at)) < 1e-14


ISOTROPIC = rj.Drag("two", 0.4, 0.3, 0.2, 0.1)
AXES = rj.Drag("two", (0.4, 0.1, 0.2), (0.3, 0.5, 0.1), (0.2, 0.3, 0.6), (0.1, 0.4, 0.2))


@pytest.mark.parametrize("force", [ISOTROPIC, AXES], ids=["isotropic", "axes"])
def test_drag_against_its_formula(force):
    def errors(state):
        R = pose(state)[1][1]
        v, omega = R.T @ state.velocity[1], state.angular_velocity[1]
        f = -force.linear * v - force.quadratic * jnp.linalg.norm(v) * v
        m = -force.angular_linear * omega
        m = m - force.angular_quadratic * jnp.linalg.norm(omega) * omega
        load, moment = wrench(force, state)
        return [
            cases.error(load, jnp.stack([jnp.zeros(3), R @ f])),
            cases.error(moment, jnp.stack([jnp.zeros(3), m])),
            jnp.maximum(power(force, state), 0.0),
        ]

    assert worst(errors) < 1e-14


def test_drag_at_rest_and_omitted_coefficients():
    body = BODIES[1]
    x, R = pose(rj.System(body).reference_state())

    def load(force, rate):
        motion = rj.forces.Kinematics(x, R, rate[None, :3], rate[None, 3:])
        return rj.System(body, forces=force).wrenches(0.0, motion)[0]

    for jacobian in (jax.jacfwd, jax.jacrev):
        slope = jax.jit(jacobian(lambda rate: load(AXES, rate)))(jnp.zeros(6))
        along_axes = -R[0] @ jnp.diag(AXES.linear) @ R[0].T
        assert cases.error(slope[:3, :3], along_axes) < 1e-15
        assert cases.error(slope[3:, 3:], -jnp.diag(AXES.angular_linear)) < 1e-15
    assert not np.any(load(rj.Drag("two", quadratic=1.0), jnp.ones(6))[3:])
    assert not np.any(load(rj.Drag("two", angular_linear=1.0), jnp.ones(6))[:3])
    assert not np.any(load(rj.Drag("two", angular_quadratic=(1.0, 2.0, 3.0)), jnp.ones(6))[:3])
    still = rj.forces.Kinematics(x, R, jnp.zeros((1, 3)), jnp.zeros((1, 3)))
    assert rj.System(body, forces=AXES).potential_energy(0.0, still) == 0
    assert not np.any(rj.System(body, forces=AXES).virials(0.0, still))
