"""Convolutions, and sums and extremes in a window that moves along an array."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from ..expansions import expansion
from ..registry import NoRule


def _windows(x, first, sizes, strides, dilations):
    """Parts of an array along its axes from `first` on, the axes of a part behind all others."""
    count = x.ndim - first
    for k in range(count):
        reach = dilations[k] * (sizes[k] - 1)
        starts = np.arange(max(0, (x.shape[first + k] - reach - 1) // strides[k] + 1))
        places = starts[:, None] * strides[k] + dilations[k] * np.arange(sizes[k])
        x = jnp.moveaxis(jnp.take(x, places, axis=first + k, mode="clip"), first + k + 1, -1)
    return x


@expansion("conv_general_dilated")
def _convolution(
    x, kernel, *, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers,
    feature_group_count, batch_group_count, preferred_element_type, **_,
):  # fmt: skip
    if batch_group_count != 1:
        raise NoRule("`conv_general_dilated` with `batch_group_count`")
    of_x, of_kernel, of_out = (tuple(spec) for spec in dimension_numbers)
    x, kernel = x.transpose(of_x), kernel.transpose(of_kernel)
    around = [(low, high, n - 1) for (low, high), n in zip(padding, lhs_dilation, strict=True)]
    x = jax.lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), (0, 0, 0), *around])
    parts = _windows(x, 2, kernel.shape[2:], window_strides, rhs_dilation)
    places, size = parts.shape[2 : x.ndim], math.prod(kernel.shape[2:])
    groups, along = feature_group_count, x.shape[1] // feature_group_count
    parts = parts.reshape(len(x), groups, along, math.prod(places), size)
    kernel = kernel.reshape(groups, -1, along, size)
    kind = preferred_element_type or x.dtype
    out = jnp.einsum("bgcps,gocs->bgop", parts.astype(kind), kernel.astype(kind))
    return out.reshape(len(x), -1, *places).transpose(np.argsort(of_out))


def _in_windows(name, reduce, start):
    @expansion(name)
    def of(x, *, window_dimensions, window_strides, padding, base_dilation, window_dilation):
        first = start(x.dtype)
        around = [(low, high, n - 1) for (low, high), n in zip(padding, base_dilation, strict=True)]
        x = jax.lax.pad(x, jnp.asarray(first, x.dtype), around)
        parts = _windows(x, 0, window_dimensions, window_strides, window_dilation)
        return reduce(parts, range(x.ndim, 2 * x.ndim))

    return of


def _lowest(dtype):
    if jnp.issubdtype(dtype, jnp.bool_):
        return False
    return -jnp.inf if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo(dtype).min


def _highest(dtype):
    if jnp.issubdtype(dtype, jnp.bool_):
        return True
    return jnp.inf if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo(dtype).max


_in_windows("reduce_window_sum", jax.lax.reduce_sum, lambda dtype: 0)
_in_windows("reduce_window_max", jax.lax.reduce_max, _lowest)
_in_windows("reduce_window_min", jax.lax.reduce_min, _highest)
