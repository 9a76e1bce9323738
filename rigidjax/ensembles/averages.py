"""Differentiable averages over an ensemble."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ..results import failures_as_nan


def mean(function: Callable[[Any], Any], parameters: Any, *, batch: int = 256) -> Any:
    """Return the mean of `function(p)` over all members, computed chunk by chunk.

    The mean can be differentiated with `jax.grad` inside `jax.jit`, with respect to values in the
    closure of `function`. Reverse mode recomputes each chunk, so that memory does not grow with the
    number of members. As in `rj.ensemble`, a failed run does not raise; the mean is then NaN.

    **Arguments:** `function`, which maps the parameters of one member to a pytree of arrays;
    `parameters`, a pytree of arrays with a leading axis of N members; `batch`, the number of
    members in a chunk.
    **Returns:** the pytree of means.
    **Raises:** `ValueError` for parameters without members or with different leading axes, and if
    `batch` is not positive.
    """
    parameters = jax.tree.map(jnp.asarray, parameters)
    counts = {leaf.shape[:1] for leaf in jax.tree.leaves(parameters)}
    if len(counts) != 1 or counts <= {(), (0,)}:
        raise ValueError(
            "`mean(parameters=...)` takes arrays with one common leading axis of members; got "
            f"leading axes {sorted(counts)}."
        )
    if batch < 1:
        raise ValueError(f"`mean(batch=...)` must be positive; got {batch}.")
    ((count,),) = counts
    size = min(batch, count)
    in_full_chunks = count // size * size

    @jax.checkpoint
    def total(chunk):
        return jax.tree.map(lambda x: jnp.sum(x, axis=0), jax.vmap(function)(chunk))

    def add(sums, chunk):
        return jax.tree.map(jnp.add, sums, total(chunk)), None

    chunks = jax.tree.map(lambda x: x[:in_full_chunks].reshape(-1, size, *x.shape[1:]), parameters)
    with failures_as_nan(True):
        shapes = jax.eval_shape(total, jax.tree.map(lambda x: x[0], chunks))
        sums = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
        sums, _ = jax.lax.scan(add, sums, chunks)
        if in_full_chunks < count:
            rest = jax.tree.map(lambda x: x[in_full_chunks:], parameters)
            sums = jax.tree.map(jnp.add, sums, total(rest))
    return jax.tree.map(lambda x: x / count, sums)
