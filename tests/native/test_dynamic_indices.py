"""Arrays with indices that are known only at run time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rigidjax import native
from rigidjax.native.passes.dynamic_indices import find_dynamic_indices
from rigidjax.native.runtime.kernel import Kernel, Signature


def walk(table, out, stride):
    """Step through a table by a stride that is data, and write marks."""

    def turn(carry):
        place, out, total = carry
        total = total + table[place]
        out = jax.lax.cond(total > 0, lambda out: out.at[place].add(total), lambda out: out, out)
        return place + stride, out, total

    place, out, total = jax.lax.while_loop(
        lambda carry: carry[0] < table.shape[0], turn, (jnp.zeros((), int), out, 0.0)
    )
    return out, total, place


def arguments(rng, count, size):
    return (
        jnp.asarray(rng.normal(size=(count, size))),
        jnp.zeros((count, size)),
        jnp.asarray(rng.integers(1, 4, count)),
    )


@pytest.mark.parametrize("size", [5, 40, 300])
def test_loops_with_dynamic_indices(rng, size):
    """Tables in registers, in memory by choice, and in memory by size; alone and in a batch."""
    args = arguments(rng, 7, size)
    kernel = native.jit(walk)
    found = jax.vmap(kernel)(*args)
    for a, b in zip(found, jax.vmap(walk)(*args), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-14)
    alone = kernel(*(x[3] for x in args))
    for a, b in zip(alone, found, strict=True):
        np.testing.assert_allclose(a, b[3], rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("is_batch", [False, True])
def test_code_does_not_grow_with_the_table(rng, is_batch):
    lines = []
    for size in (20, 200):
        one = [x[0] for x in arguments(rng, 1, size)]
        closed = jax.make_jaxpr(walk)(*one)
        kernel = Kernel(closed, Signature((is_batch,) * 3, is_batch, run_once=True))
        lines.append(kernel.text.count("\n"))
    assert lines[1] <= 1.02 * lines[0]


def test_dynamically_indexed_arrays_are_detected():
    """Constant indices and scanned arrays are excluded; calls and branches are inspected."""

    def function(x, y, z, i):
        first = jax.lax.dynamic_slice(x, (i,), (2,))
        second = jax.lax.fori_loop(0, 3, lambda k, s: s + y[k], 0.0)
        third = jax.lax.scan(lambda c, row: (c + row, None), 0.0, z)[0]
        return first, second, third

    x = jnp.arange(12.0)
    jaxpr = jax.make_jaxpr(jax.jit(function))(x, x, x, 3).jaxpr
    assert find_dynamic_indices(jaxpr, (True,) * 4).arguments == (True, False, False, False)
    assert find_dynamic_indices(jaxpr, (True, True, True, False)).arguments == (False,) * 4

    def branches(x, i):
        return jax.lax.cond(i > 2, lambda x: jnp.reshape(x, (3, 4))[i, 0], lambda x: x[0], x)

    jaxpr = jax.make_jaxpr(branches)(x, 3).jaxpr
    assert find_dynamic_indices(jaxpr, (True, True)).arguments == (True, False)


@pytest.mark.parametrize("columns", [5, 300])
@pytest.mark.parametrize("places", [[2] * 11, [2] * 10 + [3], list(range(11))])
def test_long_slices_at_uniform_and_divergent_indices(columns, places):
    """Rows at an index of all lanes are accessed as vectors, rows at different indices lane by
    lane.

    Some lanes leave the loop early, and rows are in registers or in memory.
    """

    def function(table, first, turns):
        def turn(state):
            k, table = state
            row = jax.lax.dynamic_slice_in_dim(table, first + k, 4)
            table = jax.lax.dynamic_update_slice_in_dim(table, 2.0 * row + 1.0, first - k, 0)
            return k + 1, table

        return jax.lax.while_loop(lambda state: state[0] < turns, turn, (0, table))[1]

    rng = np.random.default_rng(columns)
    args = (
        jnp.asarray(rng.normal(size=(11, 20, columns))),
        jnp.asarray(places),
        jnp.asarray(rng.integers(0, 4, 11)),
    )
    found = jax.jit(jax.vmap(native.jit(function)))(*args)
    np.testing.assert_allclose(found, jax.vmap(function)(*args), rtol=1e-14)
