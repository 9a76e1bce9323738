"""Independent iterations of a loop: several at once in the lanes of a single run."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fuzz import generate, jaxprs
from rule_cases import ARITHMETIC, EPS, SQUARE, X, Y, check

from rigidjax import native
from rigidjax.native.runtime.codegen import default_width
from rigidjax.native.runtime.kernel import Kernel, Signature

# More iterations than are unrolled, and no multiple of the lanes.
COUNT = 9
TURNS = jnp.linspace(1.0, 1.8, COUNT)


def map_iterations(function):
    """Apply `function(index, *args)` for each index, one after another."""
    return lambda *args: jax.lax.map(lambda turn: function(turn, *args), TURNS)


def compare(function, *args, tolerance=50 * EPS):
    """Compare a kernel of a single run with XLA, for all iterations at once."""
    kernel = native.jit(map_iterations(function))
    assert kernel.why_not(*args) == []
    expected = jax.vmap(function, (0, *(None for _ in args)))(TURNS, *args)
    check(jax.jit(kernel)(*args), expected, tolerance)


@pytest.mark.parametrize("name", ["functions", "integers", "updates", "bits", "places"])
def test_elementwise_operations_in_parallel_iterations(name):
    compare(lambda turn, x, y: ARITHMETIC[name](turn * x, y + turn * 0.01), X, Y)


def test_complex_values_in_parallel_iterations():
    def function(turn, x, y):
        z = jax.lax.complex(turn * x, y)
        outer = z[:, None] * jnp.conj(z)
        table = jnp.tile(outer, (4, 6)) * turn
        return z * z, outer @ z, jnp.where(outer.real > 0, outer, 0.0), table.sum(0), abs(z)

    compare(function, X, Y)


def test_matrices_in_parallel_iterations():
    """Loops over memory of a lane, with pivots per lane."""
    large = jnp.eye(12) * 3.0 + jnp.sin(jnp.arange(144.0)).reshape(12, 12)

    def function(turn, small, large):
        small, large = small * turn + 0.1, large + 5.0 * jnp.sin(7.0 * turn) * jnp.eye(12)[::-1]
        symmetric = large @ large.T
        return (
            jnp.linalg.inv(small),
            jnp.linalg.solve(large, large[0]),
            jnp.linalg.cholesky(symmetric),
            jnp.linalg.eigvalsh(symmetric),
            jnp.linalg.det(large),
        )

    compare(function, SQUARE, large, tolerance=1e-10)


def test_loops_and_branches_diverge_between_iterations():
    def function(turn, x, table):
        count = (10 * turn).astype(int) % 4

        def step(carry):
            k, x, table = carry
            x = jax.lax.cond(x[0] > 2 * turn, lambda v: jnp.cos(v), lambda v: v * 1.5 + turn, x)
            return k + 1, x, table.at[(7 * k + count) % 100].add(x[0])

        k, x, table = jax.lax.while_loop(lambda c: c[0] < 3 + 5 * count, step, (0, x, table))
        picked = jax.lax.dynamic_slice(table, (20 * count,), (20,))
        return k, x, table, picked, jax.lax.switch(count, [jnp.sin, jnp.cos, jnp.exp, abs], x)

    compare(function, X, jnp.linspace(0.0, 1.0, 100))


@pytest.mark.parametrize("seed", [1, 2])
def test_random_jaxprs(seed):
    """Iterations whose branches and lengths of loops differ."""
    case = generate.random_case(5_000 + seed)[0]._replace(mode="")
    if not case.batch:
        case = generate.random_case(6_000 + seed)[0]._replace(mode="")
    outcome = jaxprs.check(case, seed, ("mapped",))
    assert outcome.failure is None, outcome.failure


@pytest.mark.parametrize("count", [2, 5, 1_000])
def test_any_number_of_iterations(count):
    """Few iterations are not unrolled either if each is long."""
    turns, table = jnp.arange(1.0 * count), jnp.linspace(-1.0, 1.0, 3_600).reshape(60, 60)

    def function(turns, table):
        return jax.lax.map(lambda k: (jnp.sin(k * table).sum(0), k > 2, k.astype(int)), turns)

    closed = jax.make_jaxpr(function)(turns, table)
    assert f"<{default_width()} x i64>" in Kernel(closed, Signature((False, False), False)).text
    expected = jax.vmap(lambda k: (jnp.sin(k * table).sum(0), k > 2, k.astype(int)))(turns)
    check(jax.jit(native.jit(function))(turns, table), expected, 1e-13)


def test_derivatives_of_parallel_iterations():
    """Columns of a Jacobian, and the gradient of a sum over iterations."""

    def function(x):
        rows = jax.lax.map(lambda k: jnp.sin(k * x) * x[::-1], TURNS)
        return (rows * jnp.arange(1.0, COUNT + 1)[:, None]).sum(0)

    kernel = native.jit(function)
    check(jax.jit(jax.jacfwd(kernel))(X), jax.jacfwd(function)(X), 1e-13)
    check(jax.jit(jax.jacrev(kernel))(X), jax.jacrev(function)(X), 1e-13)
    batch = jnp.stack([X, Y, X + Y])
    np.testing.assert_allclose(jax.jit(jax.vmap(kernel))(batch), jax.vmap(function)(batch), 1e-13)
