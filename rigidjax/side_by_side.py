r"""Batches of systems side by side: the batch axis last, in blocks that stay in the cache.

`jax.vmap` puts the batch axis in front. Small vectors and matrices then are the inner loops, which
a CPU does one number at a time, and every intermediate result of a large batch goes out to memory.
Here the axis is behind all others, so that eight systems are one instruction, and a block of
systems is finished before the next one begins. 1,024 chains of 32 bodies take a fifth of the time.
"""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jax.extend.core import jaxpr_as_fun

from .batch_last import First, evaluate
from .checks import is_traced

# Systems in a block, and in a batch from which on blocks are made of it.
_BLOCK = 128
_FEWEST = 8


def side_by_side(alone: Callable[..., Any], together: Callable[..., Any]) -> Callable[..., Any]:
    """`alone(*args)`; batches of it on the CPU by `together`, which must give the same.

    Derivatives are those of `alone`, whose batches `jax.vmap` makes as usual. A function that
    closes over traced values is taken as it is.

    **Arguments:** functions of pytrees, such as modules.
    """

    def apply(*args):
        arrays, rest = eqx.partition(args, eqx.is_array)
        leaves, tree = jax.tree.flatten(arrays)

        def flat(function):
            return lambda *leaves: function(*eqx.combine(tree.unflatten(leaves), rest))

        closed, shape = jax.make_jaxpr(flat(alone), return_shape=True)(*leaves)
        if is_traced(closed.consts):
            return alone(*args)
        out = _batched(closed, flat(together))(*leaves)
        return jax.tree.unflatten(jax.tree.structure(shape), out)

    return apply


def _batched(closed, together):
    """The function of a closed jaxpr, with the rule for batches."""

    alone = jaxpr_as_fun(closed)
    mapped = custom_vmap(alone)

    @mapped.def_vmap
    def _(axis_size, in_batched, *leaves):
        axes = [0 if batched else None for batched in in_batched]
        at_once = jax.vmap(alone, in_axes=axes, axis_size=axis_size)
        real = [
            many and leaf.size > 0 and jnp.issubdtype(leaf.dtype, jnp.floating)
            for leaf, many in zip(leaves, in_batched, strict=True)
        ]
        if axis_size < _FEWEST or not any(real):
            return at_once(*leaves), [True] * len(closed.out_avals)
        blocks = functools.partial(_in_blocks, together, axis_size, in_batched)
        out = jax.lax.platform_dependent(*leaves, cpu=blocks, default=at_once)
        return out, [True] * len(closed.out_avals)

    differentiable = jax.custom_jvp(lambda *leaves: mapped(*leaves))
    differentiable.defjvp(lambda primals, tangents: jax.jvp(alone, primals, tangents))
    return differentiable


def _in_blocks(function, count: int, batched, *leaves):
    """The function over the first axis of batched leaves, a block after another."""
    number = -(-count // _BLOCK)
    size = -(-count // number)
    single = [
        jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype) if many else leaf
        for leaf, many in zip(leaves, batched, strict=True)
    ]
    jaxpr = jax.make_jaxpr(lambda *leaves: jax.tree.leaves(function(*leaves)))(*single)

    def block(parts):
        rest = iter(parts)
        values = [
            First(next(rest)) if many else leaf for leaf, many in zip(leaves, batched, strict=True)
        ]
        return evaluate(jaxpr, values, size)

    moving = [leaf for leaf, many in zip(leaves, batched, strict=True) if many]
    if number == 1:
        return block(moving)
    # The last block repeats the last system.
    short = number * size - count
    moving = [jnp.concatenate([leaf, *[leaf[-1:]] * short]) for leaf in moving]
    moving = [leaf.reshape(number, size, *leaf.shape[1:]) for leaf in moving]
    out = jax.lax.map(block, moving)
    return [part.reshape(number * size, *part.shape[2:])[:count] for part in out]
