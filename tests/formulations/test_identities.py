"""Identities that hold for every formulation and parametrization, at random states."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from formulations import cases

import rigidjax as rj
from rigidjax.formulations.charts import split_chart
from rigidjax.mechanics.dynamics.energies import kinetic_energy
from rigidjax.rotations import euler_map, so3

TOP = cases.loaded_top()
T = 0.7


def unknowns(model, state):
    """Unknowns in charts that suit the state, as `simulate` makes them."""
    return model.chart(state) if model.recharting else model.encode(state)


def newton_euler(t, R, omega):
    """Angular acceleration, and power of the moment without a potential, from `cases`."""
    first_moment, gravity = jnp.array([0.4, -0.3, 1.2]), jnp.array([0.5, -1.0, -9.0])
    extra = jnp.sin(t) * R[0, 2] - 0.3 * omega[0]
    moment = jnp.cross(first_moment, R[0].T @ gravity) + extra
    I = jnp.array(cases.TENSOR)
    spin = jnp.linalg.solve(I, moment - jnp.cross(omega[0], I @ omega[0]))
    return spin[None], omega[0] @ extra


def energies(R, omega):
    kinetic = 0.5 * omega[0] @ jnp.array(cases.TENSOR) @ omega[0]
    arm = R[0] @ jnp.array([0.4, -0.3, 1.2])
    return kinetic, kinetic - jnp.array([0.5, -1.0, -9.0]) @ arm


def identities(model):
    """Both sides of every identity at one state."""

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
        angular, power = newton_euler(t, R, omega)
        kinetic, total = energies(R, omega)
        spin = jnp.stack([R[i] @ so3.skew(omega[i]) for i in range(len(omega))])
        out = {
            "decode position": (values[0], 0.0 * x),
            "decode attitude": (values[1], R),
            "decode velocity": (values[2], 0.0 * v),
            "decode angular velocity": (values[3], omega),
            "rate of position": (rates[0], values[2]),
            "rate of attitude": (rates[1], spin),
            "acceleration": (rates[2], 0.0 * v),
            "angular acceleration": (rates[3], angular),
            "kinetic energy": (
                kinetic_energy(model.prepared_system, model.kinematics(t, y)),
                kinetic,
            ),
            "energy": (energy, total),
            "power": (slope, power),
            "momentum": (
                jnp.stack(model.momentum(t, y)),
                jnp.stack([jnp.zeros(3), R[0] @ jnp.array(cases.TENSOR) @ omega[0]]),
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


@pytest.mark.float32
def test_identities_of_a_body_with_a_fixed_point():
    states = cases.random_states(np.random.default_rng(5), TOP, 64)
    errors = worst_errors(cases.models(TOP, [rj.Directors()]), states)
    assert {key: value for key, value in errors.items() if not value < cases.round_off(2000)} == {}
