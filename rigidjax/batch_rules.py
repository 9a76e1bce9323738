"""Rules for primitives over batches whose axis is behind all others; see `batch_last`."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from .sums import short_sum


@dataclasses.dataclass(frozen=True)
class Last:
    """Values of a batch, its axis last."""

    values: Array


def spread(value, size):
    """Values of a batch, also where they are the same for all."""
    if isinstance(value, Last):
        return value.values
    value = jnp.asarray(value)
    return jnp.broadcast_to(value[..., None], (*value.shape, size))


def broadcast(arg, shape) -> Array:
    """An operand of an elementwise primitive in the shape of a batch of results."""
    values = arg.values if isinstance(arg, Last) else jnp.asarray(arg)[..., None]
    if values.ndim < len(shape):
        values = values.reshape((1,) * (len(shape) - values.ndim) + values.shape)
    return jnp.broadcast_to(values, shape)


# Rules: the results for a batch, or `None` if this case is left to `jax.vmap`.


def _slice(eqn, args, size):
    p = eqn.params
    strides = None if p["strides"] is None else (*p["strides"], 1)
    values = args[0].values
    return [jax.lax.slice(values, (*p["start_indices"], 0), (*p["limit_indices"], size), strides)]


def _concatenate(eqn, args, size):
    return [jnp.concatenate([spread(arg, size) for arg in args], eqn.params["dimension"])]


def _stack(eqn, args, size):
    return [jnp.stack([spread(arg, size) for arg in args], eqn.params["axis"])]


def _unstack(eqn, args, size):
    return jnp.unstack(args[0].values, axis=eqn.params["axis"])


def _split(eqn, args, size):
    return jax.lax.split(args[0].values, eqn.params["sizes"], eqn.params["axis"])


def _broadcast_in_dim(eqn, args, size):
    shape, dimensions = eqn.params["shape"], eqn.params["broadcast_dimensions"]
    values = args[0].values
    return [jax.lax.broadcast_in_dim(values, (*shape, size), (*dimensions, len(shape)))]


def _reshape(eqn, args, size):
    if eqn.params["dimensions"] is not None:
        return None
    return [args[0].values.reshape(*eqn.params["new_sizes"], size)]


def _squeeze(eqn, args, size):
    return [jax.lax.squeeze(args[0].values, eqn.params["dimensions"])]


def _transpose(eqn, args, size):
    order = eqn.params["permutation"]
    return [jax.lax.transpose(args[0].values, (*order, len(order)))]


def _rev(eqn, args, size):
    return [jax.lax.rev(args[0].values, eqn.params["dimensions"])]


def _pad(eqn, args, size):
    values, fill = args
    if isinstance(fill, Last):
        return None
    return [jax.lax.pad(values.values, fill, (*eqn.params["padding_config"], (0, 0, 0)))]


def _reduce_sum(eqn, args, size):
    return [jnp.sum(args[0].values, axis=tuple(eqn.params["axes"]))]


def short_sums(eqn, args, size):
    """Sums of products with few terms (`sums.short_sum`)."""
    factors = [arg.values if isinstance(arg, Last) else arg[..., None] for arg in args]
    return [Last(short_sum(*factors, axis=eqn.params["axis"]))]


def _gather(eqn, args, size):
    values, indices = args
    if isinstance(indices, Last):
        return None
    old, p = eqn.params["dimension_numbers"], eqn.params
    if old.operand_batching_dims:
        return None
    numbers = jax.lax.GatherDimensionNumbers(
        (*old.offset_dims, eqn.outvars[0].aval.ndim),
        old.collapsed_slice_dims,
        old.start_index_map,
    )
    sizes = (*p["slice_sizes"], size)
    # What stands outside is filled as it was.
    return [
        jax.lax.gather(
            values.values, indices, numbers, sizes, mode=p["mode"], fill_value=p["fill_value"]
        )
    ]


def _dynamic_slice(eqn, args, size):
    values, *starts = args
    if any(isinstance(start, Last) for start in starts):
        return None
    return [jax.lax.dynamic_slice(values.values, (*starts, 0), (*eqn.params["slice_sizes"], size))]


def _dynamic_update_slice(eqn, args, size):
    values, part, *starts = args
    if any(isinstance(start, Last) for start in starts):
        return None
    whole, changed = spread(values, size), spread(part, size)
    return [jax.lax.dynamic_update_slice(whole, changed, (*starts, 0))]


def _dot_general(eqn, args, size):
    left, right = args
    contracted, batched = eqn.params["dimension_numbers"]
    if isinstance(left, Last) or any(batched):
        return None
    return [
        jax.lax.dot_general(
            left, right.values, (contracted, batched), precision=eqn.params["precision"]
        )
    ]


RULES: dict[str, Callable[..., Any]] = {
    "slice": _slice,
    "concatenate": _concatenate,
    "stack": _stack,
    "unstack": _unstack,
    "split": _split,
    "broadcast_in_dim": _broadcast_in_dim,
    "reshape": _reshape,
    "squeeze": _squeeze,
    "transpose": _transpose,
    "rev": _rev,
    "pad": _pad,
    "reduce_sum": _reduce_sum,
    "short_sum": short_sums,
    "gather": _gather,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "dot_general": _dot_general,
}
ELEMENTWISE = frozenset(
    "abs acos add add_any and asin atan atan2 ceil convert_element_type cos cosh div eq exp floor "
    "ge gt integer_pow is_finite le log lt max min mul ne neg not or pow rem round rsqrt select_n "
    "sign sin sinh sqrt square stop_gradient sub tan tanh".split()
)
