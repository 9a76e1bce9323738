"""Vectorised loops: in a kernel of one lane, independent iterations become lanes.

Values that do not depend on the iteration are uniform, as in a batch. The columns of a Jacobian,
for example, are computed in parallel.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr

from ...values.builder import Value, int64
from ...values.lanes import is_constant
from ...values.memory import ArrayView, EmittedArray
from ..emitter import Emitter
from ..uniformity import broadcast_to_lanes, share_buffer
from .indexing import flat_index_per_lane


def map_over_lanes(
    em: Emitter, body: ClosedJaxpr, length: int, consts: list[EmittedArray], xs: list[ArrayView]
) -> list[EmittedArray]:
    """Return the results of `body(*consts, *(x[k] for x in xs))` for all k, stacked."""
    outs = [em.memory.allocate((length, *a.shape), a.dtype) for a in body.out_avals]
    for out in outs:
        out.buffer.pin_count += 1
    register_limits = em.find_register_limits(body.jaxpr, [*consts, *(None for _ in xs)])[
        len(consts) :
    ]
    with em.keep_alive([*consts, *xs]):
        with em.vectors.as_lanes():
            uniform_consts = [broadcast_to_lanes(em, x) for x in consts]
        width = em.vectors.width
        with em.loop(-(-length // width)) as block, em.vectors.as_lanes():
            first_index = em.lanes.splat(em.builder.mul(block, int64(width)))
            indices = em.lanes.add(np.int64, first_index, em.lanes.lane_indices())
            # Surplus lanes repeat the last iteration.
            indices = em.lanes.min(np.int64, indices, np.int64(length - 1))
            slices = [
                _load_slices(em, x, indices, register_limit)
                for x, register_limit in zip(xs, register_limits, strict=True)
            ]
            for out, result in zip(outs, em.emit(body, uniform_consts + slices), strict=True):
                _store_slices(em, out, indices, result)
    for out in outs:
        out.buffer.pin_count -= 1
    return [em.load_if_small(out) for out in outs]


def _load_slices(em: Emitter, x: ArrayView, indices: Value, register_limit: int):
    """Load the slice of each lane's iteration, into registers up to a size of `register_limit`."""
    shape, source = x.shape[1:], share_buffer(x)

    def read(index):
        return em.memory.gather(source, _flat_indices(em, source, indices, index))

    if source.size // source.shape[0] <= register_limit:
        out = np.empty(shape, object)
        for index in np.ndindex(shape):
            out[index] = read(index)
        return out
    out = em.memory.allocate(shape, x.buffer.dtype)
    with em.loop_nest(shape) as index:
        em.memory.write(out, index, read(index))
    return out


def _store_slices(em: Emitter, out: ArrayView, indices: Value, result: EmittedArray):
    """Store the results of each lane's iteration."""
    target = share_buffer(out)

    def write(index, value):
        em.memory.scatter(target, _flat_indices(em, target, indices, index), value, None)

    if isinstance(result, ArrayView):
        with em.loop_nest(result.shape) as index:
            write(index, em.memory.read(result, index))
    else:
        for index in np.ndindex(result.shape):
            write(index, result[index])


def _flat_indices(em: Emitter, x: Any, indices: Value, index: Sequence[Any]):
    """Return the flat index of the element `index` in the slice of each lane."""
    index_in_lanes = (np.int64(i) if is_constant(i) else em.lanes.splat(i) for i in index)
    return em.lanes.value(flat_index_per_lane(em, x, (indices, *index_in_lanes)), np.int64)
