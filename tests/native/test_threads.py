"""Batches on several threads have equal results for any distribution of the work."""

import concurrent.futures

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rigidjax import native


def turns(x):
    """A loop with a different number of iterations per batch element."""
    return jax.lax.while_loop(lambda x: x < 100.0, lambda x: 1.01 * x + jnp.sin(x) ** 2, x)


def straight(x):
    return jnp.sin(x) * jnp.exp(-x) + jnp.arctan(x)


@pytest.mark.parametrize("function", [turns, straight])
@pytest.mark.parametrize("count", [1, 33, 20_001])
def test_every_batch_element_is_computed_once(function, count, monkeypatch):
    """Results equal those of a single thread bit for bit."""
    x = jnp.linspace(0.1, 90.0, count)
    found = []
    for threads in ("1", "0", "3"):
        monkeypatch.setenv("RIGIDJAX_KERNEL_THREADS", threads)
        # A new function, since kernels are cached.
        kernel = native.jit(lambda x: function(x))
        found.append(np.asarray(jax.jit(jax.vmap(kernel))(x)))
    np.testing.assert_allclose(found[0], jax.vmap(function)(x), rtol=1e-13)
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


def test_concurrent_calls():
    """More callers than cores, and two kernels in one jitted function, do not deadlock."""
    x = jnp.linspace(0.1, 90.0, 2_000)
    first, second = native.jit(turns), native.jit(straight)
    program = jax.jit(lambda x: (jax.vmap(first)(x), jax.vmap(second)(x)))
    expected = program(x)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: jax.block_until_ready(program(x)), range(64)):
            assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


def test_invalid_number_of_threads_raises(monkeypatch):
    monkeypatch.setenv("RIGIDJAX_KERNEL_THREADS", "many")
    with pytest.raises(ValueError, match="must be a number of threads"):
        jax.jit(jax.vmap(native.jit(lambda x: x + 1.0)))(jnp.arange(3.0))
