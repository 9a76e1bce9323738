"""Functions of arrays that NumPy evaluates where values are concrete."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .checks import as_leaf, is_traced


def evaluate(
    function: Callable[..., Any], *options: Any, is_linear: bool = False
) -> Callable[..., Any]:
    """Return a function of arrays: by NumPy where values are concrete, compiled elsewhere.

    **Arguments:** `function(*options, xp, *arrays)`, where `xp` is `numpy` or `jax.numpy`;
    `is_linear`, whether it is linear, which spares a compiled function.
    """

    def call(*arrays):
        if is_traced(arrays):
            return _differentiable(function, is_linear, *options)(*arrays)
        return function(*options, np, *arrays)

    return call


@functools.cache
def _differentiable(
    function: Callable[..., Any], is_linear: bool, *options: Any
) -> Callable[..., Any]:
    compiled = jax.jit(functools.partial(function, *options, jnp))

    @jax.custom_jvp
    def call(*arrays):
        if is_traced(arrays):
            return compiled(*arrays)
        return jax.tree.map(as_leaf, function(*options, np, *map(np.asarray, arrays)))

    def tangent(primals, tangents):
        if is_linear:
            return function(*options, jnp, *tangents)
        return jax.jvp(compiled, primals, tangents)[1]

    call.defjvp(lambda primals, tangents: (call(*primals), tangent(primals, tangents)))
    return call
