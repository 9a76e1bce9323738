"""Positive definite systems in memory by the LDL^T factorisation of the lower triangle.

It takes n^3/6 products, a fraction of those of elimination in array code, which computes whole
matrices. Columns are eliminated in blocks of four, so that the remaining matrix is read and written
a quarter as often.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...passes.analysis import expand
from ...primitives.registry import Equation, rule
from ...values.builder import Value, int64
from ...values.memory import ArrayView, EmittedArray
from .. import nests
from ..emitter import Emitter

# Size up to which elimination in registers is as fast.
_FEW = 5
# Number of columns in a block.
_COLUMNS = 4


@rule("positive_solve")
def _positive_solve(em: Emitter, equation: Equation, H: EmittedArray, b: EmittedArray):
    """Solve H x = b; NaN if H is not positive definite."""
    dtype = np.dtype(equation.outvars[0].aval.dtype)
    if len(equation.outvars[0].aval.shape) != 1 or H.shape[0] <= _FEW or dtype.kind != "f":
        return em.emit(expand(equation), [H, b])
    n, z = H.shape[0], em.copy_to_memory(b, dtype)
    ldl = _LDLFactors(em, H, dtype)

    def update_row(k, i, factors):
        remainder = em.memory.read(z, (i,))
        for factor, row_above in zip(factors, ldl.block_rows(k), strict=False):
            product = em.lanes.mul(dtype, factor, em.memory.read(z, (row_above,)))
            remainder = em.lanes.sub(dtype, remainder, product)
        em.memory.write(z, (i,), remainder)

    ldl.eliminate(update_row)
    ldl.scale(z, (n,), lambda x, inverse: em.lanes.mul(dtype, x, inverse))
    with em.loop(n) as iteration:
        k = em.builder.sub(int64(n - 1), iteration)
        factor = em.memory.read(z, (k,))
        ldl.subtract(z, [ldl.row(ldl.A, k)], [factor], int64(0), k)
    ldl.release()
    return em.load_if_small(z)


@rule("inverse_root")
def _inverse_root(em: Emitter, equation: Equation, H: EmittedArray):
    """Return the inverse of the Cholesky factor of H; NaN if H is not positive definite."""
    dtype, n = np.dtype(equation.outvars[0].aval.dtype), H.shape[0]
    if n <= _FEW or dtype.kind != "f":
        return em.emit(expand(equation), [H])
    lanes = em.lanes
    out = em.copy_to_memory(em.constant(np.eye(n, dtype=dtype)), dtype)
    ldl = _LDLFactors(em, H, dtype)

    def update_row(k, i, factors):
        rows_above = [ldl.row(out, row_index) for row_index in ldl.block_rows(k)][: len(factors)]
        last = em.builder.add(k, int64(len(factors)))
        ldl.subtract(ldl.row(out, i), rows_above, factors, int64(0), last)

    ldl.eliminate(update_row)

    is_valid = ldl.are_valid()

    def scale_entry(x, inverse):
        scaled = lanes.mul(dtype, x, lanes.unary("sqrt", dtype, inverse, np.sqrt))
        return lanes.select(dtype, is_valid, scaled, dtype.type(np.nan))

    ldl.scale(out, (n, n), scale_entry)
    ldl.release()
    return em.load_if_small(out)


@rule("cholesky")
def _cholesky(em: Emitter, equation: Equation, H: EmittedArray):
    """Return the Cholesky factor; NaN on and below the diagonal if H is not positive definite."""
    dtype, n = np.dtype(equation.outvars[0].aval.dtype), H.shape[-1]
    if H.ndim != 2 or n <= _FEW or dtype.kind != "f":
        return em.emit(expand(equation), [H])
    lanes, memory = em.lanes, em.memory
    out = em.copy_to_memory(em.constant(np.zeros((n, n), dtype)), dtype)
    ldl = _LDLFactors(em, H, dtype)
    ldl.eliminate(lambda k, i, own: None)
    is_valid = ldl.are_valid()
    with em.loop(n) as k:
        inverse = memory.read(ldl.inverses, (k,))
        root = lanes.div(dtype, dtype.type(1), lanes.unary("sqrt", dtype, inverse, np.sqrt))
        root = lanes.select(dtype, is_valid, root, dtype.type(np.nan))
        memory.write(ldl.A, (k, k), dtype.type(1))
        with nests.loop_range(em, k, int64(n)) as i:
            memory.write(out, (i, k), lanes.mul(dtype, memory.read(ldl.A, (i, k)), root))
    ldl.release()
    return em.load_if_small(out)


class _LDLFactors:
    """Factors L, below the diagonal of `A`, and the inverses of D, NaN for a pivot <= 0.

    **Arguments:** `em`; `H`, symmetric, of which the lower triangle is read; `dtype`.
    """

    def __init__(self, em: Emitter, H: EmittedArray, dtype: np.dtype):
        self.em, self.dtype, self.n = em, dtype, H.shape[0]
        self.A = em.copy_to_memory(H, dtype)
        columns = min(_COLUMNS, self.n)
        self.inverses, *self._columns = (
            em.memory.allocate((self.n,), dtype) for _ in range(1 + columns)
        )

    def eliminate(self, update_row: Callable[[Value, Value, list[Any]], None]) -> None:
        """Eliminate all columns.

        **Arguments:** `update_row(k, i, factors)`, which must apply the elimination to row `i` of a
        right-hand side: subtract its rows from `k` on, which are final, times these factors.
        """
        nests.loop_blocks(self.em, self.n, _COLUMNS, lambda k, n: self._eliminate(k, n, update_row))

    def block_rows(self, k: Value) -> list[Value]:
        """Return row `k` and the following ones of the same block."""
        return [k, *(self.em.builder.add(k, int64(p)) for p in range(1, _COLUMNS))]

    def _eliminate(
        self, k: Value, count: int, update_row: Callable[[Value, Value, list[Any]], None]
    ):
        em, dtype = self.em, self.dtype
        lanes, memory, last = em.lanes, em.memory, int64(self.n)
        block_rows = self.block_rows(k)[:count]
        inverses, row_factors = [], []

        def unscaled_entries(i, width):
            """Return row `i` of L D in the first columns of the block."""
            entries = []
            for p in range(width):
                entry = memory.read(self.A, (i, block_rows[p]))
                for factor, unscaled_entry in zip(row_factors[p], entries, strict=True):
                    entry = lanes.sub(dtype, entry, lanes.mul(dtype, factor, unscaled_entry))
                entries.append(entry)
            return entries

        for q, i in enumerate(block_rows):
            unscaled = unscaled_entries(i, q)
            factors = [lanes.mul(dtype, x, y) for x, y in zip(unscaled, inverses, strict=True)]
            pivot = memory.read(self.A, (i, i))
            for p, (factor, unscaled_entry) in enumerate(zip(factors, unscaled, strict=True)):
                pivot = lanes.sub(dtype, pivot, lanes.mul(dtype, factor, unscaled_entry))
                memory.write(self.A, (i, block_rows[p]), factor)
            is_positive = lanes.compare(dtype, ">", pivot, dtype.type(0))
            pivot = lanes.select(dtype, is_positive, pivot, dtype.type(np.nan))
            row_factors.append(factors)
            inverses.append(lanes.div(dtype, dtype.type(1), pivot))
            memory.write(self.inverses, (i,), inverses[q])
            if factors:
                update_row(k, i, factors)
        first_below = em.builder.add(k, int64(count))
        with nests.loop_range(em, first_below, last) as i:
            for p, entry in enumerate(unscaled_entries(i, count)):
                memory.write(self._columns[p], (i,), entry)
                memory.write(self.A, (i, block_rows[p]), lanes.mul(dtype, entry, inverses[p]))
        with nests.loop_range(em, first_below, last) as i:
            factors = [memory.read(self.A, (i, row)) for row in block_rows]
            end = em.builder.add(i, int64(1))
            self.subtract(self.row(self.A, i), self._columns[:count], factors, first_below, end)
            update_row(k, i, factors)

    def row(self, x: ArrayView, k: Value):
        """Return a view of a row of a matrix."""
        return ArrayView(x.buffer, x.shape[1:], x.strides[1:], self.em.memory.flat_index(x, (k, 0)))

    def subtract(
        self, x: ArrayView, rows: list[Any], factors: list[Any], first: Value, last: Value
    ):
        """Subtract rows times factors from the row `x`, in the columns `first` to `last` - 1."""
        em, dtype, build = self.em, self.dtype, self.em.builder
        lanes, vectors = em.lanes, em.vectors
        step = max(vectors.width, 2)

        def subtract_columns(accessor, factors, columns):
            elements = [accessor.read(x, (j,)) for j in columns]
            for other_row, factor in zip(rows, factors, strict=True):
                products = [
                    lanes.mul(dtype, factor, accessor.read(other_row, (j,))) for j in columns
                ]
                elements = [lanes.sub(dtype, a, b) for a, b in zip(elements, products, strict=True)]
            for j, element in zip(columns, elements, strict=True):
                accessor.write(x, (j,), element)

        vectorised_length = build.and_(build.sub(last, first), int64(-step))
        first_remaining = build.add(first, vectorised_length)
        if vectors.width > 1:
            with vectors.along_row():
                splat_factors = [lanes.splat(factor) for factor in factors]
                with nests.loop_range(em, first, first_remaining, step) as j:
                    subtract_columns(vectors, splat_factors, [j])
        else:
            with nests.loop_range(em, first, first_remaining, step) as j:
                subtract_columns(em.memory, factors, [j, build.add(j, int64(1))])
        with nests.loop_range(em, first_remaining, last) as j:
            subtract_columns(em.memory, factors, [j])

    def scale(self, x: ArrayView, shape: tuple[int, ...], function: Callable[[Any, Any], Any]):
        """Replace each entry by a function of it and of the inverse pivot of its row."""
        em = self.em
        with em.loop_nest(shape) as index:
            inverse = em.memory.read(self.inverses, index[:1])
            em.memory.write(x, index, function(em.memory.read(x, index), inverse))

    def are_valid(self):
        """Return whether the matrix is positive definite."""
        em, dtype, lanes = self.em, self.dtype, self.em.lanes

        def first_nan(total, index):
            inverse = em.memory.read(self.inverses, index)
            return lanes.select(dtype, lanes.compare(dtype, "==", inverse, inverse), total, inverse)

        reduced = nests.accumulate(em, (self.n,), dtype, dtype.type(0), first_nan)
        return lanes.compare(dtype, "==", reduced, dtype.type(0))

    def release(self):
        for view in (self.A, self.inverses, *self._columns):
            self.em.memory.release(view.buffer)
