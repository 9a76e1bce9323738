"""Averages over an ensemble as functions to differentiate and to minimise."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ..results import failures_as_nan


def mean(function: Callable[[Any], Any], parameters: Any, *, batch: int = 256) -> Any:
    """The mean of `function(p)` over all members, chunk by chunk.

    A JAX function: differentiate what `function` closes over with `jax.grad`, in `jax.jit`. Reverse
    mode computes each chunk again, so that memory is that of one chunk whatever the number of
    members. As in `rj.ensemble` a run that fails does not raise: the mean is NaN then.

    **Arguments:** `function` of one member's parameters to a pytree of arrays; `parameters`, a
    pytree with N members in front; `batch`, members of a chunk.
    **Returns:** the pytree of means.
    **Raises:** `ValueError` for parameters without members, or of unequal numbers, or for `batch`.
    """
    counts = {leaf.shape[:1] for leaf in map(jnp.asarray, jax.tree.leaves(parameters))}
    if len(counts) != 1 or counts <= {(), (0,)}:
        raise ValueError(
            "`mean(parameters=...)` takes arrays with the members in front, as many of each; got "
            f"leading axes {sorted(counts)}."
        )
    if batch < 1:
        raise ValueError(f"`mean(batch=...)` must be positive; got {batch}.")
    ((count,),) = counts
    size = min(batch, count)
    whole = count // size * size

    @jax.checkpoint
    def total(chunk):
        return jax.tree.map(lambda x: jnp.sum(x, axis=0), jax.vmap(function)(chunk))

    def add(sums, chunk):
        return jax.tree.map(jnp.add, sums, total(chunk)), None

    chunks = jax.tree.map(
        lambda x: jnp.asarray(x)[:whole].reshape(-1, size, *jnp.shape(x)[1:]), parameters
    )
    first = jax.tree.map(lambda x: x[0], chunks)
    with failures_as_nan(True):
        shapes = jax.eval_shape(total, first)
        sums = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
        sums, _ = jax.lax.scan(add, sums, chunks)
        if whole < count:
            rest = jax.tree.map(lambda x: jnp.asarray(x)[whole:], parameters)
            sums = jax.tree.map(jnp.add, sums, total(rest))
    return jax.tree.map(lambda x: x / count, sums)
