"""Loops over the entries of arrays in memory: as few and as long ones as their strides allow."""

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir

from .builder import I64, Value, int64
from .complex import DType, LaneValue, is_complex
from .lanes import I1, POINTER
from .memory import ArrayView, EmittedArray, Index

if TYPE_CHECKING:
    from .emitter import Emitter

# Terms of a sum up to which it is written out.
_UNROLLED_TERMS = 32
# Sums of more terms that are computed at the same time.
_PARALLEL_SUMS = 8


def merge_axes(views: list[ArrayView]) -> list[ArrayView]:
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
        ArrayView(v.buffer, tuple(shape), tuple(own), v.offset)
        for v, own in zip(views, strides, strict=True)
    ]


def broadcast_view(
    em: "Emitter", x: EmittedArray, shape: tuple[int, ...], dtype: DType
) -> ArrayView:
    """An array in memory, repeated along the axes that it does not have or has one entry of."""
    x = em.to_memory(x, dtype)
    missing = (0,) * (len(shape) - x.ndim)
    own = (0 if n == 1 else stride for n, stride in zip(x.shape, x.strides, strict=True))
    return ArrayView(x.buffer, shape, (*missing, *own), x.offset)


def permute_axes(x: ArrayView, order: list[int]) -> ArrayView:
    """A view with its axes in another order."""
    shape, strides = (tuple(y[k] for k in order) for y in (x.shape, x.strides))
    return ArrayView(x.buffer, shape, strides, x.offset)


def can_vectorise_rows(em: "Emitter", target: ArrayView, sources: list[ArrayView]) -> bool:
    """Whether several numbers of the last axis can be computed at once: there is one lane, and
    they lie one behind the other."""
    if em.vectors.width == 1 or not target.shape or target.shape[-1] < em.vectors.width:
        return False
    in_order = target.strides[-1] == 1 and all(x.strides[-1] in (0, 1) for x in sources)
    return in_order and not any(is_complex(x.buffer.dtype) for x in (target, *sources))


@contextlib.contextmanager
def loop_over_row_vectors(em: "Emitter", length: int) -> Iterator[Value]:
    """Where parts of a row begin, of numbers in the place of lanes; the last two may overlap."""
    build, width = em.builder, em.vectors.width
    with contextlib.ExitStack() as stack:
        first = int64(0)
        if length > width:
            first = build.mul(stack.enter_context(em.loop(-(-length // width))), int64(width))
        if length % width:
            last = int64(length - width)
            first = build.select(build.icmp_signed("<", first, last), first, last)
        with em.vectors.along_row():
            yield first


@contextlib.contextmanager
def loop_range(
    em: "Emitter", first: Value, last: Value, step: int = 1, at_least_once: bool = False
) -> Iterator[Value]:
    """A loop from `first` to below `last`, which may be none; gives the number."""
    build = em.builder
    before = build.block
    body, after = (build.append_basic_block(name) for name in ("body", "after"))
    if at_least_once:
        build.branch(body)
        build.position_at_end(body)
        k = build.phi(I64)
        k.add_incoming(first, before)
        yield k
        following = build.add(k, int64(step))
        k.add_incoming(following, build.block)
        build.cbranch(build.icmp_signed("<", following, last), body, after)
        build.position_at_end(after)
        return
    head = build.append_basic_block("head")
    build.branch(head)
    build.position_at_end(head)
    k = build.phi(I64)
    k.add_incoming(first, before)
    build.cbranch(build.icmp_signed("<", k, last), body, after)
    build.position_at_end(body)
    yield k
    k.add_incoming(build.add(k, int64(step)), build.block)
    build.branch(head)
    build.position_at_end(after)


def loop_blocks(
    em: "Emitter", count: int, size: int, function: Callable[[Value, int], None]
) -> None:
    """`function(first, size)` of so many in turn, and of those that are left at the end."""
    whole, left = divmod(count, size)
    if whole:
        with em.loop(whole) as turn:
            function(em.builder.mul(turn, int64(size)), size)
    if left:
        function(int64(whole * size), left)


def copy(em: "Emitter", x: ArrayView, out: ArrayView, mask: LaneValue | None) -> None:
    """Copy an array in memory to another place, in the lanes of `mask`."""
    x, out = merge_axes([x, out])
    row = x.shape[-1] if x.shape else 1
    ordered = all(v.strides[-1:] in ((), (1,)) and v.buffer.pitch == 1 for v in (x, out))
    if mask is None and ordered and row > 1 and not x.buffer.shared and not out.buffer.shared:
        size = row * em.lanes.width * x.buffer.dtype.itemsize
        heads = [ArrayView(v.buffer, v.shape[:-1], v.strides[:-1], v.offset) for v in (x, out)]
        with em.loop_nest(heads[0].shape) as index:
            source, target = (em.memory.element_address(v, index) for v in heads)
            _memcpy(em, target, source, size)
        return
    with em.loop_nest(x.shape) as index:
        em.memory.write(out, index, em.memory.read(x, index), mask)


def _memcpy(em, target, source, size):
    name, module = "llvm.memcpy.p0.p0.i64", em.builder.module
    kind = ir.FunctionType(ir.VoidType(), [POINTER, POINTER, I64, I1])
    function = module.globals.get(name) or ir.Function(module, kind, name)
    em.builder.call(function, [target, source, int64(size), ir.Constant(I1, 0)])


def accumulate(
    em: "Emitter",
    shape: tuple[int, ...],
    dtype: DType,
    start: Any,
    step: Callable[[Any, Index], Any],
) -> Any:
    """A number that `step(number, index)` changes, for all indices of a shape in turn."""
    return _accumulate_all(em, shape, dtype, [start], lambda x, index: [step(x[0], index)])[0]


def _accumulate_all(em, shape, dtype, start, step):
    """The same for several numbers, in lists."""
    if math.prod(shape) <= _UNROLLED_TERMS:
        for index in np.ndindex(shape):
            start = step(start, index)
        return start
    before = em.builder.block
    with em.loop(shape[0]) as k:
        totals = [em.lanes.phi(dtype) for _ in start]
        for total, first in zip(totals, start, strict=True):
            em.lanes.add_incoming(dtype, total, first, before)
        new = _accumulate_all(em, shape[1:], dtype, totals, lambda x, rest: step(x, (k, *rest)))
        for total, one in zip(totals, new, strict=True):
            em.lanes.add_incoming(dtype, total, one, em.builder.block)
    return new


def sum_of_products(em: "Emitter", factors: list[ArrayView], dtype: DType, count: int) -> ArrayView:
    """Products of arrays of one shape, summed over the last `count` axes.

    Long sums are computed several at a time: each waits for its own last addition.
    """
    shape = factors[0].shape
    rest, along = shape[: len(shape) - count], shape[len(shape) - count :]
    out = em.memory.allocate(rest, dtype)
    target = ArrayView(out.buffer, rest, out.strides, out.offset)
    heads = [ArrayView(f.buffer, rest, f.strides[: len(rest)], f.offset) for f in factors]
    target, *heads = merge_axes([target, *heads])

    def compute(places: list[Index], in_rows: bool = False) -> None:
        """The sums at some places, which differ in their last index; or the rows from there on."""
        rows, same = [], []
        for factor, head in zip(factors, heads, strict=True):
            same.append(not head.shape or head.strides[-1] == 0)
            of = places[:1] if same[-1] else places
            offsets = (em.memory.flat_index(head, place) for place in of)
            steps = factor.strides[len(rest) :]
            rows.append([ArrayView(factor.buffer, along, steps, offset) for offset in offsets])

        def step(totals, turn):
            numbers = []
            for of, repeated in zip(rows, same, strict=True):
                read = functools.partial(em.vectors.read, repeated=repeated)
                read = read if in_rows else em.memory.read
                numbers.append([read(row, turn) for row in of])
            products = []
            for k in range(len(totals)):
                own = (of[k] if len(of) > 1 else of[0] for of in numbers)
                products.append(functools.reduce(functools.partial(em.lanes.mul, dtype), own))
            return [
                em.lanes.add(dtype, total, one) for total, one in zip(totals, products, strict=True)
            ]

        start = [np.dtype(dtype).type(0)] * len(places)
        write = em.vectors.write if in_rows else em.memory.write
        for place, total in zip(
            places, _accumulate_all(em, along, dtype, start, step), strict=True
        ):
            write(target, place, total)

    last = target.shape[-1] if target.shape else 1
    if can_vectorise_rows(em, target, heads):
        _vectorise_row_pairs(em, target.shape, lambda places: compute(places, in_rows=True))
        return out
    if math.prod(along) <= _UNROLLED_TERMS or last == 1:
        with em.loop_nest(target.shape) as index:
            compute([index])
        return out
    with em.loop_nest(target.shape[:-1]) as index:
        if last >= _PARALLEL_SUMS:
            with em.loop(last // _PARALLEL_SUMS) as block:
                first = em.builder.mul(block, int64(_PARALLEL_SUMS))
                places = (em.builder.add(first, int64(k)) for k in range(_PARALLEL_SUMS))
                compute([(*index, place) for place in places])
        left = range(last - last % _PARALLEL_SUMS, last)
        if left:
            compute([(*index, place) for place in left])
    return out


def _vectorise_row_pairs(em, shape, compute):
    """`compute(places)` of two parts of rows at once; the last ones may overlap."""
    width, length = em.vectors.width, shape[-1]
    pairs, left = divmod(length, 2 * width)
    with em.loop_nest(shape[:-1]) as index:
        if pairs:
            with em.loop(pairs) as turn, em.vectors.along_row():
                first = em.builder.mul(turn, int64(2 * width))
                both = first, em.builder.add(first, int64(width))
                compute([(*index, place) for place in both])
        if left:
            starts = [length - left, length - width] if left > width else [length - width]
            with em.vectors.along_row():
                compute([(*index, place) for place in starts])
