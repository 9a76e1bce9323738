"""Turns of a loop that do not depend on each other, several at once in a kernel of one lane.

They take the place of lanes, as members of a batch do: what all turns have in common is one number
for all lanes. A Jacobian, column after column, takes a fraction of the time.
"""

import numpy as np
from jax.extend.core import ClosedJaxpr

from ...passes.uniformity import broadcast_to_lanes, share_buffer
from ..builder import int64
from ..emitter import Emitter
from ..lanes import is_constant
from ..memory import ArrayView, EmittedArray
from .indexing import flat_index_per_lane


def in_lanes(
    em: Emitter, body: ClosedJaxpr, length: int, consts: list[EmittedArray], xs: list[ArrayView]
) -> list[EmittedArray]:
    """Results of `body(*consts, *(x[k] for x in xs))` for all k, stacked."""
    outs = [em.memory.allocate((length, *a.shape), a.dtype) for a in body.out_avals]
    for out in outs:
        out.buffer.pin_count += 1
    limits = em.find_register_limits(body.jaxpr, [*consts, *(None for _ in xs)])[len(consts) :]
    with em.keep_alive([*consts, *xs]):
        with em.vectors.as_lanes():
            common = [broadcast_to_lanes(em, x) for x in consts]
        width = em.vectors.width
        with em.loop(-(-length // width)) as block, em.vectors.as_lanes():
            first = em.lanes.splat(em.builder.mul(block, int64(width)))
            turns = em.lanes.add(np.int64, first, em.lanes.lane_indices())
            # Lanes of which there are no more turns do the last one again.
            turns = em.lanes.min(np.int64, turns, np.int64(length - 1))
            now = [_taken(em, x, turns, limit) for x, limit in zip(xs, limits, strict=True)]
            for out, result in zip(outs, em.emit(body, common + now), strict=True):
                _store(em, out, turns, result)
    for out in outs:
        out.buffer.pin_count -= 1
    return [em.load_if_small(out) for out in outs]


def _taken(em, x, turns, limit):
    """The entries of each lane's turn, in registers up to `limit` of them."""
    shape, source = x.shape[1:], share_buffer(x)

    def read(index):
        return em.memory.gather(source, _places(em, source, turns, index))

    if source.size // source.shape[0] <= limit:
        out = np.empty(shape, object)
        for index in np.ndindex(shape):
            out[index] = read(index)
        return out
    out = em.memory.allocate(shape, x.buffer.dtype)
    with em.loop_nest(shape) as index:
        em.memory.write(out, index, read(index))
    return out


def _store(em, out, turns, result):
    """Set the entries of each lane's turn."""
    target = share_buffer(out)

    def write(index, value):
        em.memory.scatter(target, _places(em, target, turns, index), value, None)

    if isinstance(result, ArrayView):
        with em.loop_nest(result.shape) as index:
            write(index, em.memory.read(result, index))
    else:
        for index in np.ndindex(result.shape):
            write(index, result[index])


def _places(em, x, turns, index):
    """Where the entry `index` of each lane's turn is."""
    same = (np.int64(i) if is_constant(i) else em.lanes.splat(i) for i in index)
    return em.lanes.value(flat_index_per_lane(em, x, (turns, *same)), np.int64)
