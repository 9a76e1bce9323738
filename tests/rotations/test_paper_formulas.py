"""Formulas of Geradin and Rixen as printed, and which of them are misprints."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rotations import cases

from rigidjax.rotations import (
    ConformalRotationVector,
    EulerAngles,
    LinearParameters,
    Quaternion,
    RodriguesParameters,
    RotationVector,
    so3,
)

ONE = np.eye(3)


def tilde(v) -> np.ndarray:
    return np.asarray(so3.skew(jnp.asarray(v)))


@pytest.fixture
def axis_angle(rng):
    """A unit axis and an angle below pi/2, so that every parametrization covers it."""
    return cases.unit_vectors(rng, 1)[0], 1.2


def rotation_matrix(n, phi) -> np.ndarray:
    """(46)."""
    return np.cos(phi) * ONE + (1.0 - np.cos(phi)) * np.outer(n, n) + np.sin(phi) * tilde(n)


def jacobian(rotation, a) -> np.ndarray:
    """The tangent operator for body rates, by differentiation of the rotation matrix."""

    def column(v):
        R, R_dot = jax.jvp(rotation.to_matrix, (jnp.asarray(a),), (v,))
        return so3.unskew(R.T @ R_dot)

    return np.asarray(jax.vmap(column, out_axes=1)(jnp.eye(3)))


def test_scaling_of_the_parameters(axis_angle):
    """(164), (185), (194), (253), (267); the matrices (165), (183), (199), (256), (269)."""
    n, phi = axis_angle
    R = rotation_matrix(n, phi)
    c = 4.0 * n * np.tan(phi / 4.0)
    c0 = (16.0 - c @ c) / 8.0
    b, e, e0 = n * np.tan(phi / 2.0), n * np.sin(phi / 2.0), np.cos(phi / 2.0)
    s, s0 = n * np.sin(phi), np.cos(phi)
    printed = {
        RotationVector(): (n * phi, R),
        RodriguesParameters(): (b, ONE + 2.0 / (1.0 + b @ b) * (tilde(b) + tilde(b) @ tilde(b))),
        ConformalRotationVector(): (
            c,
            ((c0**2 + 8.0 * c0 - 16.0) * ONE + 2.0 * np.outer(c, c) + 2.0 * c0 * tilde(c))
            / (4.0 - c0) ** 2,
        ),
        LinearParameters(): (s, s0 * ONE + np.outer(s, s) / (1.0 + s0) + tilde(s)),
        Quaternion(): (
            np.append(e0, e),
            (2.0 * e0**2 - 1.0) * ONE + 2.0 * np.outer(e, e) + 2.0 * e0 * tilde(e),
        ),
    }
    for rotation, (a, formula) in printed.items():
        np.testing.assert_allclose(formula, R, atol=1e-15)
        np.testing.assert_allclose(rotation.to_matrix(jnp.asarray(a)), R, atol=1e-15)
        np.testing.assert_allclose(np.abs(rotation.from_matrix(jnp.asarray(R))), np.abs(a))
    np.testing.assert_allclose(np.append(c0, c), 4.0 * np.append(e0, e) / (1.0 + e0))


def test_tangent_operators(axis_angle):
    """(171), (192), (266) as printed; (273) with the sign of the skew part corrected."""
    n, phi = axis_angle
    psi, b, c, s = n * phi, n * np.tan(phi / 2), 4 * n * np.tan(phi / 4), n * np.sin(phi)
    c0, s0 = (16.0 - c @ c) / 8.0, np.cos(phi)
    W = tilde(psi)
    T171 = ONE + (np.cos(phi) - 1.0) / phi**2 * W + (1.0 - np.sin(phi) / phi) * W @ W / phi**2
    T192 = 2.0 / (1.0 + b @ b) * (ONE - tilde(b))
    T266 = 2.0 / (4.0 - c0) ** 2 * (c0 * ONE + 0.25 * np.outer(c, c) - tilde(c))
    T273 = ONE + (np.outer(s, s) / s0 - tilde(s)) / (1.0 + s0)
    T273_printed = ONE + (np.outer(s, s) / s0 + tilde(s)) / (1.0 + s0)
    for rotation, a, formula in (
        (RotationVector(), psi, T171),
        (RodriguesParameters(), b, T192),
        (ConformalRotationVector(), c, T266),
        (LinearParameters(), s, T273),
    ):
        np.testing.assert_allclose(formula, jacobian(rotation, a), atol=1e-14)
        np.testing.assert_allclose(rotation.tangent(jnp.asarray(a)), formula, atol=1e-14)
        space = rotation.tangent(jnp.asarray(a), "space")
        np.testing.assert_allclose(space, formula.T, atol=1e-14)
    wrong = np.abs(T273_printed - jacobian(LinearParameters(), s)).max()
    assert wrong > 0.1
    # The printed one is the operator of the space rates.
    np.testing.assert_allclose(
        T273_printed, LinearParameters().tangent(jnp.asarray(s), "space"), atol=1e-14
    )


def test_rate_of_the_axis(axis_angle, rng):
    """(169): two skew factors and a minus sign are missing."""
    n, phi = axis_angle
    psi, psi_dot = jnp.asarray(n * phi), jnp.asarray(rng.normal(size=3))
    _, n_dot = jax.jvp(lambda psi: psi / jnp.linalg.norm(psi), (psi,), (psi_dot,))
    W = tilde(psi)
    np.testing.assert_allclose(n_dot, -W @ W @ psi_dot / phi**3, atol=1e-14)
    assert np.abs(n_dot - W @ psi_dot / phi**3).max() > 0.1


def test_invariants_of_rodrigues(axis_angle):
    """(186) holds; (187) misses the factor 2, its inverse is right."""
    n, phi = axis_angle
    R, b = rotation_matrix(n, phi), n * np.tan(phi / 2.0)
    vect = np.asarray(so3.unskew(jnp.asarray(R)))
    np.testing.assert_allclose(np.trace(R), (3.0 - b @ b) / (1.0 + b @ b))
    np.testing.assert_allclose(vect, 2.0 * b / (1.0 + b @ b))
    np.testing.assert_allclose(b, 0.5 * (1.0 + b @ b) * vect)
    assert np.abs(vect - b / (1.0 + b @ b)).max() > 0.1


def test_half_rotations(axis_angle):
    """(259) and (275) as printed, (258) with a quarter of the last term; (329)."""
    n, phi = axis_angle
    R, F = rotation_matrix(n, phi), rotation_matrix(n, phi / 2.0)
    c, e, e0 = 4.0 * n * np.tan(phi / 4.0), n * np.sin(phi / 2.0), np.cos(phi / 2.0)
    c0, W = (16.0 - c @ c) / 8.0, tilde(c)
    factor = 8.0 / (16.0 + c @ c)
    np.testing.assert_allclose(ONE + factor * (W + W @ W / 4.0), F, atol=1e-15)
    assert np.abs(ONE + factor * (W + W @ W) - F).max() > 0.1
    np.testing.assert_allclose((c0 * ONE + 0.25 * np.outer(c, c) + W) / (4.0 - c0), F, atol=1e-15)
    np.testing.assert_allclose(e0 * ONE + np.outer(e, e) / (1.0 + e0) + tilde(e), F, atol=1e-15)
    np.testing.assert_allclose(2.0 * so3.unskew(jnp.asarray(F)), 2.0 * c / (4.0 - c0), atol=1e-15)
    for rotation in cases.FEW:
        a = rotation.from_matrix(jnp.asarray(R))
        np.testing.assert_allclose(rotation.half_rotation(a), F, atol=1e-15)


def test_euler_angles():
    """(278), (281), (283), and the inversion (279) with its last line corrected."""
    psi, theta, phi = 0.7, 1.1, -0.4
    sp, cp, st, ct = np.sin(psi), np.cos(psi), np.sin(theta), np.cos(theta)
    sf, cf = np.sin(phi), np.cos(phi)
    R = np.array(
        [
            [cf * cp - sf * ct * sp, -cp * sf - sp * ct * cf, sp * st],
            [sp * cf + cp * ct * sf, -sf * sp + cf * ct * cp, -cp * st],
            [st * sf, st * cf, ct],
        ]
    )
    rotation, a = EulerAngles("ZXZ"), jnp.array([psi, theta, phi])
    np.testing.assert_allclose(rotation.to_matrix(a), R, atol=1e-15)
    np.testing.assert_allclose(rotation.from_matrix(jnp.asarray(R)), a, atol=1e-15)
    space = [[0.0, cp, sp * st], [0.0, sp, -cp * st], [1.0, 0.0, ct]]
    body = [[sf * st, cf, 0.0], [cf * st, -sf, 0.0], [ct, 0.0, 1.0]]
    np.testing.assert_allclose(rotation.tangent(a, "space"), space, atol=1e-15)
    np.testing.assert_allclose(rotation.tangent(a), body, atol=1e-15)
    np.testing.assert_allclose(np.tan(phi), R[2, 0] / R[2, 1])
    np.testing.assert_allclose(R[0, 0] * cf - R[0, 1] * sf, cp)
    np.testing.assert_allclose(R[1, 0] * cf - R[1, 1] * sf, sp)
    assert abs(R[1, 0] * cf - R[1, 1] * sf - sf) > 0.1


def test_bryant_angles():
    """(286), (289), (291); singular at +-pi/2, where the text states +-pi."""
    theta, psi, phi = 0.7, 0.5, -0.4
    st, ct, sp, cp = np.sin(theta), np.cos(theta), np.sin(psi), np.cos(psi)
    sf, cf = np.sin(phi), np.cos(phi)
    R = np.array(
        [
            [ct * cp, -st * cf + ct * sp * sf, st * sf + ct * sp * cf],
            [st * cp, ct * cf + st * sp * sf, -ct * sf + st * sp * cf],
            [-sp, cp * sf, cp * cf],
        ]
    )
    rotation, a = EulerAngles("ZYX"), jnp.array([theta, psi, phi])
    np.testing.assert_allclose(rotation.to_matrix(a), R, atol=1e-15)
    np.testing.assert_allclose(rotation.from_matrix(jnp.asarray(R)), a, atol=1e-15)
    space = [[0.0, -st, cp * ct], [0.0, ct, cp * st], [1.0, 0.0, -sp]]
    body = [[-sp, 0.0, 1.0], [cp * sf, cf, 0.0], [cp * cf, -sf, 0.0]]
    np.testing.assert_allclose(rotation.tangent(a, "space"), space, atol=1e-15)
    np.testing.assert_allclose(rotation.tangent(a), body, atol=1e-15)
    determinant = [np.linalg.det(rotation.tangent(a.at[1].set(x))) for x in (np.pi, np.pi / 2)]
    np.testing.assert_allclose(np.abs(determinant), [1.0, 0.0], atol=1e-15)


@pytest.mark.parametrize("rotation", cases.FEW, ids=cases.name)
def test_rotation_is_the_quotient_of_the_tangent_operators(rotation, rng):
    """Geradin-Rixen (163): $R = P Q^{-1}$; the inverse on the rates is the null-space matrix."""
    a = cases.coordinates(rotation, rng, 1, principal=False)[0]
    P, Q = rotation.tangent(a, "space"), rotation.tangent(a, "body")
    R = rotation.to_matrix(a)
    np.testing.assert_allclose(P @ rotation.null_space(a, "body"), R, atol=1e-12)
    if rotation.num_constraints == 0:
        np.testing.assert_allclose(P @ jnp.linalg.inv(Q), R, atol=1e-12)
