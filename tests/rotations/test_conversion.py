"""Conversion, composition, increments, re-charting, and SciPy as an independent reference."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rotations import cases
from scipy.spatial.transform import Rotation

from rigidjax.rotations import (
    EulerAngles,
    LinearParameters,
    Quaternion,
    RodriguesParameters,
    compose,
    convert,
    euler_map,
    inverse,
    rechart,
    relative,
    so3,
    update,
)

some_rotations = pytest.mark.parametrize("rotation", cases.SOME, ids=cases.name)
few_rotations = pytest.mark.parametrize("rotation", cases.FEW, ids=cases.name)


@pytest.mark.float32
@pytest.mark.parametrize("rotation", [Quaternion(), LinearParameters()], ids=cases.name)
def test_round_trips_between_all_pairs(rotation, rng):
    """To every parametrization and back; in between the same rotation."""
    p = cases.quaternions(rng, 20, 0.5 * np.pi - 0.02)
    a = jax.vmap(rotation.from_quaternion)(p)
    R = jax.vmap(euler_map)(p)

    # Not compiled: 324 pairs are quicker op by op.
    for target in cases.ROTATIONS:
        b = jax.vmap(lambda a, t=target: convert(a, rotation, t))(a)
        back = jax.vmap(lambda b, t=target: convert(b, t, rotation))(b)
        # Near pi/2 the linear parameters lose digits: an error of 1 / 0.02 units of round-off.
        for other, c in ((target, b), (rotation, back)):
            found = jax.vmap(other.to_matrix)(c)
            np.testing.assert_allclose(
                found, R, atol=200.0 * cases.eps(), err_msg=cases.name(target)
            )


@some_rotations
def test_coordinates_return(rotation, rng):
    """The coordinates themselves, not only the rotation, in their principal range."""
    a = cases.coordinates(rotation, rng, 100)
    back = jax.jit(jax.vmap(lambda a: rotation.from_matrix(rotation.to_matrix(a))))(a)
    if isinstance(rotation, Quaternion):
        back = back * jnp.sign(jnp.sum(a * back, axis=1, keepdims=True))
    # 0.02 rad from a singularity digits are lost like 1 / 0.02 (Rodrigues: its square).
    np.testing.assert_allclose(back, a, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("rotation", cases.EULER, ids=cases.name)
def test_euler_angles_of_scipy(rotation, rng):
    a = np.array(cases.coordinates(rotation, rng, 50))
    expected = Rotation.from_euler(rotation.sequence, a)
    np.testing.assert_allclose(
        jax.vmap(rotation.to_matrix)(jnp.asarray(a)), expected.as_matrix(), atol=2e-15
    )
    np.testing.assert_allclose(expected.as_euler(rotation.sequence), a, atol=1e-12)
    unlimited = jnp.asarray(a + 2.0 * np.pi * rng.integers(-3, 4, size=a.shape))
    np.testing.assert_allclose(
        jax.vmap(lambda a: euler_map(rotation.to_quaternion(a)))(unlimited),
        expected.as_matrix(),
        atol=1e-14,
    )


@pytest.mark.parametrize("sequence", ["ZXZ", "ZYX", "XYZ"])
def test_euler_angles_at_their_singularity(sequence):
    """The rotation survives, the angle that is undefined is zero, derivatives are finite."""
    rotation, proper = EulerAngles(sequence), sequence in cases.PROPER
    for singular in (0.0, np.pi) if proper else (-0.5 * np.pi, 0.5 * np.pi):
        a = jnp.array([0.7, singular, -0.4])
        R = rotation.to_matrix(a)
        # Exactly singular: without the round-off of cos(pi/2).
        R = jnp.where(jnp.abs(R) < 1e-15, 0.0, R)
        found = rotation.from_matrix(R)
        np.testing.assert_allclose(rotation.to_matrix(found), R, atol=2e-8)
    # Singular without round-off: the identity, and turns by pi about the other axes.
    turns = jnp.eye(4)
    derivative = jax.jit(jax.vmap(jax.jacfwd(rotation.from_quaternion)))(turns)
    second = jax.jit(jax.vmap(jax.jacfwd(jax.jacfwd(rotation.from_quaternion))))(turns)
    assert jnp.isfinite(derivative).all()
    assert jnp.isfinite(second).all()
    found = jax.vmap(rotation.from_quaternion)(turns)
    np.testing.assert_allclose(
        jax.vmap(rotation.to_matrix)(found), jax.vmap(euler_map)(turns), atol=1e-15
    )
    if proper:
        np.testing.assert_array_equal(found[0], np.zeros(3))


@few_rotations
def test_composition_and_increments(rotation, rng):
    half = 0.25 * np.pi - 0.02 if isinstance(rotation, LinearParameters) else 0.5 * np.pi - 0.02
    p, q = cases.quaternions(rng, 10, half), cases.quaternions(rng, 10, half)
    a, b = jax.vmap(rotation.from_quaternion)(p), jax.vmap(rotation.from_quaternion)(q)
    theta = jnp.asarray(rng.uniform(0.0, half, size=(10, 1)) * cases.unit_vectors(rng, 10))

    @jax.jit
    @jax.vmap
    def evaluate(a, b, theta):
        A, B, increment = rotation.to_matrix(a), rotation.to_matrix(b), so3.exp(theta)
        found = [
            (compose(rotation, a, b), A @ B),
            (inverse(rotation, a), A.T),
            (relative(rotation, a, b), A.T @ B),
            (update(rotation, a, theta), A @ increment),
            (update(rotation, a, theta, "space"), increment @ A),
        ]
        return jnp.stack([cases.error(rotation.to_matrix(c), R) for c, R in found])

    assert evaluate(a, b, theta).max() < 1e-13
    with pytest.raises(ValueError, match="`rates` must be"):
        update(rotation, a[0], theta[0], "world")


@few_rotations
def test_infinitesimal_increments_are_angular_velocities(rotation, rng):
    """Geradin-Rixen 5.4: the derivative of an update is the rate, in body and in space form."""
    a = cases.coordinates(rotation, rng, 1)[0]
    if isinstance(rotation, Quaternion):
        a = rotation.project(a)
    omega = jnp.asarray(rng.normal(size=3))

    @jax.jit
    def both(a, omega):
        return [
            (jax.jvp(lambda t, r=r: update(rotation, a, t * omega, r), (0.0,), (1.0,))[1],
             rotation.rate(a, omega, r))
            for r in ("body", "space")
        ]  # fmt: skip

    for a_dot, rate in both(a, omega):
        np.testing.assert_allclose(a_dot, rate, rtol=1e-10)


def test_closed_forms_of_composition(rng):
    """Closed forms for Rodrigues parameters and quaternions agree with the general method."""
    a, b = jnp.asarray(0.5 * rng.normal(size=(2, 3)))
    expected = (a + b + jnp.cross(a, b)) / (1.0 - a @ b)
    np.testing.assert_allclose(compose(RodriguesParameters(), a, b), expected, rtol=1e-13)
    p, q = cases.quaternions(rng, 2)
    np.testing.assert_allclose(compose(Quaternion(), p, q), so3.multiply(p, q), rtol=1e-13)


@few_rotations
def test_recharting(rotation, rng):
    """The total rotation is preserved, and the coordinates are centred, for any length of Q."""
    Q = cases.quaternions(rng, 10)
    a = cases.coordinates(rotation, rng, 10)

    @jax.jit
    @jax.vmap
    def evaluate(Q, a):
        new, b = rechart(rotation, Q, a)
        before = euler_map(Q) @ rotation.to_matrix(a)
        return new, b, cases.error(euler_map(new) @ rotation.to_matrix(b), before)

    new, b, error = evaluate(1.0001 * Q, a)
    np.testing.assert_allclose(jnp.linalg.norm(new, axis=1), 1.0, rtol=1e-15)
    np.testing.assert_array_equal(b, jnp.broadcast_to(rotation.center(), b.shape))
    np.testing.assert_allclose(error, 1.0001**2 - 1.0, atol=1e-4)
    _, _, error = evaluate(Q, a)
    assert error.max() < 1e-13
