"""Positive definite systems in memory: elimination below the diagonal, of a half of the matrix.

With H = L D L^T, entries that nobody needs are not computed: a sixth of n^3 products, where
elimination in array code takes all of them. Columns are eliminated four at a time, so that what is
left is read and written a quarter as often.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...passes.analysis import expand
from .. import nests
from ..builder import Value, int64
from ..emitter import Emitter
from ..memory import ArrayView, EmittedArray
from ..registry import rule

# Rows up to which elimination in registers is as good.
_FEW = 5
# Columns that are eliminated at the same time.
_COLUMNS = 4


@rule("positive_solve")
def _positive_solve(em: Emitter, equation, H, b):
    """The solution of H x = b; NaN if H is not positive definite."""
    dtype = np.dtype(equation.outvars[0].aval.dtype)
    if len(equation.outvars[0].aval.shape) != 1 or H.shape[0] <= _FEW or dtype.kind != "f":
        return em.emit(expand(equation), [H, b])
    n, z = H.shape[0], em.copy_to_memory(b, dtype)
    factors = _Factors(em, H, dtype)

    def carry(k, i, own):
        rest = em.memory.read(z, (i,))
        for factor, above in zip(own, factors.following(k), strict=False):
            taken = em.lanes.mul(dtype, factor, em.memory.read(z, (above,)))
            rest = em.lanes.sub(dtype, rest, taken)
        em.memory.write(z, (i,), rest)

    factors.eliminate(carry)
    factors.scale(z, (n,), lambda x, inverse: em.lanes.mul(dtype, x, inverse))
    with em.loop(n) as turn:
        k = em.builder.sub(int64(n - 1), turn)
        factor = em.memory.read(z, (k,))
        factors.subtract(z, [factors.row(factors.A, k)], [factor], int64(0), k)
    factors.release()
    return em.load_if_small(z)


@rule("inverse_root")
def _inverse_root(em: Emitter, equation, H):
    """The inverse of the lower triangular root of H; NaN if it is not positive definite."""
    dtype, n = np.dtype(equation.outvars[0].aval.dtype), H.shape[0]
    if n <= _FEW or dtype.kind != "f":
        return em.emit(expand(equation), [H])
    lanes = em.lanes
    out = em.copy_to_memory(em.constant(np.eye(n, dtype=dtype)), dtype)
    factors = _Factors(em, H, dtype)

    def carry(k, i, own):
        above = [factors.row(out, at) for at in factors.following(k)][: len(own)]
        last = em.builder.add(k, int64(len(own)))
        factors.subtract(factors.row(out, i), above, own, int64(0), last)

    factors.eliminate(carry)

    is_valid = factors.are_valid()

    def entry(x, inverse):
        scaled = lanes.mul(dtype, x, lanes.unary("sqrt", dtype, inverse, np.sqrt))
        return lanes.select(dtype, is_valid, scaled, dtype.type(np.nan))

    factors.scale(out, (n, n), entry)
    factors.release()
    return em.load_if_small(out)


@rule("cholesky")
def _cholesky(em: Emitter, equation, H):
    """The lower triangular root of H; NaN on and below the diagonal if it is not definite."""
    dtype, n = np.dtype(equation.outvars[0].aval.dtype), H.shape[-1]
    if H.ndim != 2 or n <= _FEW or dtype.kind != "f":
        return em.emit(expand(equation), [H])
    lanes, memory = em.lanes, em.memory
    out = em.copy_to_memory(em.constant(np.zeros((n, n), dtype)), dtype)
    factors = _Factors(em, H, dtype)
    factors.eliminate(lambda k, i, own: None)
    is_valid = factors.are_valid()
    with em.loop(n) as k:
        inverse = memory.read(factors.inverses, (k,))
        root = lanes.div(dtype, dtype.type(1), lanes.unary("sqrt", dtype, inverse, np.sqrt))
        root = lanes.select(dtype, is_valid, root, dtype.type(np.nan))
        memory.write(factors.A, (k, k), dtype.type(1))
        with nests.loop_range(em, k, int64(n)) as i:
            memory.write(out, (i, k), lanes.mul(dtype, memory.read(factors.A, (i, k)), root))
    factors.release()
    return em.load_if_small(out)


class _Factors:
    """L below the diagonal of `A`, and the inverses of D; NaN where an entry of D is not positive.

    **Arguments:** `H`, symmetric, of which entries on and below the diagonal are read.
    """

    def __init__(self, em: Emitter, H: EmittedArray, dtype: np.dtype):
        self.em, self.dtype, self.n = em, dtype, H.shape[0]
        self.A = em.copy_to_memory(H, dtype)
        columns = min(_COLUMNS, self.n)
        self.inverses, *self._columns = (
            em.memory.allocate((self.n,), dtype) for _ in range(1 + columns)
        )

    def eliminate(self, carry: Callable[[Value, Value, list[Any]], None]) -> None:
        """Eliminate all columns.

        `carry(k, i, factors)` is to subtract the rows from `k` on, times these factors, from row
        `i` of what stands beside the matrix, the rows above being ready.
        """
        nests.loop_blocks(self.em, self.n, _COLUMNS, lambda k, n: self._eliminate(k, n, carry))

    def following(self, k: Value) -> list[Value]:
        """Row `k` and those after it whose columns are eliminated at the same time."""
        return [k, *(self.em.builder.add(k, int64(p)) for p in range(1, _COLUMNS))]

    def _eliminate(self, k, count, carry):
        em, dtype = self.em, self.dtype
        lanes, memory, last = em.lanes, em.memory, int64(self.n)
        rows = self.following(k)[:count]
        inverses, factors = [], []

        def unscaled(i, width):
            """Entries of row `i` in the first columns, those before eliminated: those of L D."""
            entries = []
            for p in range(width):
                one = memory.read(self.A, (i, rows[p]))
                for factor, other in zip(factors[p], entries, strict=True):
                    one = lanes.sub(dtype, one, lanes.mul(dtype, factor, other))
                entries.append(one)
            return entries

        for q, i in enumerate(rows):
            before = unscaled(i, q)
            own = [lanes.mul(dtype, x, y) for x, y in zip(before, inverses, strict=True)]
            pivot = memory.read(self.A, (i, i))
            for p, (factor, other) in enumerate(zip(own, before, strict=True)):
                pivot = lanes.sub(dtype, pivot, lanes.mul(dtype, factor, other))
                memory.write(self.A, (i, rows[p]), factor)
            positive = lanes.compare(dtype, ">", pivot, dtype.type(0))
            pivot = lanes.select(dtype, positive, pivot, dtype.type(np.nan))
            factors.append(own)
            inverses.append(lanes.div(dtype, dtype.type(1), pivot))
            memory.write(self.inverses, (i,), inverses[q])
            if own:
                carry(k, i, own)
        below = em.builder.add(k, int64(count))
        with nests.loop_range(em, below, last) as i:
            for p, one in enumerate(unscaled(i, count)):
                memory.write(self._columns[p], (i,), one)
                memory.write(self.A, (i, rows[p]), lanes.mul(dtype, one, inverses[p]))
        with nests.loop_range(em, below, last) as i:
            own = [memory.read(self.A, (i, row)) for row in rows]
            after = em.builder.add(i, int64(1))
            self.subtract(self.row(self.A, i), self._columns[:count], own, below, after)
            carry(k, i, own)

    def row(self, x, k):
        """A row of a matrix."""
        return ArrayView(x.buffer, x.shape[1:], x.strides[1:], self.em.memory.flat_index(x, (k, 0)))

    def subtract(self, x, others, factors, first, last):
        """Arrays times factors from `x`, the entries from `first` to before `last`."""
        em, dtype, build = self.em, self.dtype, self.em.builder
        lanes, row = em.lanes, em.vectors
        step = max(row.width, 2)

        def entries(memory, factors, places):
            numbers = [memory.read(x, (j,)) for j in places]
            for other, factor in zip(others, factors, strict=True):
                products = [lanes.mul(dtype, factor, memory.read(other, (j,))) for j in places]
                numbers = [lanes.sub(dtype, a, b) for a, b in zip(numbers, products, strict=True)]
            for j, one in zip(places, numbers, strict=True):
                memory.write(x, (j,), one)

        whole = build.and_(build.sub(last, first), int64(-step))
        single = build.add(first, whole)
        if row.width > 1:
            with row.along_row():
                spread = [lanes.splat(factor) for factor in factors]
                with nests.loop_range(em, first, single, step) as j:
                    entries(row, spread, [j])
        else:
            with nests.loop_range(em, first, single, step) as j:
                entries(em.memory, factors, [j, build.add(j, int64(1))])
        with nests.loop_range(em, single, last) as j:
            entries(em.memory, factors, [j])

    def scale(self, x, shape, function):
        """Entries by a function of them and of the inverse that belongs to their row."""
        em = self.em
        with em.loop_nest(shape) as index:
            inverse = em.memory.read(self.inverses, index[:1])
            em.memory.write(x, index, function(em.memory.read(x, index), inverse))

    def are_valid(self):
        """Whether the matrix was positive definite."""
        em, dtype, lanes = self.em, self.dtype, self.em.lanes

        def worst(total, index):
            inverse = em.memory.read(self.inverses, index)
            return lanes.select(dtype, lanes.compare(dtype, "==", inverse, inverse), total, inverse)

        valid = nests.accumulate(em, (self.n,), dtype, dtype.type(0), worst)
        return lanes.compare(dtype, "==", valid, dtype.type(0))

    def release(self):
        for view in (self.A, self.inverses, *self._columns):
            self.em.memory.release(view.buffer)
