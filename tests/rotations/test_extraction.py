"""Quaternions from rotation matrices, and the Euler map."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from papers.quaternion_by_signs import quaternion_by_signs
from rotations import cases

from rigidjax.rotations import (
    Directors,
    Quaternion,
    euler_differential,
    euler_differential_inverse,
    euler_map,
    euler_map_directors,
    spurrier_klumpp,
)

# One rotation in each of the four branches, and those on the border between them: equal components.
BRANCHES = np.eye(4) + np.array([0.0, 0.1, -0.2, 0.15])
BORDERS = np.array([signs for signs in itertools.product((0.5, -0.5), repeat=4)])


def normalized(p):
    return p / np.linalg.norm(p, axis=-1, keepdims=True)


@pytest.mark.float32
def test_extraction_in_all_branches(rng):
    for branch in range(4):
        p = rng.normal(size=(50, 4)) * 0.3
        p[:, branch] = 1.0 + np.abs(p).max()
        p = normalized(p)
        signs = rng.choice([-1.0, 1.0], size=(50, 1))
        R = jax.vmap(euler_map)(jnp.asarray(signs * p))
        np.testing.assert_allclose(jax.vmap(spurrier_klumpp)(R), p, atol=4.0 * cases.eps())


def test_extraction_at_borders_between_branches():
    R = jax.vmap(euler_map)(jnp.asarray(BORDERS))
    p = jax.vmap(spurrier_klumpp)(R)
    np.testing.assert_allclose(jax.vmap(euler_map)(p), R, atol=1e-15)

    # Along the manifold all branches have the same derivative, that of the quaternion.
    def difference(p, R, omega):
        p_dot = Quaternion().rate(p, omega)
        _, R_dot = jax.jvp(euler_map, (p,), (p_dot,))
        return jax.jvp(spurrier_klumpp, (R,), (R_dot,))[1] - p_dot

    for omega in jnp.eye(3):
        differences = jax.vmap(difference, in_axes=(0, 0, None))(p, R, omega)
        np.testing.assert_allclose(differences, 0.0, atol=1e-15)


def test_angle_pi_and_derivatives():
    turns = normalized(np.array([[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 1, 2, 3.0]]))
    p = jnp.concatenate([jnp.array([[1.0, 0, 0, 0]]), turns, normalized(BRANCHES), BORDERS])
    R = jax.vmap(euler_map)(p)
    found = jax.vmap(spurrier_klumpp)(R)
    np.testing.assert_allclose(jnp.abs(jnp.sum(found * p, axis=1)), 1.0, rtol=1e-15)
    first = jax.jit(jax.vmap(jax.jacfwd(spurrier_klumpp)))(R)
    second = jax.jit(jax.vmap(jax.jacfwd(jax.jacrev(spurrier_klumpp))))(R)
    assert jnp.isfinite(first).all()
    assert jnp.isfinite(second).all()


def test_extraction_by_signs_is_not_optimal(rng):
    """Geradin-Rixen (202): right in general, to half of the digits near pi, without signs at pi."""
    p = np.abs(cases.quaternions(rng, 50)) * rng.choice([-1.0, 1.0], (50, 4))
    p *= np.sign(p[:, :1])
    extract = jax.jit(jax.vmap(quaternion_by_signs))
    R = jax.vmap(euler_map)(jnp.asarray(p))
    np.testing.assert_allclose(extract(R), p, atol=1e-10)
    near = normalized(np.array([[1e-6, 0.3, -0.5, 0.4], [1e-9, 0.3, 0.5, -0.4]]))
    R = jax.vmap(euler_map)(jnp.asarray(near))
    relative = np.abs(extract(R)[:, 0] / near[:, 0] - 1.0)
    assert relative[0] > 1e-7 and relative[1] > 0.1
    best = jax.vmap(spurrier_klumpp)(R)
    np.testing.assert_allclose(np.abs(best), np.abs(near), rtol=1e-6, atol=0)
    turn = jnp.diag(jnp.array([1.0, -1.0, -1.0]))
    assert np.all(np.asarray(quaternion_by_signs(turn)) == 0.0)
    one = jax.jacfwd(quaternion_by_signs)(jnp.eye(3))
    assert not np.all(np.isfinite(one))


def test_projection_of_drifted_matrices(rng):
    """Near SO(3) the projected directors are a rotation at a distance of that order."""
    rotation = Directors()
    p = cases.quaternions(rng, 100)
    d = jax.vmap(rotation.from_quaternion)(p)
    for drift in (1e-2, 1e-5, 1e-8):
        drifted = d + drift * rng.normal(size=d.shape)
        projected = jax.vmap(rotation.project)(drifted)
        constraint = jax.vmap(rotation.constraint)(projected)
        np.testing.assert_allclose(constraint, 0.0, atol=1e-15)
        np.testing.assert_allclose(jax.vmap(rotation.project)(projected), projected, atol=2e-15)
        assert jnp.linalg.norm(projected - drifted, axis=1).max() < 8.0 * drift
        # Determinant +1.
        R = jax.vmap(rotation.to_matrix)(projected)
        np.testing.assert_allclose(jnp.linalg.det(R), 1.0, rtol=1e-14)


def test_projected_rate_against_lang(rng):
    """Section 6 (V): by way of a quaternion velocity that is made tangential."""
    rotation = Directors()
    p = cases.quaternions(rng, 1)[0]
    d, v = rotation.from_quaternion(p), jnp.asarray(rng.normal(size=9))
    p_dot = euler_differential_inverse(p) @ v
    expected = euler_differential(p) @ (p_dot - (p @ p_dot) * p)
    np.testing.assert_allclose(rotation.project_rate(d, v), expected, atol=1e-14)
    G = rotation.constraint_jacobian(d)
    np.testing.assert_allclose(G @ expected, 0.0, atol=1e-14)
    # The nearest: what is taken away is orthogonal to the tangent space.
    np.testing.assert_allclose(rotation.null_space(d).T @ (v - expected), 0.0, atol=1e-14)


TENSOR = ((3.0, 0.2, 0.1), (0.2, 2.5, -0.1), (0.1, -0.1, 1.8))


@pytest.mark.parametrize("inertia", [(3.0, 2.0, 1.5), TENSOR, (1.0, 1.0, 0.0), (0.0,) * 3])
def test_rate_projected_in_the_mass_metric(inertia, rng):
    """The removed part does no work on a rotation; a body without inertia has the unit metric."""
    rotation, inertia = Directors(), jnp.asarray(inertia)
    d = rotation.from_quaternion(cases.quaternions(rng, 1)[0])
    v = jnp.asarray(rng.normal(size=9))
    found = rotation.project_rate(d, v, inertia)
    T, M = rotation.null_space(d), rotation.mass_matrix(d, inertia)
    np.testing.assert_allclose(rotation.constraint_jacobian(d) @ found, 0.0, atol=1e-14)
    # The unit matrix has a part of 1.5e-8 in the metric.
    np.testing.assert_allclose(T.T @ M @ (v - found), 0.0, atol=1e-6)
    plain = rotation.angular_velocity(d, rotation.project_rate(d, v))
    free = inertia == 0.0 if inertia.ndim == 1 else np.zeros(3, bool)
    omega = rotation.angular_velocity(d, found)
    np.testing.assert_allclose(omega[free], plain[free], atol=1e-6)
    assert np.max(np.abs(omega - plain)[~free], initial=1.0) > 0.01


def test_euler_map_identities(rng):
    """Lang (26) in matrix form, its homogeneity, and the stacked columns (47)."""
    p = jnp.asarray(rng.normal(size=4))
    v, n = np.asarray(p[1:]), float(p @ p)
    cross = np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])
    expected = (2.0 * p[0] ** 2 - n) * np.eye(3) + 2.0 * np.outer(v, v) + 2.0 * p[0] * cross
    np.testing.assert_allclose(euler_map(p), expected, rtol=1e-13)
    np.testing.assert_allclose(euler_map(-2.5 * p), 6.25 * expected, rtol=1e-13)
    np.testing.assert_array_equal(euler_map_directors(p), np.asarray(euler_map(p)).T.ravel())
    np.testing.assert_allclose(expected @ expected.T, n**2 * np.eye(3), atol=1e-12)


def test_differential_and_its_inverse(rng):
    """Lang (48), Lemma 5.1 (55) against the pseudo-inverse by SVD, and (56), off the sphere too."""
    p = jnp.asarray(rng.normal(size=(20, 4)))

    @jax.jit
    @jax.vmap
    def evaluate(p):
        D, inverse = euler_differential(p), euler_differential_inverse(p)
        gram = 4.0 * (2.0 * (p @ p) * jnp.eye(4) + jnp.outer(p, p))
        return {
            "(48)": cases.error(D, jax.jacfwd(euler_map_directors)(p)),
            "(55)": cases.error(inverse, jnp.linalg.pinv(D)),
            "(56)": cases.error(D.T @ D, gram),
            # Printed without the factor 2 that a map homogeneous of degree two must have.
            "(54)": cases.error(D @ p, 2.0 * euler_map_directors(p)),
            "(54), inverse": cases.error(inverse @ euler_map_directors(p), 0.5 * p),
        }

    for key, value in evaluate(p).items():
        assert value.max() < 1e-13, key


def test_tangent_vectors_correspond(rng):
    """Lang (53), body and space rates, and the pulled-back constraint (49) with its gradient."""
    quaternion, directors = Quaternion(), Directors()
    p = cases.quaternions(rng, 1)[0]
    D, inverse = euler_differential(p), euler_differential_inverse(p)
    d = euler_map_directors(p)
    for rates in ("body", "space"):
        Tp, Td = quaternion.null_space(p, rates), directors.null_space(d, rates)
        np.testing.assert_allclose(D @ Tp, Td, atol=1e-15)
        np.testing.assert_allclose(inverse @ Td, Tp, atol=1e-15)
    q = 1.3 * p
    pulled = directors.constraint(euler_map_directors(q))
    np.testing.assert_allclose(pulled, 0.5 * (1.3**4 - 1.0) * np.repeat([1, 0], 3), atol=1e-14)
    gradient = directors.constraint_jacobian(euler_map_directors(q)) @ euler_differential(q)
    expected = 2.0 * (q @ q) * np.outer(np.repeat([1, 0], 3), q)
    np.testing.assert_allclose(gradient, expected, atol=1e-13)
