"""Primitives that compute each entry of a stack by itself: what they do with one entry.

The rules of `jax.vmap` backwards: an axis is taken out of the equation.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax

_ELEMENTWISE = frozenset(
    "abs acos acosh add add_any and asin asinh atan atan2 atanh cbrt ceil clamp complex conj "
    "convert_element_type copy cos cosh div eq erf erf_inv erfc exp exp2 expm1 floor ge gt imag "
    "integer_pow is_finite le log log1p logistic lt max min mul ne neg nextafter not or pow "
    "real rem round rsqrt select_n sign sin sinh sqrt square stop_gradient sub tan tanh "
    "xor".split()
)
_REDUCTIONS = frozenset("reduce_sum reduce_prod reduce_max reduce_min reduce_and reduce_or".split())


class UnbatchedEquation(NamedTuple):
    """An equation entry by entry of a stack.

    **Attributes:** `sources`, the axis of the stack of each argument, `None` for one that is the
    same for all entries; `targets`, that of each result; `one`, the results for one entry.
    """

    sources: list[int | None]
    targets: list[int]
    one: Callable[..., Any]


def drop_index(values, k):
    """All but number `k`."""
    return (*values[:k], *values[k + 1 :])


def _index_after_drop(axis, removed):
    """An axis after another one was taken out."""
    return axis - (removed < axis)


def _bind_with(equation, **changed):
    params = {**equation.params, **changed}
    return lambda *args: equation.primitive.bind(*args, **params)


def _elementwise(equation, axis, shape):
    rank = len(shape)
    sources = [axis if x.aval.ndim == rank else None for x in equation.invars]
    return sources, _bind_with(equation)


def _broadcast_in_dim(equation, axis, shape):
    (x, *_), p = equation.invars, equation.params
    dims, rest = p["broadcast_dimensions"], drop_index(shape, axis)
    own = dims.index(axis) if axis in dims else None
    if own is None:
        at = tuple(_index_after_drop(d, axis) for d in dims)
        return [None], lambda v: jax.lax.broadcast_in_dim(v, rest, at)
    at = tuple(_index_after_drop(d, axis) for d in drop_index(dims, own))
    if x.aval.shape[own] == shape[axis]:
        return [own], lambda v: jax.lax.broadcast_in_dim(v, rest, at)
    return [None], lambda v: jax.lax.broadcast_in_dim(jax.lax.squeeze(v, (own,)), rest, at)


def _reshape(equation, axis, shape):
    old = equation.invars[0].aval.shape
    if equation.params["dimensions"] is not None:
        return None
    before = math.prod(shape[:axis])
    for k, n in enumerate(old):
        if n == shape[axis] and math.prod(old[:k]) == before:
            return [k], lambda v: jax.lax.reshape(v, drop_index(shape, axis))
    return None


def _transpose(equation, axis, shape):
    order = equation.params["permutation"]
    source = order[axis]
    rest = tuple(_index_after_drop(k, source) for k in drop_index(order, axis))
    return [source], lambda v: jax.lax.transpose(v, rest)


def _squeeze(equation, axis, shape):
    gone = equation.params["dimensions"]
    kept = [k for k in range(equation.invars[0].aval.ndim) if k not in gone]
    source = kept[axis]
    return [source], lambda v: jax.lax.squeeze(v, tuple(_index_after_drop(k, source) for k in gone))


def _slice(equation, axis, shape):
    p = equation.params
    if shape[axis] != equation.invars[0].aval.shape[axis]:
        return None
    steps = p["strides"] and drop_index(p["strides"], axis)
    limits = (drop_index(p[k], axis) for k in ("start_indices", "limit_indices"))
    start, end = limits
    return [axis], lambda v: jax.lax.slice(v, start, end, steps)


def _concatenate(equation, axis, shape):
    along = equation.params["dimension"]
    if along == axis:
        return None
    return [axis] * len(equation.invars), _bind_with(
        equation, dimension=_index_after_drop(along, axis)
    )


def _stack(equation, axis, shape):
    along = equation.params["axis"]
    if along == axis:
        return None
    source = _index_after_drop(axis, along)
    return [source] * len(equation.invars), _bind_with(
        equation, axis=_index_after_drop(along, axis)
    )


def _unstack(equation, axis, shape):
    along = equation.params["axis"]
    source = axis + (along <= axis)
    return [source], _bind_with(equation, axis=_index_after_drop(along, source))


def _split(equation, axis, shape):
    along = equation.params["axis"]
    if along == axis:
        return None
    return [axis], _bind_with(equation, axis=_index_after_drop(along, axis))


def _pad(equation, axis, shape):
    config = equation.params["padding_config"]
    if tuple(config[axis]) != (0, 0, 0):
        return None
    return [axis, None], _bind_with(equation, padding_config=drop_index(config, axis))


def _rev(equation, axis, shape):
    axes = equation.params["dimensions"]
    if axis in axes:
        return None
    return [axis], _bind_with(equation, dimensions=tuple(_index_after_drop(k, axis) for k in axes))


def _iota(equation, axis, shape):
    along = equation.params["dimension"]
    if along == axis:
        return None
    rest, dtype = drop_index(shape, axis), equation.params["dtype"]
    return [], lambda: jax.lax.broadcasted_iota(dtype, rest, _index_after_drop(along, axis))


def _reduction(equation, axis, shape):
    axes = equation.params["axes"]
    kept = [k for k in range(equation.invars[0].aval.ndim) if k not in axes]
    source = kept[axis]
    return [source], _bind_with(equation, axes=tuple(_index_after_drop(k, source) for k in axes))


def _short_sum(equation, axis, shape):
    along = equation.params["axis"]
    source = axis + (along <= axis)
    mapped = [x.aval.shape[source] == shape[axis] for x in equation.invars]

    def one(*factors):
        factors = [
            f if m else jax.lax.squeeze(f, (source,)) for f, m in zip(factors, mapped, strict=True)
        ]
        return equation.primitive.bind(*factors, axis=_index_after_drop(along, source))

    return [source if m else None for m in mapped], one


def _cross_product(equation, axis, shape):
    if axis == len(shape) - 1:
        return None
    mapped = [x.aval.shape[axis] == shape[axis] for x in equation.invars]

    def one(*vectors):
        vectors = [
            x if m else jax.lax.squeeze(x, (axis,)) for x, m in zip(vectors, mapped, strict=True)
        ]
        return equation.primitive.bind(*vectors)

    return [axis if m else None for m in mapped], one


def _dot_general(equation, axis, shape):
    a, b = equation.invars
    (ca, cb), (ba, bb) = equation.params["dimension_numbers"]
    free_a = [k for k in range(a.aval.ndim) if k not in (*ca, *ba)]
    free_b = [k for k in range(b.aval.ndim) if k not in (*cb, *bb)]
    if axis < len(ba):
        sources: list[int | None] = [ba[axis], bb[axis]]
    elif axis < len(ba) + len(free_a):
        sources = [free_a[axis - len(ba)], None]
    else:
        sources = [None, free_b[axis - len(ba) - len(free_a)]]

    def rest(axes, source):
        if source is None:
            return tuple(axes)
        return tuple(_index_after_drop(k, source) for k in axes if k != source)

    numbers = tuple(
        tuple(rest(axes, source) for axes, source in zip(pair, sources, strict=True))
        for pair in ((ca, cb), (ba, bb))
    )
    return sources, _bind_with(equation, dimension_numbers=numbers)


_RULES: dict[str, Callable[..., Any]] = {
    "broadcast_in_dim": _broadcast_in_dim, "reshape": _reshape, "transpose": _transpose,
    "squeeze": _squeeze, "slice": _slice, "concatenate": _concatenate, "stack": _stack,
    "unstack": _unstack, "split": _split, "pad": _pad, "rev": _rev, "iota": _iota,
    "short_sum": _short_sum, "cross_product": _cross_product, "dot_general": _dot_general,
    **dict.fromkeys(_ELEMENTWISE, _elementwise), **dict.fromkeys(_REDUCTIONS, _reduction),
}  # fmt: skip


def unbatch(equation, axis) -> UnbatchedEquation | None:
    """The equation entry by entry along an axis of its results."""
    rule = _RULES.get(equation.primitive.name)
    if rule is None:
        return None
    found = rule(equation, axis, equation.outvars[0].aval.shape)
    return found and UnbatchedEquation(found[0], [axis] * len(equation.outvars), found[1])
