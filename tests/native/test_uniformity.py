"""Kernels with mostly uniform values, against batches of XLA."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fuzz import generate, jaxprs

from rigidjax.native.runtime import kernel


def last_kernel():
    """Return the kernel that was compiled last."""
    return list(kernel._kernels.values())[-1]


@pytest.mark.parametrize("seed", [0, 2])
def test_random_jaxprs(seed):
    """Kernels with a uniform argument and a uniform result."""
    case = generate.random_case(3_000 + seed)[0]._replace(mode="")
    if not case.batch:
        case = generate.random_case(4_000 + seed)[0]._replace(mode="")
    outcome = jaxprs.check(case, seed, ("mixed",))
    assert outcome.failure is None, outcome.failure
    assert last_kernel().signature.num_uniform == 1


def test_branches_without_results():
    """JAX leaves such a branch without results; its condition differs from lane to lane."""

    def function(flag, x):
        def step(carry, row):
            jax.lax.cond(flag > 1, lambda v: v, lambda v: (jnp.sin(v), v)[1], x)
            return carry + row, carry

        return jax.lax.scan(step, x, jnp.stack([x, 2 * x]))

    x = np.linspace(0.0, 1.0, 5)
    program = jaxprs.in_form("mixed", function, "", (True, True))
    total, before = jax.jit(program)(np.arange(5), x)
    np.testing.assert_allclose(total, 4 * x)
    np.testing.assert_allclose(before, np.stack([x, 2 * x], axis=1))


def test_uniform_results_beside_differing_arguments():
    """Unused scanned rows differ between lanes, and must not be written to memory of a scalar."""
    rows, start = np.arange(8 * 12 * 9.0).reshape(8, 12, 3, 3), np.arange(4.0)

    def function(rows, start):
        return (jax.lax.scan(lambda carry, row: (carry, carry), start, rows)[1],)

    kernel_of = jaxprs.in_form("mixed", function, "", (True, False))
    (found,) = jax.jit(kernel_of)(rows, start)
    assert last_kernel().signature.num_uniform == 1
    np.testing.assert_array_equal(found, np.broadcast_to(start, (8, 12, 4)))


@pytest.mark.parametrize("k", [1, -2, 17])
def test_complex_values_written_at_a_uniform_index(k):
    def function(k, z):
        return z.at[k, -1:].set(1 + 2j), z.at[k, 1:].add(z[0, :1], mode="drop")

    args = jnp.array(k), jnp.arange(60.0).reshape(5, 4, 3) * (1 + 2j)
    kernel, expected = (
        jax.jit(jaxprs.in_form(form, function, "", (False, True)))(*args)
        for form in ("mixed", "xla")
    )
    for found, right in zip(kernel, expected, strict=True):
        np.testing.assert_array_equal(found, right)
