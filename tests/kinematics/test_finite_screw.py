"""The screw of a finite displacement, both ways."""

import jax.numpy as jnp
import numpy as np
import pytest
from papers.kinematics.displacement import FiniteScrew, finite_screw

from rigidjax.rotations import so3


@pytest.mark.parametrize("angle", [1e-7, 1e-3, 0.5, 2.0, 3.0, np.pi - 1e-8, np.pi])
def test_chasles_theorem(angle, rng):
    """A given screw gives a displacement, from which the screw is found again."""
    n = rng.normal(size=3)
    n = jnp.asarray(n / np.linalg.norm(n))
    pose = jnp.asarray(rng.normal(size=3))
    pose = pose - (pose @ n) * n
    screw = FiniteScrew(n, jnp.asarray(angle), jnp.asarray(0.7), pose)
    R, u0 = screw.matrix(), screw.displacement(jnp.zeros(3))
    found = finite_screw(u0, R)
    sign = np.sign(found.axis @ n) if angle > 3.1 else 1.0
    # The pose is the quotient of a displacement by the angle.
    np.testing.assert_allclose(found.axis, sign * n, atol=2e-15 / min(angle, 1.0))
    np.testing.assert_allclose(found.angle, angle, atol=1e-14)
    np.testing.assert_allclose(found.translation, sign * 0.7, atol=1e-14 / min(angle, 1.0))
    np.testing.assert_allclose(found.pose, pose, atol=1e-14 / min(angle, 1.0) ** 2)
    np.testing.assert_allclose(found.pitch, sign * 2.0 * np.pi * 0.7 / angle, rtol=1e-6)
    X = jnp.asarray(rng.normal(size=3))
    np.testing.assert_allclose(found.displacement(X), u0 + R @ X - X, atol=1e-14 / min(angle, 1.0))
    # (66), (68): closest to the origin; its points only slide.
    assert abs(found.pose @ found.axis) < 1e-13 / min(angle, 1.0) ** 2
    np.testing.assert_allclose(screw.displacement(pose + 2.0 * n), 0.7 * n, atol=1e-15)


def test_formulas_of_the_paper(rng):
    """(63), (69) as printed."""
    R = np.array(so3.exp(jnp.asarray(rng.normal(size=3))))
    u0 = rng.normal(size=3)
    found = finite_screw(jnp.asarray(u0), jnp.asarray(R))
    phi = np.arccos(0.5 * (np.trace(R) - 1.0))
    np.testing.assert_allclose(found.angle, phi, rtol=1e-13)
    np.testing.assert_allclose(found.translation, found.axis @ u0, rtol=1e-13)
    pose = -(R - np.eye(3)).T @ u0 / (2.0 * (1.0 - np.cos(phi)))
    np.testing.assert_allclose(found.pose, pose, rtol=1e-11)
