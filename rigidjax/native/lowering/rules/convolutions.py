"""Convolutions, and sums and extrema over sliding windows."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..expansions import expansion
from ..registry import NoRule


def _extract_windows(
    x: Array, first: int, sizes: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
):
    """Return the windows along the axes from `first` on; the axes of a window come last."""
    count = x.ndim - first
    for k in range(count):
        window_extent = dilations[k] * (sizes[k] - 1)
        starts = np.arange(max(0, (x.shape[first + k] - window_extent - 1) // strides[k] + 1))
        indices = starts[:, None] * strides[k] + dilations[k] * np.arange(sizes[k])
        x = jnp.moveaxis(jnp.take(x, indices, axis=first + k, mode="clip"), first + k + 1, -1)
    return x


@expansion("conv_general_dilated")
def _convolution(
    x: Array,
    kernel: Array,
    *,
    window_strides: Any,
    padding: Any,
    lhs_dilation: Any,
    rhs_dilation: Any,
    dimension_numbers: Any,
    feature_group_count: Any,
    batch_group_count: Any,
    preferred_element_type: Any,
    **_: Any,
):
    if batch_group_count != 1:
        raise NoRule("`conv_general_dilated` with `batch_group_count`")
    lhs_axes, rhs_axes, out_axes = (tuple(spec) for spec in dimension_numbers)
    x, kernel = x.transpose(lhs_axes), kernel.transpose(rhs_axes)
    config = [(low, high, n - 1) for (low, high), n in zip(padding, lhs_dilation, strict=True)]
    x = jax.lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), (0, 0, 0), *config])
    windows = _extract_windows(x, 2, kernel.shape[2:], window_strides, rhs_dilation)
    out_shape, size = windows.shape[2 : x.ndim], math.prod(kernel.shape[2:])
    groups, channels = feature_group_count, x.shape[1] // feature_group_count
    windows = windows.reshape(len(x), groups, channels, math.prod(out_shape), size)
    kernel = kernel.reshape(groups, -1, channels, size)
    dtype = preferred_element_type or x.dtype
    out = jnp.einsum("bgcps,gocs->bgop", windows.astype(dtype), kernel.astype(dtype))
    return out.reshape(len(x), -1, *out_shape).transpose(np.argsort(out_axes))


def _register_window_reduction(
    name: str, reduce: Callable[..., Array], start: Callable[[np.dtype], Any]
):
    @expansion(name)
    def reduce_windows(
        x, *, window_dimensions, window_strides, padding, base_dilation, window_dilation
    ):
        initial = start(x.dtype)
        config = [(low, high, n - 1) for (low, high), n in zip(padding, base_dilation, strict=True)]
        x = jax.lax.pad(x, jnp.asarray(initial, x.dtype), config)
        windows = _extract_windows(x, 0, window_dimensions, window_strides, window_dilation)
        return reduce(windows, range(x.ndim, 2 * x.ndim))

    return reduce_windows


def _lowest(dtype: np.dtype):
    if jnp.issubdtype(dtype, jnp.bool_):
        return False
    return -jnp.inf if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo(dtype).min


def _highest(dtype: np.dtype):
    if jnp.issubdtype(dtype, jnp.bool_):
        return True
    return jnp.inf if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo(dtype).max


_register_window_reduction("reduce_window_sum", jax.lax.reduce_sum, lambda dtype: 0)
_register_window_reduction("reduce_window_max", jax.lax.reduce_max, _lowest)
_register_window_reduction("reduce_window_min", jax.lax.reduce_min, _highest)
