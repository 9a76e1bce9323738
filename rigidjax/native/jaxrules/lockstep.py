"""Maximum over all batch elements that execute in lockstep.

The step record of a run has one row for each attempted step. The runs of a batch, and those in the
lanes of a native kernel, attempt their steps at the same time. If all runs are replayed from the
end of the longest record, they read the same row at the same time, as one contiguous load instead
of one load for each run.
"""

from collections.abc import Sequence

import jax.numpy as jnp
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir
from jaxtyping import Array, Int

_p = Primitive("lockstep_max")


def lockstep_max(count: Int[Array, ""]) -> Int[Array, ""]:
    """Return the largest count of all batch elements that execute in lockstep with this one."""
    return _p.bind(count)


def _batch(counts: Sequence[Array], axes: Sequence[int]) -> tuple[Array, None]:
    return _p.bind(jnp.max(counts[0], axes[0])), None


_p.def_impl(lambda count: count)
_p.def_abstract_eval(lambda count: ShapedArray(count.shape, count.dtype))
batching.primitive_batchers[_p] = _batch
mlir.register_lowering(_p, lambda _, count: [count])
