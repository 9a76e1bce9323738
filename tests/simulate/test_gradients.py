"""Derivatives of whole runs against complex steps through SciPy, singular points included."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from formulations import cases
from simulate import reference

import rigidjax as rj
from rigidjax.rotations import euler_map

WEIGHT, T1 = 3.0, 0.7
# Orientation, moments, start rates.
POINTS = {
    "generic": ((0.5, 0.1, -0.7, 0.5), (3.0, 2.5, 2.0), (0.7, -1.1, 2.4)),
    "zero rotation, two equal moments": ((1.0, 0.0, 0.0, 0.0), (2.0, 2.0, 1.0), (0.4, 0.0, 2.0)),
    "half turn, three equal moments": ((0.0, 0.48, -0.6, 0.64), (2.0, 2.0, 2.0), (1.0, 2.0, -1.0)),
    # Not at an equilibrium, where the error estimate does not depend on the step.
    "half turn, at rest": ((0.0, 0.6, 0.0, 0.8), (3.0, 2.0, 2.0), (0.0, 0.0, 0.0)),
}
BATCH = tuple(jnp.array(part) for part in zip(*POINTS.values(), strict=True))


def end(theta, p):
    """Rotation matrix and angular velocity at the end; `theta`: moments and start rates."""
    body = rj.FixedPointBody(theta[:3], rj.AxialGravityPotential(WEIGHT), physical=False)
    state, tight = rj.State(orientation=p, angular_velocity=theta[3:]), dict(rtol=1e-12, atol=1e-12)
    states = rj.simulate(rj.NullSpace(body), state, T1, max_steps=256, **tight).states
    R = euler_map(states.orientation[0, 0])
    return jnp.concatenate([R.reshape(9), states.angular_velocity[0, 0]])


def test_forward_and_reverse_mode_against_differences():
    """Also with three equal moments, half a turn, and at rest."""
    weights = np.random.default_rng(19).normal(size=12)

    def derivatives(p, I, w):
        theta = jnp.concatenate([I, w])
        forward = jax.jacfwd(lambda theta: end(theta, p))(theta)
        return forward, jax.grad(lambda theta: jnp.asarray(weights) @ end(theta, p))(theta)

    forward, reverse = jax.jit(jax.vmap(derivatives))(*BATCH)
    for i, (p, I, w) in enumerate(POINTS.values()):
        exact = reference.heavy_top_derivatives(np.array(I), WEIGHT, np.array(p), np.array(w), T1)
        assert cases.error(forward[i], exact) < 1e-9
        assert cases.error(reverse[i], weights @ exact) < 1e-9


def test_derivative_of_the_time_of_an_event():
    """A quarter turn takes pi / (2 speed)."""
    model = rj.NullSpace(rj.FixedPointBody((2.0, 2.0, 1.0)))

    def first_component(t, y, args, **kwargs):
        return model.kinematics(t, y).rotations[0][0, 0]

    event = diffrax.Event(first_component, optx.Newton(1e-12, 1e-12))

    def quarter(speed):
        state = rj.State(angular_velocity=speed * jnp.array([0.0, 0.0, 1.0]))
        return rj.simulate(model, state, 10.0, event=event, rtol=1e-11, atol=1e-11).ts[0]

    time, slope = jax.jvp(jax.jit(quarter), (2.0,), (1.0,))
    assert abs(float(time) - np.pi / 4) < 1e-8
    assert abs(float(slope) + np.pi / 8) < 1e-7
