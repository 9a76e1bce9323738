"""Loops over the entries of arrays in memory: as few and as long ones as their strides allow."""

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir

from ..values.builder import I64, Value, int64
from ..values.complex import DType, LaneValue, is_complex
from ..values.lanes import I1, POINTER
from ..values.memory import ArrayView, EmittedArray, Index

if TYPE_CHECKING:
    from .emitter import Emitter

# Number of terms up to which a sum is unrolled.
_UNROLLED_TERMS = 32
# Number of longer sums that are accumulated concurrently.
_PARALLEL_SUMS = 8


def merge_axes(views: list[ArrayView]) -> list[ArrayView]:
    """Merge neighbouring axes that are contiguous in all views, which have the same shape."""
    shape: list[int] = []
    strides: list[list[int]] = [[] for _ in views]
    for n, *steps in zip(views[0].shape, *(v.strides for v in views), strict=True):
        if n == 1:
            continue
        is_contiguous = shape and all(
            s[-1] == n * step for s, step in zip(strides, steps, strict=True)
        )
        if is_contiguous:
            shape[-1] *= n
            for merged_strides, step in zip(strides, steps, strict=True):
                merged_strides[-1] = step
        else:
            shape.append(n)
            for merged_strides, step in zip(strides, steps, strict=True):
                merged_strides.append(step)
    return [
        ArrayView(v.buffer, tuple(shape), tuple(merged_strides), v.offset)
        for v, merged_strides in zip(views, strides, strict=True)
    ]


def broadcast_view(
    em: "Emitter", x: EmittedArray, shape: tuple[int, ...], dtype: DType
) -> ArrayView:
    """Broadcast an array to a shape as a view of memory with strides of 0."""
    x = em.to_memory(x, dtype)
    leading = (0,) * (len(shape) - x.ndim)
    strides = (0 if n == 1 else stride for n, stride in zip(x.shape, x.strides, strict=True))
    return ArrayView(x.buffer, shape, (*leading, *strides), x.offset)


def permute_axes(x: ArrayView, order: list[int]) -> ArrayView:
    """Return a view with permuted axes."""
    shape, strides = (tuple(y[k] for k in order) for y in (x.shape, x.strides))
    return ArrayView(x.buffer, shape, strides, x.offset)


def can_vectorise_rows(em: "Emitter", target: ArrayView, sources: list[ArrayView]) -> bool:
    """Return whether vectors along the last axis can be used: the kernel has one lane, and the
    elements along this axis are contiguous."""
    if em.vectors.width == 1 or not target.shape or target.shape[-1] < em.vectors.width:
        return False
    in_order = target.strides[-1] == 1 and all(x.strides[-1] in (0, 1) for x in sources)
    return in_order and not any(is_complex(x.buffer.dtype) for x in (target, *sources))


@contextlib.contextmanager
def loop_over_row_vectors(em: "Emitter", length: int) -> Iterator[Value]:
    """Loop over a row in steps of a vector; yield the start of each. The last two may overlap."""
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
    """Emit a loop over `range(first, last, step)`; yield the index."""
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
    """Emit `function(first, size)` for blocks of `size` indices, and once for the remainder."""
    num_blocks, remainder = divmod(count, size)
    if num_blocks:
        with em.loop(num_blocks) as block:
            function(em.builder.mul(block, int64(size)), size)
    if remainder:
        function(int64(num_blocks * size), remainder)


def copy(em: "Emitter", x: ArrayView, out: ArrayView, mask: LaneValue | None) -> None:
    """Copy an array in memory into another one, in the lanes of `mask`."""
    x, out = merge_axes([x, out])
    row_length = x.shape[-1] if x.shape else 1
    is_contiguous = all(v.strides[-1:] in ((), (1,)) and v.buffer.pitch == 1 for v in (x, out))
    if (
        mask is None
        and is_contiguous
        and row_length > 1
        and not x.buffer.shared
        and not out.buffer.shared
    ):
        size = row_length * em.lanes.width * x.buffer.dtype.itemsize
        rows = [ArrayView(v.buffer, v.shape[:-1], v.strides[:-1], v.offset) for v in (x, out)]
        with em.loop_nest(rows[0].shape) as index:
            source, target = (em.memory.element_address(v, index) for v in rows)
            _memcpy(em, target, source, size)
        return
    with em.loop_nest(x.shape) as index:
        em.memory.write(out, index, em.memory.read(x, index), mask)


def _memcpy(em: "Emitter", target: Value, source: Value, size: int):
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
    """Reduce over all indices of a shape: return the result of `step(total, index)` for the last.

    **Arguments:** `start`, the initial total.
    """
    return _accumulate_all(em, shape, dtype, [start], lambda x, index: [step(x[0], index)])[0]


def _accumulate_all(
    em: "Emitter",
    shape: tuple[int, ...],
    dtype: DType,
    start: list[Any],
    step: Callable[[list[Any], Index], list[Any]],
) -> list[Any]:
    """Reduce with a list of totals."""
    if math.prod(shape) <= _UNROLLED_TERMS:
        for index in np.ndindex(shape):
            start = step(start, index)
        return start
    before = em.builder.block
    with em.loop(shape[0]) as k:
        totals = [em.lanes.phi(dtype) for _ in start]
        for total, first in zip(totals, start, strict=True):
            em.lanes.add_incoming(dtype, total, first, before)
        results = _accumulate_all(em, shape[1:], dtype, totals, lambda x, rest: step(x, (k, *rest)))
        for total, value in zip(totals, results, strict=True):
            em.lanes.add_incoming(dtype, total, value, em.builder.block)
    return results


def sum_of_products(em: "Emitter", factors: list[ArrayView], dtype: DType, count: int) -> ArrayView:
    """Sum products of arrays of one shape over the last `count` axes.

    Long sums are accumulated several at a time, because the additions of one sum are sequential.
    """
    shape = factors[0].shape
    shape_out, summed_shape = shape[: len(shape) - count], shape[len(shape) - count :]
    out = em.memory.allocate(shape_out, dtype)
    target = ArrayView(out.buffer, shape_out, out.strides, out.offset)
    heads = [ArrayView(f.buffer, shape_out, f.strides[: len(shape_out)], f.offset) for f in factors]
    target, *heads = merge_axes([target, *heads])

    def compute(indices: list[Index], along_row: bool = False) -> None:
        """Sum for indices that differ in the last one, or for vectors that start there."""
        rows, is_broadcast = [], []
        for factor, head in zip(factors, heads, strict=True):
            is_broadcast.append(not head.shape or head.strides[-1] == 0)
            factor_indices = indices[:1] if is_broadcast[-1] else indices
            offsets = (em.memory.flat_index(head, index) for index in factor_indices)
            strides = factor.strides[len(shape_out) :]
            rows.append(
                [ArrayView(factor.buffer, summed_shape, strides, offset) for offset in offsets]
            )

        def step(totals, index):
            values = []
            for factor_rows, broadcast in zip(rows, is_broadcast, strict=True):
                read = functools.partial(em.vectors.read, broadcast=broadcast)
                read = read if along_row else em.memory.read
                values.append([read(row, index) for row in factor_rows])
            products = []
            for k in range(len(totals)):
                operands = (
                    factor_values[k] if len(factor_values) > 1 else factor_values[0]
                    for factor_values in values
                )
                products.append(functools.reduce(functools.partial(em.lanes.mul, dtype), operands))
            return [
                em.lanes.add(dtype, total, product)
                for total, product in zip(totals, products, strict=True)
            ]

        start = [np.dtype(dtype).type(0)] * len(indices)
        write = em.vectors.write if along_row else em.memory.write
        for index, total in zip(
            indices, _accumulate_all(em, summed_shape, dtype, start, step), strict=True
        ):
            write(target, index, total)

    last = target.shape[-1] if target.shape else 1
    if can_vectorise_rows(em, target, heads):
        _vectorise_row_pairs(em, target.shape, lambda indices: compute(indices, along_row=True))
        return out
    if math.prod(summed_shape) <= _UNROLLED_TERMS or last == 1:
        with em.loop_nest(target.shape) as index:
            compute([index])
        return out
    with em.loop_nest(target.shape[:-1]) as index:
        if last >= _PARALLEL_SUMS:
            with em.loop(last // _PARALLEL_SUMS) as block:
                first = em.builder.mul(block, int64(_PARALLEL_SUMS))
                indices = (em.builder.add(first, int64(k)) for k in range(_PARALLEL_SUMS))
                compute([(*index, last_index) for last_index in indices])
        remaining = range(last - last % _PARALLEL_SUMS, last)
        if remaining:
            compute([(*index, last_index) for last_index in remaining])
    return out


def _vectorise_row_pairs(
    em: "Emitter", shape: tuple[int, ...], compute: Callable[[list[Index]], None]
):
    """Call `compute(indices)` for two vectors of a row at a time; the last ones may overlap."""
    width, length = em.vectors.width, shape[-1]
    pairs, remainder = divmod(length, 2 * width)
    with em.loop_nest(shape[:-1]) as index:
        if pairs:
            with em.loop(pairs) as pair, em.vectors.along_row():
                first = em.builder.mul(pair, int64(2 * width))
                starts = first, em.builder.add(first, int64(width))
                compute([(*index, start) for start in starts])
        if remainder:
            starts = [length - remainder, length - width] if remainder > width else [length - width]
            with em.vectors.along_row():
                compute([(*index, start) for start in starts])
