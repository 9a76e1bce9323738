"""Comparison of systems."""

import jax
import numpy as np


def assert_same_system(first, second):
    """Compare all names and the topology, and all arrays to round-off; quaternions up to sign."""
    assert jax.tree.structure(first) == jax.tree.structure(second)
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        sign = np.sign(np.sum(a * b)) if a.shape == (4,) else 1.0
        size = max(1.0, np.abs(a).max(initial=0.0))
        np.testing.assert_allclose(b, sign * a, rtol=1e-13, atol=1e-15 * size)


def assert_same_numbers(first, second):
    """Compare mass properties of all bodies, and damping and armature of all joints."""
    for a, b in zip(first.bodies, second.bodies, strict=True):
        for field in ("mass", "position", "inertia"):
            old, new = np.asarray(getattr(a, field)), np.asarray(getattr(b, field))
            np.testing.assert_allclose(old, new, rtol=0, atol=1e-13 * np.abs(old).max())
    for a, b in zip(first.joints, second.joints, strict=True):
        for old, new in ((a.dampings, b.dampings), (a.armatures, b.armatures)):
            assert (old is None) == (new is None)
            if old is not None:
                np.testing.assert_allclose(old, new, rtol=1e-14)
