"""Remainders of floating-point numbers."""

import jax
import numpy as np
import pytest

from rigidjax import native


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_remainders_are_exact(dtype):
    """Remainders agree with C's for divisions of all sizes, infinities and NaN."""
    rng, size = np.random.default_rng(0), 20_000
    most = 0.8 * np.log10(np.finfo(dtype).max)
    numbers = [
        (rng.standard_normal(size) * 10.0 ** rng.uniform(-most, most, size)).astype(dtype)
        for _ in range(2)
    ]
    near = [(rng.integers(1, n, size) * 0.1).astype(dtype) for n in (1_000, 40)]
    special = np.array([0.0, -0.0, 1.0, -1.0, 0.2, 0.6, np.inf, -np.inf, np.nan], dtype)
    edges = [x.ravel() for x in np.meshgrid(special, special)]
    for x, y in numbers, near, edges:
        found = np.asarray(jax.vmap(native.jit(jax.lax.rem))(x, y))
        with np.errstate(invalid="ignore"):
            expected = np.fmod(x, y)
        np.testing.assert_array_equal(found, expected)
        used = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found)[used], np.signbit(expected)[used])
