"""The instantaneous screw of a twist, and its rate."""

import jax
import jax.numpy as jnp
import numpy as np
from papers.kinematics import axis_rate, instantaneous_screw, instantaneous_screw_rate


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
    np.testing.assert_allclose(screw.moment, np.cross(screw.point, screw.axis), atol=1e-14)
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


def test_pure_translation_and_rest():
    x0, v0, zero = jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 0.0, -2.0]), jnp.zeros(3)
    screw = instantaneous_screw(x0, v0, zero)
    np.testing.assert_array_equal(screw.axis, [0.0, 0.0, -1.0])
    np.testing.assert_array_equal(screw.point, [1.0, 2.0, 0.0])
    assert (screw.angular_speed, screw.sliding, screw.pitch) == (0.0, 2.0, np.inf)
    np.testing.assert_array_equal(screw.velocity(jnp.ones(3)), v0)
    rest = instantaneous_screw(x0, zero, zero)
    np.testing.assert_array_equal(rest.axis, zero)
    np.testing.assert_array_equal(rest.point, x0)
    np.testing.assert_array_equal(rest.velocity(jnp.ones(3)), zero)


def numbers(screw):
    return jnp.concatenate(
        [screw.axis, screw.point, screw.moment, screw.angular_speed[None], screw.sliding[None]]
    )


def test_derivatives_are_finite():
    x0 = jnp.array([1.0, 2.0, 3.0])
    v0 = jnp.stack([jnp.zeros(3), jnp.array([0.0, 1.0, 2.0]), jnp.zeros(3)])
    omega = jnp.stack([jnp.zeros(3), jnp.zeros(3), jnp.array([1.0, 0.0, 2.0])])

    def function(v0, omega):
        return numbers(instantaneous_screw(x0, v0, omega))

    first = jax.jit(jax.vmap(jax.jacrev(function, (0, 1))))(v0, omega)
    second = jax.jit(jax.vmap(jax.jacfwd(jax.jacfwd(function, (0, 1)), (0, 1))))(v0, omega)
    for derivative in jax.tree.leaves((first, second)):
        assert jnp.isfinite(derivative).all()
    pitch = jax.grad(lambda v: instantaneous_screw(x0, v, jnp.zeros(3)).pitch)(x0)
    assert jnp.isfinite(pitch).all()


def test_rate_of_the_screw(rng):
    """By differences along a motion, and the axis by (138): orthogonal to itself."""
    x0, v0, omega, a0, omega_dot = (jnp.asarray(v) for v in rng.normal(size=(5, 3)))

    def along(t):
        return numbers(
            instantaneous_screw(x0 + t * v0 + 0.5 * t**2 * a0, v0 + t * a0, omega + t * omega_dot)
        )

    rate = instantaneous_screw_rate(x0, v0, omega, a0, omega_dot)
    h = 1e-5
    differences = (along(h) - along(-h)) / (2.0 * h)
    found = [rate.axis, rate.point, rate.angular_speed[None], rate.sliding[None]]
    np.testing.assert_allclose(
        jnp.concatenate(found), jnp.concatenate([differences[:6], differences[9:]]), rtol=1e-6
    )
    axis = omega / jnp.linalg.norm(omega)
    np.testing.assert_allclose(axis_rate(omega, omega_dot), rate.axis, rtol=1e-12)
    printed = (omega_dot - axis * (axis @ omega_dot)) / jnp.linalg.norm(omega)
    np.testing.assert_allclose(rate.axis, printed, rtol=1e-12)
    assert abs(rate.axis @ axis) < 1e-15
    np.testing.assert_array_equal(axis_rate(jnp.zeros(3), omega_dot), np.zeros(3))
    assert jnp.isfinite(jax.jacfwd(axis_rate)(jnp.zeros(3), omega_dot)).all()
