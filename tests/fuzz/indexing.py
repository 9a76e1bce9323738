"""Operations that move elements: shapes, slices, gathers, scatters, orders."""

import numpy as np

from .elementwise import OVERFLOW
from .reductions import doubt_of_order
from .writer import UnavailableError, Writer


def _size(shape) -> int:
    return int(np.prod(shape))


def shapes(w: Writer) -> None:
    x, t = w.variable(where=lambda t: len(t.shape) > 0)
    rank, size = len(t.shape), _size(t.shape)
    axis = w.integer(0, rank - 1)
    n = t.shape[axis]
    order = tuple(int(k) for k in w.rng.permutation(rank))
    factors = [k for k in range(1, size + 1) if size % k == 0] or [1]
    k = w.choose(factors)
    low, high = w.integer(-1, 2), w.integer(-1, 2)
    config = [(0, 0, 0)] * rank
    config[axis] = (max(low, -n + 1) if n else 0, max(high, 0), w.integer(0, 1))
    start = w.integer(0, max(n - 1, 0))
    code = w.choose([
        f"{x}.reshape({size // k if size else 0}, {k})", f"{x}.reshape(-1)",
        f"jnp.transpose({x}, {order})", f"jnp.flip({x}, {axis})", f"jnp.roll({x}, {k}, {axis})",
        f"lax.pad({x}, {w.constant(t._replace(shape=()))}, {config})",
        f"lax.slice_in_dim({x}, {start}, {n}, {w.integer(1, 3)}, {axis})",
        f"jnp.expand_dims({x}, {axis})", f"jnp.tile({x}, 2)", f"jnp.repeat({x}, 2, {axis})",
        f"jnp.moveaxis({x}, 0, -1)", f"{x}.ravel(order='F')",
        f"jnp.broadcast_to({x}, {(w.integer(1, 3), *t.shape)})",
    ])  # fmt: skip
    w.append(code)


def write_join(w: Writer) -> None:
    x, t = w.variable(where=lambda t: len(t.shape) > 0)
    y = w.like(t)
    axis = w.integer(0, len(t.shape) - 1)
    w.append(
        w.choose([
            f"jnp.concatenate([{x}, {y}], {axis})", f"jnp.stack([{x}, {y}], {axis})",
            f"gather_scatter.stack_rows([{x}, {y}, {x}])",
        ])
    )  # fmt: skip


def write_parts(w: Writer) -> None:
    x, t = w.variable(where=lambda t: len(t.shape) > 0 and t.shape[0] >= 2)
    n = t.shape[0]
    first = w.integer(1, n - 1)
    if n <= 5 and w.chance(0.3):
        w.append(f"tuple(jnp.unstack({x}))")
    else:
        w.append(f"tuple(lax.split({x}, ({first}, {n - first})))")


def triangles(w: Writer) -> None:
    x, _ = w.variable("fc", lambda t: len(t.shape) == 2)
    w.append(w.choose([f"jnp.tril({x})", f"jnp.triu({x}, 1)", f"jnp.diag({x})"]))


def _indices(w: Writer, t, inside: bool = False) -> str:
    """Return an index expression: numbers, slices, known or not, in or out of bounds."""
    parts = []
    for n in t.shape:
        if w.chance(0.35):
            parts.append(w.choose([":", f"{w.integer(0, max(n - 1, 0))}:", "::2"]))
        else:
            parts.append(w.index(n, inside=inside))
    if all(":" in p for p in parts):
        parts[0] = w.index(t.shape[0], known=0.1, inside=inside)
    return ", ".join(parts)


def read(w: Writer) -> None:
    x, t = w.variable(where=lambda t: t.shape and _size(t.shape) > 0)
    mode = w.choose(["", ".at", "clip"])
    index = _indices(w, t)
    if mode == "":
        w.append(f"{x}[{index}]")
    elif mode == "clip":
        w.append(f"{x}.at[{index}].get(mode='clip')")
    else:
        w.append(f"{x}.at[{index}].get(mode='fill', fill_value=1)")


def read_many(w: Writer) -> None:
    """Gather with an array of indices."""
    x, t = w.variable(where=lambda t: t.shape and _size(t.shape) > 0)
    k, i = w.variable("iu", lambda t: len(t.shape) == 1 and 0 < t.shape[0] <= 40)
    # Lengths that no index of a small type holds are no numbers of that type.
    most, n = np.iinfo(i.dtype).max, t.shape[0]
    codes = [f"{x}[{k}]", f"jnp.take({x}, {k}, 0, mode='clip')", f"{x}[{k}][..., -1]"]
    codes += [f"{x}[{k} % {n}]"] if n <= most else []
    wraps = f"jnp.take({x}, {k}, {len(t.shape) - 1}, mode='wrap')"
    w.append(w.choose(codes + ([wraps] if t.shape[-1] <= most else [])))


def rows(w: Writer) -> None:
    x, t = w.variable("fc", lambda t: len(t.shape) > 1 and t.shape[0] > 1)
    chosen = [w.integer(0, t.shape[0] - 1) for _ in range(w.integer(1, 4))]
    if w.chance(0.5):
        w.append(f"gather_scatter.take({x}, {chosen})")
    else:
        targets = [w.integer(0, 4) for _ in range(t.shape[0])]
        doubt = doubt_of_order("sum", np.dtype(t.dtype).kind, x)
        w.append(f"gather_scatter.segment_sum({x}, {targets}, 5)", 2.0, "relative", doubt=doubt)


def write_scatter(w: Writer) -> None:
    """Scatter with an index of numbers and slices."""
    x, t = w.variable(where=lambda t: t.shape and _size(t.shape) > 0)
    index = _indices(w, t)
    kind = np.dtype(t.dtype).kind
    methods = ["set"] if kind == "b" else ["set", "set", "add", "multiply"]
    methods += ["min", "max"] if kind in "fiu" else []
    method = w.choose(methods)
    mode = w.choose(["", ", mode='drop'", ", mode='clip'"])
    if w.reverse and method in ("min", "max", "multiply"):
        method = "add" if kind != "b" else "set"
    value = w.like(t._replace(shape=()), known=0.3)
    w.append(f"{x}.at[{index}].{method}({value}{mode})", 1.0 if method != "set" else 0.0)


def written_many(w: Writer) -> None:
    """Scatter with an array of indices: distinct ones where the order would matter."""
    x, t = w.variable("fiuc", lambda t: t.shape and _size(t.shape) > 0)
    n = t.shape[0]
    if w.chance(0.5):
        count = w.integer(1, n)
        k = [int(i) for i in w.rng.permutation(n + 1)[:count]]
        value = w.like(t._replace(shape=(count, *t.shape[1:])))
        w.append(f"{x}.at[jnp.array({k})].set({value})")
    else:
        k, i = w.variable("iu", lambda t: len(t.shape) == 1 and 0 < t.shape[0] <= 40)
        value = w.like(t._replace(shape=(*i.shape, *t.shape[1:])))
        w.append(f"{x}.at[{k}].add({value})", 2.0, "relative")


def windows(w: Writer) -> None:
    """`dynamic_slice` and `dynamic_update_slice`."""
    x, t = w.variable(where=lambda t: t.shape and _size(t.shape) > 0)
    starts = ", ".join(w.index(n) for n in t.shape)
    sizes = tuple(w.integer(1, n) for n in t.shape)
    starts = f"[jnp.asarray(k, jnp.int32) for k in ({starts},)]"
    if w.chance(0.5):
        w.append(f"lax.dynamic_slice({x}, {starts}, {sizes})")
    else:
        update = w.like(t._replace(shape=sizes))
        w.append(f"lax.dynamic_update_slice({x}, {update}, {starts})")


def write_sort(w: Writer) -> None:
    x, t = w.variable("fiu", lambda t: t.shape and _size(t.shape) > 0)
    axis = w.integer(0, len(t.shape) - 1)
    n = t.shape[-1]
    code = w.choose([
        f"jnp.sort({x}, {axis})", f"jnp.argsort({x}, {axis})",
        f"tuple(lax.sort(({x}, {w.like(t)}), dimension={axis}, num_keys={w.integer(1, 2)}))",
        # NaN are ordered by their signs, which differ between processors.
        f"tuple(lax.top_k(jnp.where({x} != {x}, 0, {x}), {w.integer(1, n)}))",
        f"jnp.sort({x}, {axis}, descending=True)",
    ])  # fmt: skip
    w.append(code)


def write_search(w: Writer) -> None:
    x, t = w.variable("f", lambda t: len(t.shape) == 1 and t.shape[0] > 1)
    try:
        y = w.variable("f", lambda o: o.dtype == t.dtype and len(o.shape) <= 1)[0]
    except UnavailableError:
        y = w.constant(t)
    if w.chance(0.5):
        w.append(f"jnp.searchsorted(jnp.sort({x}), {y})")
    else:
        w.append(f"jnp.interp({y}, jnp.sort({x}), {x})", 16.0, "relative", doubt=OVERFLOW)


OPERATIONS = {
    shapes: 4, write_join: 1.5, write_parts: 0.7, triangles: 0.5, read: 2.5, read_many: 1,
    rows: 0.7, write_scatter: 3, written_many: 1, windows: 2, write_sort: 1, write_search: 0.5,
}  # fmt: skip
