"""What runs that are computed at the same time have in common.

A run's record has a row for each attempt of a step. Runs of a batch by XLA, and those in the lanes
of a native kernel, attempt their steps at the same time. If all of them read their records from the
row on where the longest one ends, they read the same row at the same time: one vector, where it
would be one number of each run after another.
"""

import jax.numpy as jnp
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir
from jaxtyping import Array, Int

_p = Primitive("lockstep_max")


def lockstep_max(count: Int[Array, ""]) -> Int[Array, ""]:
    """The largest count of the runs that are computed at the same time, its own at least."""
    return _p.bind(count)


def _batched(counts, axes):
    return _p.bind(jnp.max(counts[0], axes[0])), None


_p.def_impl(lambda count: count)
_p.def_abstract_eval(lambda count: ShapedArray(count.shape, count.dtype))
batching.primitive_batchers[_p] = _batched
mlir.register_lowering(_p, lambda _, count: [count])
