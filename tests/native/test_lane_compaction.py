"""Kernels with lane compaction, against XLA, for batch elements of any duration."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.native.runtime import kernel
from rigidjax.native.runtime.lane_compaction import split_at_main_loop


def root(x, goal):
    """Compute Heron's square root in a loop around the main loop."""
    start = jnp.abs(goal) + 1.0, jnp.abs(x)
    turn = lambda s: (0.5 * (s[0] + jnp.abs(goal) / s[0]), s[1] + 1.0)  # noqa: E731
    return jax.lax.while_loop(
        lambda s: (s[0] ** 2 > 1.01 * jnp.abs(goal)) & (s[1] < 20), turn, start
    )


def in_registers(turns, x, shared):
    """Constants per lane and for all lanes, constant and varying variables, before and after the
    loop.
    """
    ours, ahead = jnp.sin(shared).sum(), root(x, shared[0] * x)[0]
    mine = jnp.cos(x) * ours
    stays, known = mine + shared, jnp.linspace(0.0, 2.0, 30)

    def turn(carry):
        k, y, same, z = carry
        y = jnp.sin(y + mine) + 0.1 * same - known
        return k + 1, jnp.cos(y) * 0.5 + y, same, z * 1j + y.sum()

    start = 0, known * x, stays, x + 0j
    k, y, same, z = jax.lax.while_loop(lambda c: c[0] < turns, turn, start)
    return k, y + mine, same, z, root(y[0], x)[1], ours, turns, k > 3, ahead


def in_memory(turns, x, table):
    """Arrays too large for registers: shared or per lane, changed in the loop or not."""
    ours = jnp.cumsum(jnp.cos(table))
    mine = x * ours[:300]

    def turn(carry):
        k, y, same = carry
        y = jnp.sin(y).at[k % 300].add(0.5 * mine[k % 7] + table[k % 300])
        return k + 1, y + 0.1 * same, same

    start = 0, jnp.zeros(300), mine + 1.0
    k, y, same = jax.lax.while_loop(lambda c: c[0] < turns, turn, start)
    # Only some batch elements change it after the loop.
    ends = jax.lax.cond(k > 3, lambda y: y.at[5].set(x), lambda y: y, y)
    return ends, same, y * mine + table[:300], ours.sum() + k


@pytest.mark.parametrize(
    ("function", "shared"),
    [(in_registers, np.linspace(0.3, 1.1, 30)), (in_memory, np.linspace(0.0, 1.0, 400))],
)
def test_lane_compaction_equals_vmap(function, shared):
    native = jax.jit(jax.vmap(rj.native.jit(function), in_axes=(0, 0, None)))
    expected = jax.jit(jax.vmap(function, in_axes=(0, 0, None)))
    before = set(kernel._kernels)
    for count in (0, 2, 61):
        rng = np.random.default_rng(count)
        # Some have no iteration, some fifty times as many as the others.
        turns = np.where(rng.random(count) < 0.1, 200, rng.integers(0, 5, count))
        given = jnp.asarray(turns), jnp.asarray(rng.normal(size=count)), jnp.asarray(shared)
        for found, right in zip(native(*given), expected(*given), strict=True):
            assert found.dtype == right.dtype
            assert np.allclose(found, right, rtol=1e-12, atol=1e-12)
    made = [kernel._kernels[key] for key in set(kernel._kernels) - before]
    assert made and all(one.uses_lane_compaction for one in made)


def test_loops_with_lane_compaction():
    """Lane compaction is used where one loop takes most of the time and its length differs between
    lanes.
    """

    def of(function, batched, *args):
        return split_at_main_loop(jax.make_jaxpr(function)(*args), batched)

    loop = lambda n, x: jax.lax.while_loop(  # noqa: E731
        lambda c: c[0] < n, lambda c: (c[0] + 1, jnp.sin(c[1])), (0, x)
    )[1]
    assert of(loop, (True, True), 3, 1.0) is not None
    assert of(loop, (False, False), 3, 1.0) is None
    assert of(lambda x: jnp.sin(x), (True,), 1.0) is None
    assert of(lambda n, x: loop(n, loop(n, x)), (True, True), 3, 1.0) is None
    assert of(lambda n, x: loop(n, jnp.sin(jnp.cos(x * jnp.ones(20)))), (True, True), 3, 1.0)
    # A loop with a known number of iterations is unrolled instead.
    fixed = rj.native.jit(lambda x: loop(3, x))
    before = set(kernel._kernels)
    found = jax.jit(jax.vmap(fixed))(jnp.arange(9.0))
    assert np.allclose(found, np.sin(np.sin(np.sin(np.arange(9.0)))), rtol=1e-14)
    (made,) = (kernel._kernels[key] for key in set(kernel._kernels) - before)
    assert not made.uses_lane_compaction
