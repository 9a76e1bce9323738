"""Un-batching rules: remove an axis along which a primitive computes each entry separately.

They invert the batching rules of `jax.vmap`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import jax

from .analysis import ArrayEquation

Item = TypeVar("Item")
# The stack axis of each argument, and the function of one entry; `None` if the axis cannot be
# removed.
_Unbatched: TypeAlias = tuple[list[int | None], Callable[..., Any]] | None

_ELEMENTWISE = frozenset(
    "abs acos acosh add add_any and asin asinh atan atan2 atanh cbrt ceil clamp complex conj "
    "convert_element_type copy cos cosh div eq erf erf_inv erfc exp exp2 expm1 floor ge gt imag "
    "integer_pow is_finite le log log1p logistic lt max min mul ne neg nextafter not or pow "
    "real rem round rsqrt select_n sign sin sinh sqrt square stop_gradient sub tan tanh "
    "xor".split()
)
_REDUCTIONS = frozenset("reduce_sum reduce_prod reduce_max reduce_min reduce_and reduce_or".split())


class UnbatchedEquation(NamedTuple):
    """An equation for one entry of a stack.

    **Attributes:** `sources`, the stack axis of each argument, `None` if all entries share the
    argument; `targets`, the stack axis of each result; `evaluate`, the function of one entry.
    """

    sources: list[int | None]
    targets: list[int]
    evaluate: Callable[..., Any]


def drop_index(values: Sequence[Item], k: int) -> tuple[Item, ...]:
    """Return all items but the one with index `k`."""
    return (*values[:k], *values[k + 1 :])


def _index_after_drop(axis: int, removed: int) -> int:
    """Return the index of an axis after another axis was removed."""
    return axis - (removed < axis)


def _bind_with(equation: ArrayEquation, **changed: Any) -> Callable[..., Any]:
    """Return the primitive as a function, with some parameters changed."""
    params = {**equation.params, **changed}
    return lambda *args: equation.primitive.bind(*args, **params)


def _elementwise(equation: ArrayEquation, axis: int, shape: tuple[int, ...]) -> _Unbatched:
    rank = len(shape)
    sources = [axis if x.aval.ndim == rank else None for x in equation.invars]
    return sources, _bind_with(equation)


def _broadcast_in_dim(equation: ArrayEquation, axis: int, shape: tuple[int, ...]) -> _Unbatched:
    (x, *_), p = equation.invars, equation.params
    dims, rest = p["broadcast_dimensions"], drop_index(shape, axis)
    source = dims.index(axis) if axis in dims else None
    if source is None:
        new_dims = tuple(_index_after_drop(d, axis) for d in dims)
        return [None], lambda v: jax.lax.broadcast_in_dim(v, rest, new_dims)
    new_dims = tuple(_index_after_drop(d, axis) for d in drop_index(dims, source))
    if x.aval.shape[source] == shape[axis]:
        return [source], lambda v: jax.lax.broadcast_in_dim(v, rest, new_dims)
    return [None], lambda v: jax.lax.broadcast_in_dim(jax.lax.squeeze(v, (source,)), rest, new_dims)


def _reshape(equation: ArrayEquation, axis: int, shape: tuple[int, ...]) -> _Unbatched:
    old = equation.invars[0].aval.shape
    if equation.params["dimensions"] is not None:
        return None
    before = math.prod(shape[:axis])
    for k, n in enumerate(old):
        if n == shape[axis] and math.prod(old[:k]) == before:
            return [k], lambda v: jax.lax.reshape(v, drop_index(shape, axis))
    return None


def _transpose(equation: ArrayEquation, axis: int, shape: tuple[int, ...]) -> _Unbatched:
    order = equation.params["permutation"]
    source = order[axis]
    rest = tuple(_index_after_drop(k, source) for k in drop_index(order, axis))
    return [source], lambda v: jax.lax.transpose(v, rest)


def _squeeze(equation: ArrayEquation, axis: int, shape: tuple[int, ...]) -> _Unbatched:
    squeezed = equation.params["dimensions"]
    remaining = [k for k in range(equation.invars[0].aval.ndim) if k not in squeezed]
    source = remaining[axis]
    return [source], lambda v: jax.lax.squeeze(
        v, tuple(_index_after_drop(k, source) for k in squeezed)
    )


def _slice(equation: ArrayEquation, axis: int, shape: tuple[int, ...]) -> _Unbatched:
    p = equation.params
    if shape[axis] != equation.invars[0].aval.shape[axis]:
        return None
    steps = p["strides"] and drop_index(p["strides"], axis)
    limits = (drop_index(p[k], axis) for k in ("start_indices", "limit_indices"))
    start, end = limits
    return [axis], lambda v: jax.lax.slice(v, start, end, steps)


def _concatenate(equation: ArrayEquation, axis: int, shape: tuple[int, ...]) -> _Unbatched:
    along = equation.params["dimension"]
    if along == axis:
        return None
    return [axis] * len(equation.invars), _bind_with(
        equation, dimension=_index_after_drop(along, axis)
    )


def _stack(equation: ArrayEquation, axis: int, shape: tuple[int, ...]) -> _Unbatched:
    along = equation.params["axis"]
    if along == axis:
        return None
    source = _index_after_drop(axis, along)
    return [source] * len(equation.invars), _bind_with(
        equation, axis=_index_after_drop(along, axis)
    )


def _unstack(equation: ArrayEquation, axis: int, shape: tuple[int, ...]) -> _Unbatched:
    along = equation.params["axis"]
    source = axis + (along <= axis)
    return [source], _bind_with(equation, axis=_index_after_drop(along, source))


def _split(equation: ArrayEquation, axis: int, shape: tuple[int, ...]) -> _Unbatched:
    along = equation.params["axis"]
    if along == axis:
        return None
    return [axis], _bind_with(equation, axis=_index_after_drop(along, axis))


def _pad(equation: ArrayEquation, axis: int, shape: tuple[int, ...]) -> _Unbatched:
    config = equation.params["padding_config"]
    if tuple(config[axis]) != (0, 0, 0):
        return None
    return [axis, None], _bind_with(equation, padding_config=drop_index(config, axis))


def _rev(equation: ArrayEquation, axis: int, shape: tuple[int, ...]) -> _Unbatched:
    axes = equation.params["dimensions"]
    if axis in axes:
        return None
    return [axis], _bind_with(equation, dimensions=tuple(_index_after_drop(k, axis) for k in axes))


def _iota(equation: ArrayEquation, axis: int, shape: tuple[int, ...]) -> _Unbatched:
    along = equation.params["dimension"]
    if along == axis:
        return None
    rest, dtype = drop_index(shape, axis), equation.params["dtype"]
    return [], lambda: jax.lax.broadcasted_iota(dtype, rest, _index_after_drop(along, axis))


def _reduction(equation: ArrayEquation, axis: int, shape: tuple[int, ...]) -> _Unbatched:
    axes = equation.params["axes"]
    remaining = [k for k in range(equation.invars[0].aval.ndim) if k not in axes]
    source = remaining[axis]
    return [source], _bind_with(equation, axes=tuple(_index_after_drop(k, source) for k in axes))


def _short_sum(equation: ArrayEquation, axis: int, shape: tuple[int, ...]) -> _Unbatched:
    along = equation.params["axis"]
    source = axis + (along <= axis)
    mapped = [x.aval.shape[source] == shape[axis] for x in equation.invars]

    def evaluate(*factors):
        factors = [
            f if m else jax.lax.squeeze(f, (source,)) for f, m in zip(factors, mapped, strict=True)
        ]
        return equation.primitive.bind(*factors, axis=_index_after_drop(along, source))

    return [source if m else None for m in mapped], evaluate


def _cross_product(equation: ArrayEquation, axis: int, shape: tuple[int, ...]) -> _Unbatched:
    if axis == len(shape) - 1:
        return None
    mapped = [x.aval.shape[axis] == shape[axis] for x in equation.invars]

    def evaluate(*vectors):
        vectors = [
            x if m else jax.lax.squeeze(x, (axis,)) for x, m in zip(vectors, mapped, strict=True)
        ]
        return equation.primitive.bind(*vectors)

    return [axis if m else None for m in mapped], evaluate


def _dot_general(equation: ArrayEquation, axis: int, shape: tuple[int, ...]) -> _Unbatched:
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


def unbatch(equation: ArrayEquation, axis: int) -> UnbatchedEquation | None:
    """Return an equation for one entry along an axis of its results; `None` without a rule."""
    rule = _RULES.get(equation.primitive.name)
    if rule is None:
        return None
    result = rule(equation, axis, equation.outvars[0].aval.shape)
    return result and UnbatchedEquation(result[0], [axis] * len(equation.outvars), result[1])
