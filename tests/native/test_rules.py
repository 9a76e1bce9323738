"""Native kernels against XLA, primitive by primitive: values, batches, derivatives."""

import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.ad_checkpoint import checkpoint_name
from rule_cases import ARITHMETIC, EPS, SQUARE, X, Y, check, compare

from rigidjax import native
from rigidjax.native.runtime.kernel import Kernel, Signature


@pytest.mark.parametrize("name", ARITHMETIC)
def test_elementwise_rules(name):
    compare(ARITHMETIC[name], X, Y)


def test_reordered_arrays():
    """Column-major order, which derivatives of products create too, and arrays that are no
    stacks.
    """
    rows = 200
    table = jnp.linspace(0.5, 1.5, 3 * rows).reshape(rows, 3)

    def function(a):
        return (
            a.ravel(order="F"),
            (2.0 * a).reshape(3, rows, order="F"),
            jax.lax.reshape(a * a, (3, rows), dimensions=(1, 0)) + 1.0,
            jax.lax.reshape(jnp.sin(a), (rows, 3), dimensions=(1, 0)),
        )

    compare(function, table)

    compare(lambda a: (jnp.sin(a).T * 2.0).T.reshape(3, rows), table)
    compare(lambda a: jnp.sin(a).reshape(3, rows).reshape(rows, 3).T.reshape(rows, 3), table)

    def total(a):
        return jnp.sum(jnp.prod(a, axis=1) ** 2)

    kernel = native.jit(total)
    check(jax.jit(jax.grad(kernel))(table), jax.grad(total)(table), 1e-13)
    check(jax.jvp(kernel, (table,), (table,)), jax.jvp(total, (table,), (table,)), 1e-13)


def test_batches_inside_a_kernel():
    """Vmapped loops of Equinox reduce over the batch of the kernel itself."""

    def function(x):
        def reduce_batch(v):
            some, each = eqxi.unvmap_any(v > 1.4), eqxi.unvmap_all(v > 1.4)
            largest = eqxi.unvmap_max(jnp.int32(10 * v))
            return jnp.where(some, v, 0.0), jnp.where(each, v, 0.0), largest + v

        return jax.vmap(reduce_batch)(x)

    kernel = native.jit(function)
    assert kernel.why_not(X) == []
    check(jax.jit(kernel)(X), function(X), EPS)


def test_rows_of_a_single_run():
    """Several elements of a row at once.

    Arithmetic, comparisons, broadcasting along rows and columns, functions, sums and extremes over
    the other axis.
    """
    x = jnp.asarray(np.random.default_rng(8).integers(-40, 40, (100, 8)) / 40)
    row, column, one = x[0] + 3, x[:, :1] - 1, jnp.array(2.0)

    def function(x, row, column, one):
        where = (x > row) & (x != column)
        return (
            x * row + column * one,
            where,
            jnp.where(where, x, one),
            jnp.where(one > 1, x, row),
            jnp.sin(1e6 * x) + jnp.exp(0.1 * x) * jnp.sqrt(jnp.abs(x)),
            jnp.floor(x / 3).astype(jnp.int32),
            jnp.sum(x, axis=0),
            jnp.max(x, axis=0),
            jnp.any(where, axis=0),
            column[:, 0] @ x,
            x @ row,
            x.T @ x,
            x[:, ::-1] - x,
        )

    # Sums of a hundred numbers.
    compare(function, x, row, column, one, tolerance=200 * EPS, batch=5)


def test_updates_that_are_views_of_what_they_change():
    line, order = jnp.linspace(0.1, 1.0, 301), jnp.arange(301)[::-1]

    def function(x, k):
        y = jnp.sin(x)
        return (
            jax.lax.dynamic_update_slice(y, jnp.sin(x)[::-1], (0,)),
            (lambda z: jax.lax.dynamic_update_slice(z, z[:-20], (k,)))(jnp.cos(x)),
            (lambda z: z.at[order].set(z))(jnp.exp(x)),
        )

    compare(function, line, jnp.array(3))


def test_indices_beyond_the_signed_range():
    places = jnp.array([1, 2**63 + 5], jnp.uint64)

    def function(x, places):
        return [jax.lax.dynamic_slice(x, (k,), (2,)) for k in places]

    compare(function, X, places)


def test_larger_arrays_lie_in_memory():
    big = jnp.linspace(-1.0, 2.0, 600).reshape(20, 30)

    def function(a):
        half = a.T[::2] * 2.0 + jnp.sin(a.T[::2])
        return half, half.sum(0), jnp.where(half > 0, half, -1.0).reshape(-1), half @ a, a[3, 4]

    compare(function, big, tolerance=1e-13)


@pytest.mark.parametrize("size", [17, 40])
def test_extremes_of_long_rows(size):
    """The first of equal values; the first NaN if there is one."""
    line = jnp.sin(jnp.arange(1.0 * size))

    def function(x):
        twice = x.at[size - 1].set(x[1])
        spoiled = x.at[jnp.array([5, 9])].set(jnp.nan)
        whole = (10 * twice).astype(int)
        return [f(v) for v in (twice, spoiled, whole) for f in (jnp.argmax, jnp.argmin)]

    compare(function, line)


def test_updates_of_large_arrays_at_constant_indices():
    """Blocks, rows, single entries; updates out of bounds are dropped; one index occurs twice."""
    block = jnp.arange(400.0).reshape(20, 20)

    def function(a, x):
        large = jnp.zeros((50, 40))
        entries = jnp.array([3, 7, 3])
        return (
            large.at[10:30, 5:25].set(a),
            large.at[10:30, 5:25].set(a).at[12:15, 0:3].add(a[:3, 4:7]),
            large.at[entries].add(jnp.outer(x, jnp.arange(40.0))),
            large.at[entries, 2].max(x).at[entries[:2], entries[1:]].mul(x[:2]),
            large.at[jnp.array([48, 60])].set(x[1], mode="drop"),
            large.at[entries].subtract(x[:, None]),
        )

    compare(function, block, X)


def test_arrays_without_axes():
    """Operations along no axis, and an entry without an index."""

    def function(x):
        y = 2.0 * x[0]
        return (
            jax.lax.rev(y, ()),
            jax.lax.dynamic_slice(y, (), ()),
            jax.lax.dynamic_update_slice(y, x[1], ()),
            jax.lax.slice_p.bind(y, start_indices=(), limit_indices=(), strides=None),
            jax.lax.pad(y, x[1], ()),
        )

    compare(function, X)


@pytest.mark.parametrize("size", [4, 60])
def test_entries_changed_by_a_function(size):
    """`apply` in registers and in memory, at constant and dynamic indices, is no plain update."""

    def function(x, k):
        a = jnp.arange(1.0 * size) * x[0]
        return a.at[1:3].apply(jnp.sin), a.at[k].apply(lambda v: jnp.exp(-v) + 1.0)

    compare(function, X, jnp.array([2, 0]))


def test_arrays_are_repeated():
    """In registers, and in memory."""

    def function(x, block):
        named = checkpoint_name(x, "x")
        return jnp.tile(named, 5), jnp.tile(x, (40, 3)), jnp.tile(block, (2, 3)), jnp.tile(block, 2)

    compare(function, X, jnp.arange(400.0).reshape(20, 20))


@pytest.mark.parametrize("mode", ["clip", "promise_in_bounds"])
def test_slices_at_constant_indices(mode):
    """Arrays in registers and constant; some slices are out of bounds unless promised otherwise."""
    size = 4
    last = size if mode == "promise_in_bounds" else size + 3
    rows = np.array([last - 1, 0, 2, 2])
    kinds = jax.lax.GatherScatterMode.from_any(mode)
    blocks = jax.lax.GatherDimensionNumbers((0, 2), (), (1,))

    def function(x):
        a = jnp.outer(jnp.arange(1.0 * size), x)
        known = jnp.arange(3 * size).reshape(size, 3)
        columns = jax.lax.gather(a, np.array([[0], [1], [last - size]]), blocks, (2, 2), mode=kinds)
        return (
            a.at[rows].get(mode=mode),
            a.at[rows, 1].get(mode=mode),
            a.at[rows[:, None], np.array([2, 0])].get(mode=mode) * x[0],
            known.at[rows].get(mode=mode) + (x[0] > 0),
            columns,
        )

    compare(function, X)


def test_constant_indices_cost_nothing():
    """This includes concatenated indices, and indices among fused loops."""
    rows, columns = np.arange(600) % 50, np.arange(600) % 40

    def lines(count):
        def function(x):
            where = jnp.array([1, 2]), jnp.stack([jnp.array(rows), jnp.array(columns)])[:, :count]
            table = jnp.zeros((50, 40)).at[where[1][0], where[1][1]].max(jnp.tile(x[0], count))
            return table.sum() + where[0][0]

        closed = jax.make_jaxpr(function)(X)
        return Kernel(closed, Signature((False,), False)).text.count("\n")

    assert lines(600) < lines(300) + 20


def test_primitives_of_newer_jax_releases():
    """`jnp.polyval` and `jnp.log2` are primitives from JAX 0.12 on."""

    def function(x):
        rows = jnp.stack([x, 2 * x, x - 1.0])
        return jnp.polyval(rows, x[0]), jnp.polyval(rows[:1], x), jnp.log2(x), jnp.arcsin(0.1 * x)

    compare(function, X)


def test_iota_indices_need_no_table():
    """Iota indices beyond the folding limit are counted by the kernel, masks once."""

    def function(x):
        many = jnp.arange(100_000)
        mask = (jnp.arange(300)[:, None] <= jnp.arange(300)) * x[0]
        return jnp.where(many % 3 == 0, jnp.sin(1e-5 * many), x[1])[-7:], mask

    compare(function, X)
    closed = jax.make_jaxpr(function)(X)
    assert len(Kernel(closed, Signature((False,), False)).text) < 100_000


def test_common_subexpressions_in_a_block_are_emitted_once():
    def lines(function):
        closed = jax.make_jaxpr(function)(X, Y)
        return Kernel(closed, Signature((False, False), False)).text.count("\n")

    once, twice = lines(lambda x, y: x * y), lines(lambda x, y: (x * y) * jnp.flip(y * x))
    # Three products more, and not six.
    assert twice - once <= 4 + 3


def test_equal_sub_jaxprs_are_emitted_once():
    """Sub-jaxprs are compared by their equations, not by their traces."""

    def part(x, factor, table):
        return jax.lax.cond(x[0] > factor, lambda y: jnp.sin(y) * table[1], jnp.cos, x)

    def both(*differing):
        def function(x, y):
            tables = [np.arange(3.0) + extra for _, extra in differing]
            found = [part(x, f, t) for (f, _), t in zip(differing, tables, strict=True)]
            # A jaxpr without large arrays is emitted unchanged.
            return found, jnp.outer(jnp.arange(300.0), y)

        compare(function, X, Y)
        closed = jax.make_jaxpr(function)(X, Y)
        return Kernel(closed, Signature((False, False), False)).text.count("\n")

    once, same = both((2.0, 0.0)), both((2.0, 0.0), (2.0, 0.0))
    assert same - once < 0.4 * once
    for other in ((3.0, 0.0), (2.0, 1.0)):
        assert both((2.0, 0.0), other) > same


def test_dynamic_indices():
    table = jnp.arange(24.0).reshape(8, 3) ** 2

    def function(x, y):
        k = jnp.argmax(x * y) + (x[0] > 1.3)
        return (
            table[k],
            table[k - 20],
            jax.lax.dynamic_slice(table, (k, 1), (3, 2)),
            jax.lax.dynamic_update_slice(table, x[None], (k, 0)),
            table.at[k, 1].set(7.0),
            table.at[k + 100].add(1.0),
            table.at[jnp.array([k, k])].max(100.0 * x),
            jnp.take(x, jnp.array([k, 0, 5]), mode="fill"),
        )

    compare(function, X, Y)


def test_updates_out_of_bounds_by_a_constant_index():
    """JAX drops updates whose constant index is out of bounds, whatever the dynamic index is.

    Updates of one entry and of rows, within a scan too.
    """
    rows, shape = 3, (3, 2)

    def function(x, y):
        array, k = jnp.outer(jnp.arange(1.0 * rows), x[:2]), jnp.argmax(x * y)
        pair, many = jnp.stack([k, k]), jnp.arange(40) % 2 + 0 * k
        outside = array.at[rows + 4, k], array.at[k, -3], array.at[np.array([rows, 1]), pair]
        clipped = array.at[rows + 4, k].add(5.0, mode="clip")
        dropped = [update.add(5.0) for update in outside[:2]]
        scanned, _ = jax.lax.scan(lambda a, i: (a.at[i, 2].set(7.0), None), array, jnp.arange(3))
        assert all(a.shape == shape for a in dropped)
        return (
            *dropped, outside[0].set(5.0), outside[1].multiply(5.0), outside[2].min(-5.0),
            outside[0].max(1e3), outside[1].apply(jnp.cos), outside[0].get(), clipped, scanned,
            array.at[rows, many].add(1.0), array.at[:, many, None].add(1.0, mode="drop"),
        )  # fmt: skip

    compare(function, X, Y)
    array = jnp.zeros(shape)
    actual = native.jit(lambda array, k: array.at[7 + rows, k].add(5.0))(array, 1)
    np.testing.assert_array_equal(actual, array)


def test_factorisations_against_xla():
    def function(A):
        return (
            *(jnp.linalg.inv(A), jnp.linalg.solve(A, X), jnp.linalg.cholesky(A @ A.T)),
            jax.scipy.linalg.solve_triangular(A, X, lower=True, trans=1),
            jnp.linalg.det(A),
            jnp.linalg.cholesky(jnp.stack([A @ A.T, A.T @ A])),
            jnp.linalg.inv(jnp.stack([A, A.T])),
        )

    compare(function, SQUARE, tolerance=1e-13)


def test_nan_stays_in_its_lane():
    kernel = native.jit(lambda x: jnp.sqrt(x) + x.sum())
    points = jnp.stack([X, Y, Y])
    out = jax.vmap(kernel)(points)
    assert np.isnan(out[0]).any()
    assert np.isfinite(out[1:]).all()


def test_integer_division_by_zero():
    kernel = native.jit(lambda a, b: (jax.lax.div(a, b), jax.lax.rem(a, b)))
    lowest = np.iinfo(np.int64).min
    a, b = jnp.array([7, lowest, -7, 0]), jnp.array([0, -1, 2, 0])
    expected = jax.lax.div(a, b), jax.lax.rem(a, b)
    check(jax.jit(jax.vmap(kernel))(a, b), expected, 0)


REALS = [0.5, -0.5, 0.49999999999999994, 2.5, -2.5, 1e10, -1e10, 1e20, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda t: t.__name__)
def test_integers_saturate(dtype):
    """This includes compile-time constants."""
    reals, kinds = (
        jnp.asarray(REALS, dtype),
        [f"{u}int{8 << k}" for u in ("", "u") for k in range(4)],
    )

    def function(x):
        away = jax.lax.round(x, jax.lax.RoundingMethod.AWAY_FROM_ZERO)
        return away, [x.astype(kind) for kind in kinds]

    expected = jax.jit(function)(reals)
    check(native.jit(function)(reals), expected, 0)
    check(native.jit(lambda: function(jnp.asarray(REALS, dtype)))(), expected, 0)


def test_derivatives_of_rules():
    def function(x, y):
        return jnp.sin(x) @ y * jnp.linalg.norm(x) + jnp.exp(-(y**2)).sum()

    kernel, points = native.jit(function), jnp.stack([X, Y, X + Y])

    def derivatives(f):
        return (
            jax.grad(f, argnums=(0, 1))(X, Y),
            jax.hessian(f)(X, Y),
            jax.jvp(f, (X, Y), (Y, X)),
            jax.vmap(jax.grad(f), in_axes=(0, None))(points, Y),
            jax.jacfwd(jax.vmap(f, in_axes=(None, 0)))(X, points),
        )

    check(jax.jit(lambda: derivatives(kernel))(), derivatives(function), 1e-12)


def test_gradient_of_a_sum_over_a_batch():
    def total(f):
        return lambda scale: jax.vmap(lambda x: f(x, scale))(jnp.stack([X, Y])).sum()

    def function(x, scale):
        return jnp.sin(x * scale).sum()

    check(jax.grad(total(native.jit(function)))(Y), jax.grad(total(function))(Y), 1e-13)


def test_batches_of_batches():
    function = lambda x, y, z: x * jnp.sin(y) + z  # noqa: E731
    kernel = native.jit(function)

    def twice(f):
        return jax.vmap(jax.vmap(f, in_axes=(0, None, None)), in_axes=(None, 1, None))

    args = jnp.stack([X, Y]), jnp.ones((3, 4)) * X[:, None], Y
    check(jax.jit(twice(kernel))(*args), twice(function)(*args), 1e-14)


def test_tangents_of_members_are_lanes():
    """Each tangent of each batch element is a lane of one call."""
    function = lambda x, y: jnp.sin(x) * jnp.linalg.norm(y)  # noqa: E731
    points = jnp.stack([X, Y, X + Y, X - Y, 2 * X])
    jacobians = lambda f: jax.vmap(jax.jacfwd(f), (0, None))(points, Y)  # noqa: E731
    kernel = native.jit(function)
    check(jax.jit(jacobians, static_argnums=0)(kernel), jacobians(function), 1e-14)
    calls = [
        equation.params["size"]
        for equation in jax.make_jaxpr(lambda: jacobians(kernel))().eqns
        if equation.primitive.name in ("native_call", "native_forward")
    ]
    assert calls[-1] == len(points) * X.size


def test_unsupported_primitives_are_named():
    def function(x):
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    kernel = native.jit(function)
    (reason,) = kernel.why_not(X)
    assert "`pure_callback`" in reason
    assert "test_rules.py" in reason
    with pytest.raises(NotImplementedError, match="no rule for `pure_callback`"):
        kernel(X)
    (reason, *_) = native.jit(lambda x: x.astype(jnp.float16) * 2).why_not(X)
    assert "`convert_element_type` of type float16" in reason
    (reason, *_) = native.jit(lambda: jax.random.normal(jax.random.key(0))).why_not()
    assert "`random_seed` of type key" in reason


def test_nested_kernels():
    inner = native.jit(lambda x: jnp.sin(x).sum())

    def function(x, y):
        return inner(x) + jax.vmap(inner)(jnp.stack([x, y]))

    compare(function, X, Y)
