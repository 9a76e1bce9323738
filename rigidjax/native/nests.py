"""Loops over the entries of arrays in memory: as few and as long ones as their strides allow."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir

from .builder import I64, int64
from .complex import DType, Number
from .lanes import I1, POINTER
from .memory import Held, Index, View

if TYPE_CHECKING:
    from .emitter import Emitter

# Terms of a sum up to which it is written out.
_TERMS = 32


def joined_axes(views: list[View]) -> list[View]:
    """Views of one shape with neighbouring axes made one, where that is possible in all of them."""
    shape: list[int] = []
    strides: list[list[int]] = [[] for _ in views]
    for n, *steps in zip(views[0].shape, *(v.strides for v in views), strict=True):
        if n == 1:
            continue
        joins = shape and all(s[-1] == n * step for s, step in zip(strides, steps, strict=True))
        if joins:
            shape[-1] *= n
            for own, step in zip(strides, steps, strict=True):
                own[-1] = step
        else:
            shape.append(n)
            for own, step in zip(strides, steps, strict=True):
                own.append(step)
    return [
        View(v.buffer, tuple(shape), tuple(own), v.offset)
        for v, own in zip(views, strides, strict=True)
    ]


def spread(em: "Emitter", x: Held, shape: tuple[int, ...], dtype: DType) -> View:
    """An array in memory, repeated along the axes that it does not have or has one entry of."""
    x = em.in_memory(x, dtype)
    missing = (0,) * (len(shape) - x.ndim)
    own = (0 if n == 1 else stride for n, stride in zip(x.shape, x.strides, strict=True))
    return View(x.buffer, shape, (*missing, *own), x.offset)


def reordered(x: View, order: list[int]) -> View:
    """A view with its axes in another order."""
    shape, strides = (tuple(y[k] for k in order) for y in (x.shape, x.strides))
    return View(x.buffer, shape, strides, x.offset)


def copy(em: "Emitter", x: View, out: View, mask: Number | None) -> None:
    """Copy an array in memory to another place, in the lanes of `mask`."""
    x, out = joined_axes([x, out])
    row = x.shape[-1] if x.shape else 1
    ordered = x.strides[-1:] in ((), (1,)) and out.strides[-1:] in ((), (1,))
    if mask is None and ordered and row > 1 and not x.buffer.shared and not out.buffer.shared:
        size = row * em.lanes.width * x.buffer.dtype.itemsize
        heads = [View(v.buffer, v.shape[:-1], v.strides[:-1], v.offset) for v in (x, out)]
        with em.indices(heads[0].shape) as index:
            source, target = (em.memory.address(v, index) for v in heads)
            _move(em, target, source, size)
        return
    with em.indices(x.shape) as index:
        em.memory.write(out, index, em.memory.read(x, index), mask)


def _move(em, target, source, size):
    name, module = "llvm.memcpy.p0.p0.i64", em.builder.module
    kind = ir.FunctionType(ir.VoidType(), [POINTER, POINTER, I64, I1])
    function = module.globals.get(name) or ir.Function(module, kind, name)
    em.builder.call(function, [target, source, int64(size), ir.Constant(I1, 0)])


def accumulated(
    em: "Emitter",
    shape: tuple[int, ...],
    dtype: DType,
    start: Any,
    step: Callable[[Any, Index], Any],
) -> Any:
    """A number that `step(number, index)` changes, for all indices of a shape in turn."""
    if math.prod(shape) <= _TERMS:
        for index in np.ndindex(shape):
            start = step(start, index)
        return start
    before = em.builder.block
    with em.loop(shape[0]) as k:
        total = em.lanes.phi(dtype)
        em.lanes.add_incoming(dtype, total, start, before)
        new = accumulated(em, shape[1:], dtype, total, lambda x, rest: step(x, (k, *rest)))
        em.lanes.add_incoming(dtype, total, new, em.builder.block)
    return new


def sum_of_products(em: "Emitter", factors: list[View], dtype: DType, count: int) -> View:
    """Products of arrays of one shape, summed over the last `count` axes."""
    shape = factors[0].shape
    rest, along = shape[: len(shape) - count], shape[len(shape) - count :]
    out = em.memory.allocate(rest, dtype)
    target = View(out.buffer, rest, out.strides, out.offset)
    lanes = em.lanes
    heads = [View(f.buffer, rest, f.strides[: len(rest)], f.offset) for f in factors]
    heads = joined_axes([target, *heads])
    with em.indices(heads[0].shape) as index:
        rows = [
            View(f.buffer, along, f.strides[len(rest) :], em.memory.position(head, index))
            for f, head in zip(factors, heads[1:], strict=True)
        ]

        def step(total, turn):
            product = em.memory.read(rows[0], turn)
            for row in rows[1:]:
                product = lanes.mul(dtype, product, em.memory.read(row, turn))
            return lanes.add(dtype, total, product)

        total = accumulated(em, along, dtype, np.dtype(dtype).type(0), step)
        em.memory.write(heads[0], index, total)
    return out
