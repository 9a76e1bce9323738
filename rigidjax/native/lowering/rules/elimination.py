"""Inverses and LU factors in memory, each lane with pivots of its own.

Columns are eliminated four at a time: they are worked off beside the matrix, and what is left of
it is read and written a quarter as often.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir

from ...passes.analysis import expand
from .. import nests
from ..builder import I64, Value, int64
from ..complex import is_complex, part_dtype
from ..emitter import Emitter
from ..lanes import element_type
from ..matrices import ColumnPerLane, Matrix, RowPerLane, along_row
from ..memory import EmittedArray
from ..registry import rule

# Rows up to which elimination in registers is as good; of inverses, as Radau5 of a body has them
# (16 runs of 7 unknowns: 5.8 ms in registers, 6.4 in memory).
_FEW, _FEW_OF_INVERSES = 5, 7
# Columns that are eliminated at the same time.
_COLUMNS = 4


@rule("inverse")
def _inverse(em: Emitter, equation, A):
    """By Gauss-Jordan elimination in place; not finite if there is no inverse."""
    dtype, n = np.dtype(equation.outvars[0].aval.dtype), A.shape[-1]
    if A.ndim != 2 or n <= _FEW_OF_INVERSES or dtype.kind not in "fc":
        return em.emit(expand(equation), [A])
    return _Inverse(em, A, dtype).result()


@rule("lu")
def _lu(em: Emitter, equation, A):
    """Factors of a matrix whose rows are exchanged: (LU, pivots, permutation), as LAPACK's."""
    dtype = np.dtype(equation.outvars[0].aval.dtype)
    if A.ndim != 2 or A.shape[0] != A.shape[1] or A.shape[0] <= _FEW or dtype.kind not in "fc":
        return em.emit(expand(equation), [A])
    return _Factors(em, A, dtype).results()


class _Elimination:
    """A matrix `A`, and beside it four of its columns, each a row of `panel`."""

    def __init__(self, em: Emitter, A: EmittedArray, dtype: np.dtype):
        self.em, self.dtype, self.n = em, dtype, A.shape[0]
        self.real = part_dtype(dtype)
        self.step = em.vectors.width
        # Rows end where a whole part of them does.
        length = -(-self.n // self.step) * self.step
        self.A = Matrix(em, (self.n, length), dtype)
        self.panel = Matrix(em, (_COLUMNS, length + self.step), dtype)
        self.A.fill(em.to_memory(A, dtype))
        self.panel.fill()

    def plus(self, k: Value, count: int) -> Value:
        return self.em.builder.add(k, int64(count)) if count else k

    def along_row(self):
        return along_row(self.em, self.step)

    def find_pivot(self, q: int, first: Value, is_free: Callable[[Value, Value], Any]) -> Any:
        """Where column `q` of the panel is largest or NaN, among rows that are free.

        `is_free(i, number)` is told the row, as an integer and as a number of lanes.
        """
        em, lanes, build, real = self.em, self.em.lanes, self.em.builder, self.real
        with self.along_row():
            before, start = build.block, [real.type(-1), np.int64(0)]
            with nests.loop_range(em, first, int64(self.n), self.step, at_least_once=True) as i:
                best, where = lanes.phi(real), lanes.phi(np.int64)
                number = self._numbered(i)
                size = self._size(self.panel.read(q, i))
                is_number = lanes.compare(real, "==", size, size)
                size = lanes.select(real, is_number, size, real.type(np.inf))
                size = lanes.select(real, is_free(i, number), size, real.type(-1))
                better = lanes.compare(real, ">", size, best)
                new: list[Any] = [
                    lanes.select(real, better, size, best),
                    lanes.select(np.int64, better, number, where),
                ]
                for phi, kind, one, value in zip(
                    (best, where), (real, np.dtype(np.int64)), start, new, strict=True
                ):
                    lanes.add_incoming(kind, phi, one, before)
                    lanes.add_incoming(kind, phi, value, build.block)
            found: list[Any] = [new]
            if self.step > 1:
                found = [tuple(lanes.extract_lane(x, t) for x in new) for t in range(self.step)]

        def larger(a, b):
            same = lanes.compare(real, "==", a[0], b[0])
            is_first = lanes.compare(np.int64, "<", b[1], a[1])
            better = lanes.compare(real, ">", b[0], a[0])
            better = lanes.or_(np.bool_, better, lanes.and_(np.bool_, same, is_first))
            kinds = real, np.dtype(np.int64)
            return [lanes.select(kinds[t], better, b[t], a[t]) for t in range(2)]

        return functools.reduce(larger, found)[1]

    def _numbered(self, i):
        """The row's number in all lanes, or those of the rows from there on."""
        if self.step == 1:
            return self.em.lanes.splat(i)
        steps = ir.Constant(ir.VectorType(I64, self.step), [int64(t) for t in range(self.step)])
        return self.em.builder.add(self.em.lanes.splat(i), steps)

    def _size(self, x):
        absolute = [
            self.em.lanes.unary("fabs", self.real, one, np.abs) for one in self.panel.split_parts(x)
        ]
        return functools.reduce(functools.partial(self.em.lanes.add, self.real), absolute)

    def combine(self, rows, others, factors, first, own=None, sign="add") -> None:
        """Add other rows times factors to rows of `A`, or subtract them, from column `first` on.

        Where `own` holds, nothing is left of the row.
        """
        em, lanes, dtype = self.em, self.em.lanes, self.dtype
        method = getattr(lanes, sign)
        with self.along_row():
            spread = [[self.A.splat(factor) for factor in of] for of in factors]
            with nests.loop_range(em, first, int64(self.n), self.step) as j:
                numbers = [self.A.read(i, j) for i in rows]
                if own is not None:
                    numbers = [
                        lanes.select(dtype, gone, dtype.type(0), x)
                        for gone, x in zip(own, numbers, strict=True)
                    ]
                for p, other in enumerate(others):
                    read = other(j)
                    numbers = [
                        method(dtype, x, lanes.mul(dtype, of[p], read))
                        for x, of in zip(numbers, spread, strict=True)
                    ]
                for i, x in zip(rows, numbers, strict=True):
                    self.A.write(i, j, x)

    def rows_together(self, first: Value, function: Callable[[list[Value]], None]) -> None:
        """A function of rows from `first` on, an even number: of two of a real matrix at once."""
        together = 1 if is_complex(self.dtype) else 2
        last = self.n - self.n % together
        with nests.loop_range(self.em, first, int64(last), together) as i:
            function([self.plus(i, t) for t in range(together)])
        if last < self.n:
            function([int64(last)])


class _Inverse(_Elimination):
    """Rows stay where they are: pivots are looked for in those that are free."""

    def result(self) -> EmittedArray:
        em, lanes, memory = self.em, self.em.lanes, self.em.memory
        shape = (_COLUMNS, self.A.shape[1])
        self.others = Matrix(em, shape, self.dtype)
        self.free = memory.allocate((self.A.shape[1],), self.real)
        self.rows, self.columns = (memory.allocate((self.n,), np.int64) for _ in range(2))
        with em.loop(self.A.shape[1]) as i:
            inside = em.builder.icmp_signed("<", i, int64(self.n))
            one, zero = (lanes.value(self.real.type(x), self.real) for x in (1, 0))
            memory.write(self.free, (i,), em.builder.select(inside, one, zero))
        nests.loop_blocks(em, self.n, _COLUMNS, self._eliminate)
        out = memory.allocate((self.n, self.n), self.dtype)
        with em.loop(self.n) as i:
            row = RowPerLane(self.A, memory.read(self.rows, (i,)))
            with em.loop(self.n) as j:
                at = memory.read(self.columns, (j,))
                memory.write(out, (i, j), self._entry(row, at))
        for one in (self.A, self.panel, self.others):
            one.release()
        for view in (self.free, self.rows, self.columns):
            memory.release(view.buffer)
        return em.load_if_small(out)

    def _entry(self, row, at):
        """An entry of a row, both different from lane to lane."""
        em, kind = self.em, element_type(self.dtype)
        values = []
        for starts in row.row_starts:
            loads = []
            for t, start in enumerate(starts):
                place = em.lanes.extract_lane(at, t)
                place = em.builder.mul(place, int64(row.width)) if row.width > 1 else place
                address = em.builder.gep(start, [place], source_etype=kind)
                loads.append(em.builder.load(address, typ=kind, align=self.real.itemsize))
            values.append(em.lanes.pack_lanes(loads))
        return self.A.combine_parts(values)

    def _is_free(self, i, _):
        read = self.em.memory.read if self.step == 1 else self.em.vectors.read
        return self.em.lanes.compare(self.real, ">", read(self.free, (i,)), self.real.type(0))

    def _eliminate(self, k, count):
        em, lanes, dtype, memory = self.em, self.em.lanes, self.dtype, self.em.memory
        columns = [self.plus(k, c) for c in range(count)]
        with em.loop(self.n) as i:
            for c, column in enumerate(columns):
                self.panel.write(c, i, self.A.read(i, column))
        pivots = []
        for q, column in enumerate(columns):
            p = self.find_pivot(q, int64(0), self._is_free)
            pivots.append(p)
            memory.scatter(self.free, p, self.real.type(0), None)
            memory.write(self.rows, (column,), p)
            memory.scatter(self.columns, p, lanes.splat(column), None)
            own = ColumnPerLane(self.panel, p)
            pivot = lanes.div(dtype, dtype.type(1), own.read(q))
            row = [pivot if c == q else lanes.mul(dtype, own.read(c), pivot) for c in range(count)]
            with self.along_row():
                spread = [self.panel.splat(one) for one in row]
                with nests.loop_range(em, int64(0), int64(self.n), self.step) as i:
                    factor = self.panel.read(q, i)
                    for c in range(count):
                        part = lanes.mul(dtype, factor, spread[c])
                        if c == q:
                            new = lanes.neg(dtype, part)
                        else:
                            new = lanes.sub(dtype, self.panel.read(c, i), part)
                        self.panel.write(c, i, new)
            for c in range(count):
                own.write(c, row[c])
        self._take_rows(pivots)

        def rest(rows):
            factors = [[self.panel.read(c, i) for c in range(count)] for i in rows]
            own = [
                functools.reduce(
                    functools.partial(lanes.or_, np.bool_),
                    [lanes.compare(np.int64, "==", lanes.splat(i), p) for p in pivots],
                )
                for i in rows
            ]
            others = [functools.partial(self.others.read, c) for c in range(count)]
            self.combine(rows, others, factors, int64(0), own)
            for i, of in zip(rows, factors, strict=True):
                for column, factor in zip(columns, of, strict=True):
                    self.A.write(i, column, factor)

        self.rows_together(int64(0), rest)

    def _take_rows(self, pivots):
        rows = [RowPerLane(self.A, p) for p in pivots]
        with self.along_row(), nests.loop_range(self.em, int64(0), int64(self.n), self.step) as j:
            for c, row in enumerate(rows):
                self.others.write(c, j, row.read(j))


class _Factors(_Elimination):
    """Rows are exchanged, each lane's own."""

    def results(self) -> list[EmittedArray]:
        em, memory = self.em, self.em.memory
        shape = (self.n,)
        self.pivots = memory.allocate(shape, np.int32)
        self.order = em.copy_to_memory(
            em.constant(np.arange(self.n, dtype=np.int32)), np.dtype(np.int32)
        )
        nests.loop_blocks(em, self.n, _COLUMNS, self._eliminate)
        out = memory.allocate((self.n, self.n), self.dtype)
        with em.loop_nest((self.n, self.n)) as index:
            memory.write(out, index, self.A.read(*index))
        self.A.release()
        self.panel.release()
        return [em.load_if_small(x) for x in (out, self.pivots, self.order)]

    def _eliminate(self, k, count):
        em, lanes, dtype, memory = self.em, self.em.lanes, self.dtype, self.em.memory
        columns = [self.plus(k, c) for c in range(count)]
        last = int64(self.n)
        with nests.loop_range(em, k, last) as i:
            for c, column in enumerate(columns):
                self.panel.write(c, i, self.A.read(i, column))
        for q, column in enumerate(columns):

            def is_free(i, number, column=column):
                below = lanes.compare(np.int64, ">=", number, lanes.splat(column))
                inside = lanes.compare(np.int64, "<", number, np.int64(self.n))
                return lanes.and_(np.bool_, below, inside)

            p = self.find_pivot(q, k, is_free)
            memory.write(self.pivots, (column,), lanes.convert(p, np.int64, np.int32))
            moved = memory.read(self.order, (column,))
            memory.write(self.order, (column,), memory.gather(self.order, p))
            memory.scatter(self.order, p, moved, None)
            self._exchange(column, p)
            own, row = ColumnPerLane(self.panel, p), []
            for c in range(count):
                moved = self.panel.read(c, column)
                row.append(own.read(c))
                own.write(c, moved)
                self.panel.write(c, column, row[c])
            # A pivot of zero leaves its column as it is, as in LAPACK: zeros, as it is the largest.
            is_zero = lanes.compare(dtype, "==", row[q], dtype.type(0))
            pivot = lanes.select(dtype, is_zero, dtype.type(1), row[q])
            inverse = lanes.div(dtype, dtype.type(1), pivot)
            with self.along_row():
                spread, scale = [self.panel.splat(x) for x in row], self.panel.splat(inverse)
                with nests.loop_range(em, self.plus(column, 1), last, self.step) as i:
                    factor = lanes.mul(dtype, self.panel.read(q, i), scale)
                    self.panel.write(q, i, factor)
                    for c in range(q + 1, count):
                        part = lanes.mul(dtype, factor, spread[c])
                        self.panel.write(c, i, lanes.sub(dtype, self.panel.read(c, i), part))
        right = self.plus(k, count)
        with nests.loop_range(em, k, last) as i:
            for c, column in enumerate(columns):
                self.A.write(i, column, self.panel.read(c, i))
        if count < _COLUMNS:
            return
        for q in range(1, count):
            factors = [self.panel.read(c, columns[q]) for c in range(q)]
            self.combine([columns[q]], self._others(columns[:q]), [factors], right, sign="sub")

        def rest(rows):
            factors = [[self.panel.read(c, i) for c in range(count)] for i in rows]
            self.combine(rows, self._others(columns), factors, right, sign="sub")

        self.rows_together(right, rest)

    def _others(self, rows):
        return [functools.partial(self.A.read, row) for row in rows]

    def _exchange(self, k, p):
        own = RowPerLane(self.A, p)
        with self.along_row(), nests.loop_range(self.em, int64(0), int64(self.n), self.step) as j:
            one, other = self.A.read(k, j), own.read(j)
            self.A.write(k, j, other)
            own.write(j, one)
