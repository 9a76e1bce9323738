"""Forces and moments against potentials, powers, and statics."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from forces.cases import (
    BODIES,
    FORCE,
    GRAVITY,
    MOMENT,
    POINT,
    PUSH,
    SPRING,
    T,
    force_energy,
    gravity_energy,
    kinematics,
    spring_energy,
    states,
    virial,
    worst,
    wrench,
)  # fmt: skip
from formulations import cases

import rigidjax as rj
from rigidjax.rotations import so3


def virtual(energy, x, R):
    """Energy as a function of small displacements (space) and rotations (body) of both bodies."""
    return lambda shift, turn: energy(x + shift, R + R @ jax.vmap(so3.skew)(turn))


@pytest.mark.float32
def test_wrench_is_the_negative_gradient_of_the_potential():
    forces = (GRAVITY, PUSH, SPRING)
    system = rj.System(BODIES, forces=forces)

    def energy(x, R):
        return gravity_energy(x, R) + force_energy(x, R) + spring_energy(x, R)

    def errors(state):
        bodies = kinematics(state)
        x, R = jnp.stack(bodies.positions), jnp.stack(bodies.rotations)
        v, omega = jnp.stack(bodies.velocities), jnp.stack(bodies.angular_velocities)
        zero = jnp.zeros((2, 3))
        slope, couple = jax.grad(virtual(energy, x, R), argnums=(0, 1))(zero, zero)
        turning = R @ jax.vmap(so3.skew)(omega)
        _, loss = jax.jvp(energy, (x, R), (v, turning))
        force, moment = wrench(forces, state)
        matrix = jax.grad(energy, argnums=1)(x, R)
        dyad = -jnp.swapaxes(R, 1, 2) @ matrix
        return {
            "force": cases.error(force, -slope),
            "moment": cases.error(moment, -couple),
            "power": cases.error(jnp.sum(force * v) + jnp.sum(moment * omega), -loss),
            # A point force is not known to have a potential.
            "energy": cases.error(
                system.potential_energy(T, bodies), gravity_energy(x, R) + spring_energy(x, R)
            ),
            "virial": cases.error(virial(forces, state), 0.5 * (dyad + jnp.swapaxes(dyad, 1, 2))),
        }

    # Sums of about ten products of order one to thirty.
    assert worst(jax.jit(jax.vmap(errors))(states())) < cases.round_off(30)


def test_power_of_nonconservative_forces():
    """A follower force does work on its material point, a moment on the rotation."""
    follower = rj.PointForce("one", POINT, FORCE, "body")
    moments = (rj.Torque("one", MOMENT), rj.Torque("two", MOMENT, "space"))

    def errors(state):
        bodies = kinematics(state)
        R, omega = bodies.rotations, bodies.angular_velocities
        x, v = bodies.positions[0], bodies.velocities[0]
        _, speed = jax.jvp(lambda x, R: x + R @ POINT, (x, R[0]), (v, R[0] @ so3.skew(omega[0])))

        def power(forces):
            force, moment = wrench(forces, state)
            pairs = zip((*force, *moment), (*bodies.velocities, *omega), strict=True)
            return sum(jnp.dot(load, rate) for load, rate in pairs)

        return [
            cases.error(power(follower), jnp.dot(R[0] @ FORCE, speed)),
            cases.error(power(moments[0]), jnp.dot(MOMENT, omega[0])),
            cases.error(power(moments[1]), jnp.dot(MOMENT, R[1] @ omega[1])),
        ]

    assert worst(jax.jit(jax.vmap(errors))(states())) < cases.round_off(30)


def test_components_in_space_and_in_the_body():
    """A vector in either frame is the same load, for functions of time and for constants."""

    def errors(state):
        R = kinematics(state).rotations[1]
        pairs = [
            (PUSH, rj.PointForce("two", POINT, R.T @ FORCE, "body")),
            (PUSH, rj.PointForce("two", POINT, lambda t: (t / T) * FORCE)),
            (PUSH, rj.PointForce("two", POINT, lambda t: (t / T) * (R.T @ FORCE), "body")),
            (rj.Torque("two", MOMENT), rj.Torque("two", R @ MOMENT, "space")),
            (rj.Torque("two", MOMENT), rj.Torque("two", lambda t, R, w: R @ MOMENT, "space")),
        ]
        return [
            cases.error(part(first, state), part(second, state))
            for first, second in pairs
            for part in (lambda *args: jnp.stack(wrench(*args)), virial)
        ]

    assert worst(jax.jit(jax.vmap(errors))(states())) < cases.round_off(10)


def test_zero_forces_are_not_evaluated():
    """Sums of moments of gravity, of forces of moments: there are no operations for them."""
    bodies = kinematics(jax.tree.map(lambda x: x[0], states(1)))

    def absent(*forces):
        groups = rj.NullSpace(rj.System(BODIES, forces=forces)).prepared_system.forces
        return [part is None for group in groups for part in group.loads(T, bodies)]

    assert absent() == []
    assert absent(GRAVITY) == [False, True]
    assert absent(PUSH) == [False, False]
    assert absent(rj.Torque("one", MOMENT)) == [True, False]


def test_law_receives_time_and_motion_of_its_body():
    seen = {}

    def moment(t, R, omega):
        seen["two"] = (t, R, omega)
        return t * R[0] + omega

    state = jax.tree.map(lambda x: x[0], states(1))
    bodies = kinematics(state)
    _, found = wrench(rj.Torque("two", moment), state)
    assert np.array_equal(found[1], T * bodies.rotations[1][0] + bodies.angular_velocities[1])
    assert np.array_equal(found[0], np.zeros(3))
    assert seen["two"][0] is T
