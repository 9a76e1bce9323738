"""Axis and angle, moving frames, variations, points of a body."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from papers.kinematics import axis_angle, frames

from rigidjax.rotations import so3
from rigidjax.sensors.accelerometer import point_acceleration


def rotation(n, phi):
    return so3.exp(phi * n)


def body_rate(path, t=0.0):
    """Body angular velocity of a path of rotation matrices."""
    R, R_dot = jax.jvp(path, (t,), (1.0,))
    return so3.unskew(R.T @ R_dot)


def space_rate(path, t=0.0):
    R, R_dot = jax.jvp(path, (t,), (1.0,))
    return so3.unskew(R_dot @ R.T)


def derivative(function, t=0.0):
    return jax.jvp(function, (t,), (1.0,))[1]


RATES = {"body": body_rate, "space": space_rate}


@pytest.mark.parametrize("rates", RATES)
def test_axis_and_angle(rates, rng):
    """(104), (130) and their inverse (91) against derivatives of the rotation matrix."""
    w = jnp.asarray(rng.normal(size=(3, 3)))

    def axis(t):
        v = w[0] + t * w[1] + 0.5 * t**2 * w[2]
        return v / jnp.linalg.norm(v)

    def angle(t):
        return 0.9 + 0.7 * t - 0.4 * t**2

    def path(t):
        return rotation(axis(t), angle(t))

    n, n_dot, n_ddot = axis(0.0), derivative(axis), derivative(lambda t: derivative(axis, t))
    phi, phi_dot, phi_ddot = jnp.array(0.9), jnp.array(0.7), jnp.array(-0.8)
    omega = axis_angle.angular_velocity(n, phi, n_dot, phi_dot, rates)
    np.testing.assert_allclose(omega, RATES[rates](path), rtol=1e-12)
    found = axis_angle.angular_acceleration(n, phi, n_dot, phi_dot, n_ddot, phi_ddot, rates)
    np.testing.assert_allclose(found, derivative(lambda t: RATES[rates](path, t)), rtol=1e-11)
    back, back_phi = axis_angle.axis_angle_rates(n, phi, omega, rates)
    np.testing.assert_allclose(back, n_dot, atol=1e-14)
    np.testing.assert_allclose(back_phi, phi_dot, rtol=1e-13)


def test_moving_frames(rng):
    """(158) against the composed rotation (155)."""
    a, b, c, d = jnp.asarray(rng.normal(size=(4, 3)))

    def reference(t):
        return so3.exp(a + t * b)

    def relative(t):
        return so3.exp(c + t * d + 0.3 * t**2 * a)

    rate = body_rate(lambda t: reference(t) @ relative(t))
    found = frames.absolute_angular_velocity(
        relative(0.0), body_rate(reference), body_rate(relative)
    )
    np.testing.assert_allclose(found, rate, rtol=1e-12)


@pytest.mark.parametrize("rates", RATES)
def test_variation_of_the_angular_velocity(rates, rng):
    """(150): time derivative and variation do not commute."""
    a, b, c, d = jnp.asarray(rng.normal(size=(4, 3)))

    def path(t, s):
        return so3.exp(a + t * b + s * c + t * s * d)

    def omega(s):
        return RATES[rates](lambda t: path(t, s))

    def theta(t):
        return RATES[rates](lambda s: path(t, s))

    found = frames.angular_velocity_variation(omega(0.0), theta(0.0), derivative(theta), rates)
    np.testing.assert_allclose(found, derivative(omega), rtol=1e-11)

    # (153): by the rate of the infinitesimal rotation in the other components.
    def other(t):
        return RATES["space" if rates == "body" else "body"](lambda s: path(t, s))

    R = path(0.0, 0.0)
    crossed = frames.crossed_velocity_variation(R, derivative(other), rates)
    np.testing.assert_allclose(crossed, derivative(omega), rtol=1e-11)

    # (154).
    def omega_dot(s):
        return derivative(lambda t: RATES[rates](lambda t: path(t, s), t))

    found = frames.angular_acceleration_variation(
        omega(0.0),
        omega_dot(0.0),
        theta(0.0),
        derivative(theta),
        derivative(lambda t: derivative(theta, t)),
        rates,
    )
    np.testing.assert_allclose(found, derivative(omega_dot), rtol=1e-10)


def test_variation_of_a_composed_rotation(rng):
    """(156), (157)."""
    a, b, c, d = jnp.asarray(rng.normal(size=(4, 3)))

    def reference(s):
        return so3.exp(a + s * b)

    def relative(s):
        return so3.exp(c + s * d)

    def variation(path):
        R, dR = jax.jvp(path, (0.0,), (1.0,))
        return R.T @ dR

    total = variation(lambda s: reference(s) @ relative(s))
    theta_0, theta_rel = so3.unskew(variation(reference)), so3.unskew(variation(relative))
    R = relative(0.0)
    matrices = R.T @ variation(reference) @ R + variation(relative)
    np.testing.assert_allclose(matrices, total, atol=1e-14)
    found = frames.absolute_variation(R, theta_0, theta_rel)
    np.testing.assert_allclose(found, so3.unskew(total), atol=1e-14)


def test_points_of_a_body(rng):
    """(109), (122) against derivatives of x0 + R X."""
    a, b, c, X = jnp.asarray(rng.normal(size=(4, 3)))

    def path(t):
        return so3.exp(a + t * b + t**2 * c)

    def origin(t):
        return c + t * a + t**2 * b

    def point(t):
        return origin(t) + path(t) @ X

    omega, arm = space_rate(path), path(0.0) @ X
    omega_dot = derivative(lambda t: space_rate(path, t))
    velocity = frames.point_velocity(a, omega, arm)
    np.testing.assert_allclose(velocity, derivative(point), rtol=1e-12)
    acceleration = point_acceleration(2.0 * b, omega, omega_dot, arm)
    expected = derivative(lambda t: derivative(point, t))
    np.testing.assert_allclose(acceleration, expected, rtol=1e-11)
