"""The instantaneous screw of a twist, and the rate of its axis."""

import jax
import jax.numpy as jnp
import numpy as np
from papers.kinematics.instantaneous_screw import axis_rate, instantaneous_screw


def twist(rng):
    return tuple(jnp.asarray(v) for v in rng.normal(size=(3, 3)))


def test_velocity_field(rng):
    """(112)-(121): the points of the axis slide along it, and the field is that of the body."""
    x0, v0, omega = twist(rng)
    screw = instantaneous_screw(x0, v0, omega)
    for x in jnp.asarray(rng.normal(size=(5, 3))):
        expected = v0 + jnp.cross(omega, x - x0)
        np.testing.assert_allclose(screw.velocity(x), expected, rtol=1e-13, atol=1e-13)
        # Every point of the body gives the same screw.
        same = instantaneous_screw(x, expected, omega)
        np.testing.assert_allclose(same.point, screw.point, atol=1e-13)
        np.testing.assert_allclose(same.sliding, screw.sliding, rtol=1e-13)
        assert jnp.linalg.norm(expected) >= jnp.abs(screw.sliding)
    for along in (0.0, 2.0):
        point = screw.point + along * screw.axis
        np.testing.assert_allclose(screw.velocity(point), screw.sliding * screw.axis, atol=1e-14)
    assert abs(screw.point @ screw.axis) < 1e-14
    np.testing.assert_allclose(screw.angular_velocity, omega, rtol=1e-13)
    pitch = 2.0 * np.pi * (omega @ v0) / (omega @ omega)
    np.testing.assert_allclose(screw.pitch, pitch, rtol=1e-13)


def test_sign_error_of_the_paper(rng):
    """(119) holds, (118) has the transpose of the skew matrix in the velocity's term too many."""
    x0, v0, omega = twist(rng)
    square = omega @ omega
    point = instantaneous_screw(x0, v0, omega).point
    across = x0 - omega * (omega @ x0) / square
    np.testing.assert_allclose(point, jnp.cross(omega, v0) / square + across, rtol=1e-12)
    printed = -jnp.cross(omega, v0) / square + across
    assert jnp.abs(printed - point).max() > 0.1


def test_rate_of_the_screw(rng):
    """(138) against the derivative of the axis along a motion: orthogonal to it."""
    omega, omega_dot = jnp.asarray(rng.normal(size=(2, 3)))
    axis, rate = jax.jvp(lambda w: w / jnp.linalg.norm(w), (omega,), (omega_dot,))
    np.testing.assert_allclose(axis_rate(omega, omega_dot), rate, rtol=1e-12)
    assert abs(rate @ axis) < 1e-15
