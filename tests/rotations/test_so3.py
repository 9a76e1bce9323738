"""The algebra of SO(3)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from rotations import cases
from scipy.spatial.transform import Rotation

from rigidjax.rotations import euler_map, so3


def test_products(rng):
    u, v = rng.normal(size=(2, 3))
    np.testing.assert_allclose(so3.cross(u, v), np.cross(u, v), rtol=1e-14)
    np.testing.assert_allclose(so3.skew(u) @ v, np.cross(u, v), rtol=1e-14)
    np.testing.assert_array_equal(so3.unskew(so3.skew(jnp.asarray(u))), u)
    np.testing.assert_allclose(so3.dot(u, v), u @ v, rtol=1e-14)
    k, s, g = rng.normal(size=3)
    matrix = so3.axial_matrix(k, s, g, u)
    expected = k * np.eye(3) + s * np.asarray(so3.skew(u)) + g * np.outer(u, u)
    np.testing.assert_allclose(matrix, expected, rtol=1e-13)
    np.testing.assert_allclose(so3.axial_product(k, s, g, u, v), expected @ v, rtol=1e-13)


def test_quaternion_algebra(rng):
    p, q = jnp.asarray(rng.normal(size=(2, 4)))
    w = jnp.asarray(rng.normal(size=3))
    # Lang (30).
    Q = np.array(
        [
            [p[0], -p[1], -p[2], -p[3]],
            [p[1], p[0], -p[3], p[2]],
            [p[2], p[3], p[0], -p[1]],
            [p[3], -p[2], p[1], p[0]],
        ]
    )
    np.testing.assert_allclose(so3.multiply(p, q), Q @ q, rtol=1e-13)
    np.testing.assert_allclose(
        so3.multiply(p, so3.conjugate(p)), [p @ p, 0.0, 0.0, 0.0], atol=1e-15
    )
    np.testing.assert_allclose(
        euler_map(so3.multiply(p, q)), euler_map(p) @ euler_map(q), rtol=1e-12
    )
    # Lang (29), stretched.
    np.testing.assert_allclose(so3.rotate(p, w), euler_map(p) @ w, rtol=1e-13)
    sandwich = so3.multiply(so3.multiply(p, jnp.concatenate([jnp.zeros(1), w])), so3.conjugate(p))
    np.testing.assert_allclose(so3.rotate(p, w), sandwich[1:], rtol=1e-13)
    np.testing.assert_allclose(jnp.linalg.norm(so3.normalize(p)), 1.0, rtol=1e-15)
    assert so3.principal(-jnp.abs(p))[0] > 0


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-4, 0.3, 2.0, 3.0, np.pi - 1e-9])
def test_exponential_and_logarithm(rng, angle):
    psi = jnp.asarray(angle * cases.unit_vectors(rng, 20))
    R = jax.vmap(so3.exp)(psi)
    expected = np.stack([scipy.linalg.expm(np.asarray(so3.skew(v))) for v in psi])
    np.testing.assert_allclose(R, expected, atol=2e-14)
    p = jax.vmap(so3.exp_quaternion)(psi)
    np.testing.assert_allclose(jax.vmap(euler_map)(p), R, atol=2e-15)
    # The logarithm is as accurate as the rotation vector, relative to it.
    scale = max(angle, 1e-300)
    np.testing.assert_allclose(jax.vmap(so3.log_quaternion)(p) / scale, psi / scale, atol=2e-15)
    np.testing.assert_allclose(jax.vmap(so3.log_quaternion)(-3.0 * p), psi, atol=2e-15)
    if angle < 3.1:
        np.testing.assert_allclose(jax.vmap(so3.log)(R), psi, atol=1e-14)
    np.testing.assert_allclose(Rotation.from_rotvec(np.array(psi)).as_matrix(), R, atol=2e-15)


def test_logarithm_at_pi(rng):
    """The axis has either sign; values and two derivatives are finite and one-sided."""

    @jax.jit
    @jax.vmap
    def evaluate(R):
        psi = so3.log(R)
        axis = psi / jnp.pi
        _, inwards = jax.jvp(lambda t: so3.log(R @ so3.exp(-t * axis)), (0.0,), (1.0,))
        second = jax.jacfwd(jax.jacrev(so3.log))(R)
        return psi, inwards + axis, jnp.isfinite(jax.jacfwd(so3.log)(R)), jnp.isfinite(second)

    n = np.concatenate([np.eye(3), cases.unit_vectors(rng, 5)])
    R = 2.0 * n[:, :, None] * n[:, None, :] - np.eye(3)
    psi, difference, first, second = evaluate(jnp.asarray(R))
    np.testing.assert_allclose(jnp.linalg.norm(psi, axis=1), np.pi, rtol=1e-15)
    np.testing.assert_allclose(np.cross(psi, n), 0.0, atol=1e-14)
    # Inwards, the rotation vector follows the rotation.
    np.testing.assert_allclose(difference, 0.0, atol=1e-13)
    assert first.all()
    assert second.all()


def test_dexp_is_the_derivative_of_exp(rng):
    psi = jnp.asarray(rng.uniform(0.0, 6.2, size=(200, 1)) * cases.unit_vectors(rng, 200))
    v = jnp.asarray(rng.normal(size=(200, 3)))

    @jax.jit
    @jax.vmap
    def errors(psi, v):
        R, R_dot = jax.jvp(so3.exp, (psi,), (v,))
        body, space = so3.dexp(psi, v), so3.dexp(psi, v, "space")
        return jnp.stack(
            [
                cases.error(body, so3.unskew(R.T @ R_dot)),
                cases.error(space, so3.unskew(R_dot @ R.T)),
                cases.error(space, R @ body),
                cases.error(so3.dexp(-psi, v, "space"), body),
                cases.error(so3.dexp_inv(psi, body), v),
                cases.error(so3.dexp_inv(psi, space, "space"), v),
            ]
        )

    # The inverse amplifies round-off like 1 / (2 pi - angle), here up to 12.
    assert errors(psi, v).max() < 2e-13


def test_dexp_series(rng):
    """Terze (A.2) with the signs that hold, and the first terms of the inverse (B.1)."""
    w, v = jnp.asarray(1e-2 * rng.normal(size=(2, 3)))
    ad = so3.skew(w)
    body, term = jnp.zeros(3), v
    for j in range(8):
        body = body + term / np.prod(np.arange(1.0, j + 2.0))
        term = -ad @ term
    np.testing.assert_allclose(so3.dexp(w, v), body, rtol=1e-14)
    inverse = v + 0.5 * ad @ v + ad @ ad @ v / 12.0 - ad @ ad @ ad @ ad @ v / 720.0
    np.testing.assert_allclose(so3.dexp_inv(w, v), inverse, rtol=1e-13)
    # At minus the argument only the odd term changes its sign, unlike in dexp.
    np.testing.assert_allclose(so3.dexp_inv(w, v, "space"), inverse - ad @ v, rtol=1e-13)


@pytest.mark.parametrize("function", [so3.dexp, so3.dexp_inv])
def test_derivatives_at_zero(function, rng):
    """Second derivatives at zero equal central differences of the first."""
    v = jnp.asarray(rng.normal(size=3))
    jacobian = jax.jit(jax.jacfwd(function))
    second = jax.jit(jax.jacfwd(jax.jacfwd(function)))(jnp.zeros(3), v)
    h = 1e-4
    differences = [
        (jacobian(h * e, v) - jacobian(-h * e, v)) / (2.0 * h) for e in jnp.eye(3, dtype=v.dtype)
    ]
    np.testing.assert_allclose(second, jnp.stack(differences, axis=-1), atol=1e-8)
    np.testing.assert_allclose(
        jax.jit(jax.jacrev(function))(jnp.zeros(3), v), jacobian(jnp.zeros(3), v)
    )
