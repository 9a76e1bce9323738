"""Kernels against XLA on random programs: what goes wrong where one primitive is in another."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_programs import RandomProgram

from rigidjax import native

COUNT, TOLERANCE = 9, 1e-9


def compare(actual, expected):
    for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.exhaustive(but=("4", "9"))
@pytest.mark.parametrize("seed", range(24))
def test_values(seed):
    """Members that take different ways, as a batch and one by one."""
    program = RandomProgram(seed)
    args, kernel = program.arguments(COUNT), native.jit(program)
    one = [x[0] for x in args]
    assert kernel.why_not(*one) == []
    expected = jax.jit(jax.vmap(program))(*args)
    compare(jax.jit(jax.vmap(kernel))(*args), expected)
    single = jax.jit(kernel)
    for k in range(COUNT):
        compare(single(*(x[k] for x in args)), [x[k] for x in expected])


@pytest.mark.exhaustive(but=("2",))
@pytest.mark.parametrize("seed", range(12))
def test_derivatives(seed):
    """Tangents of members, and gradients of their sum."""
    program = RandomProgram(1_000 + seed, has_while=False)
    flags, *args = program.arguments(COUNT)
    changes = [jnp.cos(x) for x in args]

    def tangents(function, flag, xs, changes):
        return jax.jvp(functools.partial(function, flag), xs, changes)[1]

    def gradients(function):
        def total(args):
            return sum(jnp.sum(jnp.sin(x)) for x in jax.vmap(function)(flags, *args))

        return jax.grad(total)

    kernel = native.jit(program)
    derivatives = [
        (
            jax.jit(jax.vmap(functools.partial(tangents, one)))(flags, tuple(args), tuple(changes)),
            jax.jit(gradients(one))(args),
        )
        for one in (kernel, program)
    ]
    compare(*derivatives)
