"""Identities that hold for every formulation and parametrization, at random states."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from formulations import cases

from rigidjax.formulations.charts import split_chart
from rigidjax.mechanics.dynamics.energies import kinetic_energy
from rigidjax.rotations import euler_map, so3

TOP, BODIES = cases.loaded_top(), cases.two_bodies()
ONE, TWO = BODIES.bodies
ARM_ONE, ARM_TWO = jnp.array([0.1, -0.4, 0.2]), jnp.array([0.3, 0.2, 0.1])
T = 0.7


def unknowns(model, state):
    """Unknowns in charts that suit the state, as `simulate` makes them."""
    return model.chart(state) if model.recharting else model.encode(state)


def newton_euler(system, t, x, R, v, omega):
    """Accelerations and power of the forces without a potential, from the forces of `cases`."""
    if system is TOP:
        first_moment, gravity = jnp.array([0.4, -0.3, 1.2]), jnp.array([0.5, -1.0, -9.0])
        extra = jnp.sin(t) * R[0, 2] - 0.3 * omega[0]
        moment = jnp.cross(first_moment, R[0].T @ gravity) + extra
        I = jnp.array(cases.TENSOR)
        spin = jnp.linalg.solve(I, moment - jnp.cross(omega[0], I @ omega[0]))
        return jnp.zeros((1, 3)), spin[None], omega[0] @ extra
    inertias = (jnp.diag(ONE.inertia), TWO.inertia)
    masses, gravity = (2.0, 3.0), jnp.array([0.3, -0.2, -9.81])
    # Forces without a potential: at each body a force in space axes, a moment in body axes.
    push, follower = jnp.array([1.0, 2.0, -0.5]), jnp.stack([t, 1.0 - t, t * t])
    forces = [push, R[1] @ follower]
    moments = [
        jnp.cross(ARM_ONE, R[0].T @ push) + R[0].T @ jnp.array([0.1, 0.2, 0.3]),
        jnp.cross(ARM_TWO, follower) - 0.2 * omega[1],
    ]
    power = sum(f @ u + m @ w for f, u, m, w in zip(forces, v, moments, omega, strict=True))
    # The potential: a spring between a point and a centre of mass, and R1 : R2.
    point = jnp.array([0.2, 0.1, -0.3])
    stretch = x[0] + R[0] @ point - x[1]
    # The derivative of R1 : R2 along R1 W1 and R2 W2 is tr((W2 - W1) R1^T R2).
    turn = 2.0 * so3.unskew(R[0].T @ R[1])
    forces = [forces[0] - 4.0 * stretch, forces[1] + 4.0 * stretch]
    moments = [
        moments[0] - jnp.cross(point, R[0].T @ (4.0 * stretch)) - turn,
        moments[1] + turn,
    ]
    linear = [f / m + gravity for f, m in zip(forces, masses, strict=True)]
    angular = [
        jnp.linalg.solve(I, m - jnp.cross(w, I @ w))
        for I, m, w in zip(inertias, moments, omega, strict=True)
    ]
    return jnp.stack(linear), jnp.stack(angular), power


def energies(system, x, R, v, omega):
    if system is TOP:
        kinetic = 0.5 * omega[0] @ jnp.array(cases.TENSOR) @ omega[0]
        arm = R[0] @ jnp.array([0.4, -0.3, 1.2])
        return kinetic, kinetic - jnp.array([0.5, -1.0, -9.0]) @ arm
    inertias = (jnp.diag(ONE.inertia), TWO.inertia)
    kinetic = sum(0.5 * w @ I @ w for I, w in zip(inertias, omega, strict=True))
    kinetic = kinetic + 0.5 * (2.0 * v[0] @ v[0] + 3.0 * v[1] @ v[1])
    stretch = x[0] + R[0] @ jnp.array([0.2, 0.1, -0.3]) - x[1]
    potential = -jnp.array([0.3, -0.2, -9.81]) @ (2.0 * x[0] + 3.0 * x[1])
    return kinetic, kinetic + potential + 2.0 * stretch @ stretch + jnp.sum(R[0] * R[1])


def momenta(system, x, R, v, omega):
    if system is TOP:
        return jnp.zeros(3), R[0] @ jnp.array(cases.TENSOR) @ omega[0]
    linear = 2.0 * v[0] + 3.0 * v[1]
    angular = 2.0 * jnp.cross(x[0], v[0]) + 3.0 * jnp.cross(x[1], v[1])
    angular = angular + R[0] @ jnp.diag(ONE.inertia) @ omega[0] + R[1] @ TWO.inertia @ omega[1]
    return linear, angular


def identities(model):
    """Both sides of every identity at one state."""
    system = model.system

    def evaluate(state):
        t = jnp.asarray(T)
        x, p, v, omega = state.position, state.orientation, state.velocity, state.angular_velocity
        R = jax.vmap(euler_map)(p)
        y = unknowns(model, state)
        f = model.vector_field(t, y)
        one = jnp.ones(())

        def decode_state(t, y):
            s = model.decode(t, y)
            return s.position, jax.vmap(euler_map)(s.orientation), s.velocity, s.angular_velocity

        values, rates = jax.jvp(decode_state, (t, y), (one, f))
        energy, slope = jax.jvp(model.energy, (t, y), (one, f))
        linear, angular, power = newton_euler(system, t, x, R, v, omega)
        kinetic, total = energies(system, x, R, v, omega)
        spin = jnp.stack([R[i] @ so3.skew(omega[i]) for i in range(len(omega))])
        fixed = system is TOP
        out = {
            "decode position": (values[0], 0.0 * x if fixed else x),
            "decode attitude": (values[1], R),
            "decode velocity": (values[2], 0.0 * v if fixed else v),
            "decode angular velocity": (values[3], omega),
            "rate of position": (rates[0], values[2]),
            "rate of attitude": (rates[1], spin),
            "acceleration": (rates[2], linear),
            "angular acceleration": (rates[3], angular),
            "kinetic energy": (
                kinetic_energy(model.prepared_system, model.kinematics(t, y)),
                kinetic,
            ),
            "energy": (energy, total),
            "power": (slope, power),
            "momentum": (
                jnp.stack(model.momentum(t, y)),
                jnp.stack(momenta(system, x, R, v, omega)),
            ),
            "drift": (jnp.stack(model.drift(t, y)), jnp.zeros(2)),
            "project": (split_chart(model.project(t, y))[0], split_chart(y)[0]),
        }
        layout, rotation = model.layout, model.rotation
        for i in range(layout.num_bodies):

            def constraint_rate(y, i=i):
                values, _ = split_chart(y)
                a = layout.poses(values)[1][i]
                rates, _ = split_chart(model.vector_field(t, y))
                return rotation.constraint_jacobian(a) @ layout.poses(rates)[1][i]

            level, slope = jax.jvp(constraint_rate, (y,), (f,))
            out[f"velocity constraint {i}"] = (level, jnp.zeros_like(level))
            out[f"acceleration constraint {i}"] = (slope, jnp.zeros_like(slope))
        return {key: cases.error(*sides) for key, sides in out.items()}

    return evaluate


def worst_errors(models, states) -> dict:
    errors = jax.jit(jax.vmap(lambda s: [identities(model)(s) for model in models]))(states)
    return {
        (cases.model_name(model), key): float(jnp.max(value))
        for model, group in zip(models, errors, strict=True)
        for key, value in group.items()
    }


def failures(errors, limit) -> dict:
    return {key: value for key, value in errors.items() if not value < limit}


@pytest.mark.exhaustive(but=("Directors",))
@pytest.mark.float32
@pytest.mark.parametrize(
    "rotation", (*cases.ROTATIONS[1:4], cases.MINIMAL[-1]), ids=cases.rotation_name
)
def test_identities_of_a_body_with_a_fixed_point(rotation):
    states = cases.random_states(np.random.default_rng(5), TOP, 64)
    errors = worst_errors(cases.models(TOP, [rotation]), states)
    assert failures(errors, cases.round_off(2000)) == {}
