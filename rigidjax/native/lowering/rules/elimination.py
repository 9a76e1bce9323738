"""Matrix inverses and LU factors in memory, with pivots of each lane.

Columns are eliminated in blocks of four: a block is factorised in a separate panel, so that the
remaining matrix is read and written a quarter as often.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir

from ...passes.analysis import expand
from ...primitives.registry import Equation, rule
from ...values.builder import I64, Value, int64
from ...values.complex import LaneValue, is_complex, part_dtype
from ...values.lanes import element_type
from ...values.memory import EmittedArray
from .. import nests
from ..emitter import Emitter
from ..matrices import ColumnPerLane, Matrix, RowPerLane, along_row

# Size up to which elimination in registers is as fast; it is larger for inverses.
_FEW, _FEW_OF_INVERSES = 5, 7
# Number of columns in a block.
_COLUMNS = 4


@rule("inverse")
def _inverse(em: Emitter, equation: Equation, A: EmittedArray):
    """Invert a matrix by Gauss-Jordan elimination in place; not finite if it is singular."""
    dtype, n = np.dtype(equation.outvars[0].aval.dtype), A.shape[-1]
    if A.ndim != 2 or n <= _FEW_OF_INVERSES or dtype.kind not in "fc":
        return em.emit(expand(equation), [A])
    return _Inverse(em, A, dtype).emit()


@rule("lu")
def _lu(em: Emitter, equation: Equation, A: EmittedArray):
    """Factorise a matrix with partial pivoting as LAPACK does: (LU, pivots, permutation)."""
    dtype = np.dtype(equation.outvars[0].aval.dtype)
    if A.ndim != 2 or A.shape[0] != A.shape[1] or A.shape[0] <= _FEW or dtype.kind not in "fc":
        return em.emit(expand(equation), [A])
    return _LUFactors(em, A, dtype).emit()


class _Elimination:
    """A matrix `A` and a panel that holds four of its columns as rows."""

    def __init__(self, em: Emitter, A: EmittedArray, dtype: np.dtype):
        self.em, self.dtype, self.n = em, dtype, A.shape[0]
        self.real_dtype = part_dtype(dtype)
        self.step = em.vectors.width
        # Rows are padded to a multiple of the vector length.
        length = -(-self.n // self.step) * self.step
        self.A = Matrix(em, (self.n, length), dtype)
        self.panel = Matrix(em, (_COLUMNS, length + self.step), dtype)
        self.A.fill(em.to_memory(A, dtype))
        self.panel.fill()

    def add_index(self, k: Value, count: int) -> Value:
        return self.em.builder.add(k, int64(count)) if count else k

    def along_row(self):
        return along_row(self.em, self.step)

    def find_pivot(self, q: int, first: Value, is_free: Callable[[Value, Value], Any]) -> Any:
        """Return the row of the largest entry (or of a NaN) in row `q` of the panel.

        **Arguments:** `q`; `first`, first row of the search; `is_free(i, row_number)`, which must
        return whether a row can be chosen, from its index as an integer and as a lane value.
        """
        em, lanes, build, real_dtype = self.em, self.em.lanes, self.em.builder, self.real_dtype
        with self.along_row():
            block_before, initial_values = build.block, [real_dtype.type(-1), np.int64(0)]
            with nests.loop_range(em, first, int64(self.n), self.step, at_least_once=True) as i:
                best_magnitude, best_row = lanes.phi(real_dtype), lanes.phi(np.int64)
                row_number = self._row_numbers(i)
                magnitude = self._magnitude(self.panel.read(q, i))
                is_number = lanes.compare(real_dtype, "==", magnitude, magnitude)
                magnitude = lanes.select(real_dtype, is_number, magnitude, real_dtype.type(np.inf))
                magnitude = lanes.select(
                    real_dtype, is_free(i, row_number), magnitude, real_dtype.type(-1)
                )
                is_better = lanes.compare(real_dtype, ">", magnitude, best_magnitude)
                candidates: list[Any] = [
                    lanes.select(real_dtype, is_better, magnitude, best_magnitude),
                    lanes.select(np.int64, is_better, row_number, best_row),
                ]
                for phi, dtype, initial, value in zip(
                    (best_magnitude, best_row),
                    (real_dtype, np.dtype(np.int64)),
                    initial_values,
                    candidates,
                    strict=True,
                ):
                    lanes.add_incoming(dtype, phi, initial, block_before)
                    lanes.add_incoming(dtype, phi, value, build.block)
            candidates_of_lanes: list[Any] = [candidates]
            if self.step > 1:
                candidates_of_lanes = [
                    tuple(lanes.extract_lane(x, t) for x in candidates) for t in range(self.step)
                ]

        def choose_larger(a, b):
            is_equal = lanes.compare(real_dtype, "==", a[0], b[0])
            is_first = lanes.compare(np.int64, "<", b[1], a[1])
            is_better = lanes.compare(real_dtype, ">", b[0], a[0])
            is_better = lanes.or_(np.bool_, is_better, lanes.and_(np.bool_, is_equal, is_first))
            dtypes = real_dtype, np.dtype(np.int64)
            return [lanes.select(dtypes[t], is_better, b[t], a[t]) for t in range(2)]

        return functools.reduce(choose_larger, candidates_of_lanes)[1]

    def _row_numbers(self, i: Value):
        """Return the row number in all lanes, or those of the rows in a vector."""
        if self.step == 1:
            return self.em.lanes.splat(i)
        offsets = ir.Constant(ir.VectorType(I64, self.step), [int64(t) for t in range(self.step)])
        return self.em.builder.add(self.em.lanes.splat(i), offsets)

    def _magnitude(self, x: Any):
        magnitudes = [
            self.em.lanes.unary("fabs", self.real_dtype, part, np.abs)
            for part in self.panel.split_parts(x)
        ]
        return functools.reduce(functools.partial(self.em.lanes.add, self.real_dtype), magnitudes)

    def combine(
        self,
        rows: list[Any],
        readers: list[Callable[[Value], Any]],
        factors: list[Any],
        first: Value,
        is_pivot_row: list[Any] | None = None,
        operation: str = "add",
    ) -> None:
        """Add products of other rows and factors to rows of `A`, or subtract them.

        **Arguments:** `rows`, indices; `readers`, functions that load an entry of the other rows;
        `factors`, per row and other row; `first`, column from which on rows change;
        `is_pivot_row`, per row, the lanes in which it is zero before; `operation`, "add" or "sub".
        """
        em, lanes, dtype = self.em, self.em.lanes, self.dtype
        method = getattr(lanes, operation)
        with self.along_row():
            splat_factors = [
                [self.A.splat(factor) for factor in row_factors] for row_factors in factors
            ]
            with nests.loop_range(em, first, int64(self.n), self.step) as j:
                elements = [self.A.read(i, j) for i in rows]
                if is_pivot_row is not None:
                    elements = [
                        lanes.select(dtype, is_zero, dtype.type(0), x)
                        for is_zero, x in zip(is_pivot_row, elements, strict=True)
                    ]
                for p, reader in enumerate(readers):
                    entry = reader(j)
                    elements = [
                        method(dtype, x, lanes.mul(dtype, row_factors[p], entry))
                        for x, row_factors in zip(elements, splat_factors, strict=True)
                    ]
                for i, x in zip(rows, elements, strict=True):
                    self.A.write(i, j, x)

    def loop_over_row_pairs(self, first: Value, function: Callable[[list[Value]], None]) -> None:
        """Call a function for the rows from `first` on, two at once if the matrix is real.

        The number of these rows must be even.
        """
        rows_per_iteration = 1 if is_complex(self.dtype) else 2
        end_of_pairs = self.n - self.n % rows_per_iteration
        with nests.loop_range(self.em, first, int64(end_of_pairs), rows_per_iteration) as i:
            function([self.add_index(i, t) for t in range(rows_per_iteration)])
        if end_of_pairs < self.n:
            function([int64(end_of_pairs)])


class _Inverse(_Elimination):
    """Gauss-Jordan elimination that leaves rows in place and marks those that had a pivot."""

    def emit(self) -> EmittedArray:
        em, lanes, memory = self.em, self.em.lanes, self.em.memory
        shape = (_COLUMNS, self.A.shape[1])
        self.pivot_rows = Matrix(em, shape, self.dtype)
        self.free = memory.allocate((self.A.shape[1],), self.real_dtype)
        self.rows, self.columns = (memory.allocate((self.n,), np.int64) for _ in range(2))
        with em.loop(self.A.shape[1]) as i:
            is_inside = em.builder.icmp_signed("<", i, int64(self.n))
            one, zero = (lanes.value(self.real_dtype.type(x), self.real_dtype) for x in (1, 0))
            memory.write(self.free, (i,), em.builder.select(is_inside, one, zero))
        nests.loop_blocks(em, self.n, _COLUMNS, self._eliminate)
        out = memory.allocate((self.n, self.n), self.dtype)
        with em.loop(self.n) as i:
            row = RowPerLane(self.A, memory.read(self.rows, (i,)))
            with em.loop(self.n) as j:
                column_index = memory.read(self.columns, (j,))
                memory.write(out, (i, j), self._read_entry(row, column_index))
        for matrix in (self.A, self.panel, self.pivot_rows):
            matrix.release()
        for view in (self.free, self.rows, self.columns):
            memory.release(view.buffer)
        return em.load_if_small(out)

    def _read_entry(self, row: RowPerLane, column_index: Value):
        """Load the entry of a row and column that both differ by lane."""
        em, type_ = self.em, element_type(self.dtype)
        values = []
        for starts in row.row_starts:
            loads = []
            for t, start in enumerate(starts):
                offset = em.lanes.extract_lane(column_index, t)
                offset = em.builder.mul(offset, int64(row.width)) if row.width > 1 else offset
                address = em.builder.gep(start, [offset], source_etype=type_)
                loads.append(em.builder.load(address, typ=type_, align=self.real_dtype.itemsize))
            values.append(em.lanes.pack_lanes(loads))
        return self.A.combine_parts(values)

    def _is_free_row(self, i: Value, _: LaneValue):
        read = self.em.memory.read if self.step == 1 else self.em.vectors.read
        return self.em.lanes.compare(
            self.real_dtype, ">", read(self.free, (i,)), self.real_dtype.type(0)
        )

    def _eliminate(self, k: Value, count: int):
        em, lanes, dtype, memory = self.em, self.em.lanes, self.dtype, self.em.memory
        columns = [self.add_index(k, c) for c in range(count)]
        with em.loop(self.n) as i:
            for c, column in enumerate(columns):
                self.panel.write(c, i, self.A.read(i, column))
        pivots = []
        for q, column in enumerate(columns):
            p = self.find_pivot(q, int64(0), self._is_free_row)
            pivots.append(p)
            memory.scatter(self.free, p, self.real_dtype.type(0), None)
            memory.write(self.rows, (column,), p)
            memory.scatter(self.columns, p, lanes.splat(column), None)
            pivot_column = ColumnPerLane(self.panel, p)
            pivot = lanes.div(dtype, dtype.type(1), pivot_column.read(q))
            pivot_row = [
                pivot if c == q else lanes.mul(dtype, pivot_column.read(c), pivot)
                for c in range(count)
            ]
            with self.along_row():
                splat_row = [self.panel.splat(entry) for entry in pivot_row]
                with nests.loop_range(em, int64(0), int64(self.n), self.step) as i:
                    factor = self.panel.read(q, i)
                    for c in range(count):
                        product = lanes.mul(dtype, factor, splat_row[c])
                        if c == q:
                            entry = lanes.neg(dtype, product)
                        else:
                            entry = lanes.sub(dtype, self.panel.read(c, i), product)
                        self.panel.write(c, i, entry)
            for c in range(count):
                pivot_column.write(c, pivot_row[c])
        self._copy_pivot_rows(pivots)

        def update_rows(rows):
            factors = [[self.panel.read(c, i) for c in range(count)] for i in rows]
            is_pivot_row = [
                functools.reduce(
                    functools.partial(lanes.or_, np.bool_),
                    [lanes.compare(np.int64, "==", lanes.splat(i), p) for p in pivots],
                )
                for i in rows
            ]
            pivot_rows = [functools.partial(self.pivot_rows.read, c) for c in range(count)]
            self.combine(rows, pivot_rows, factors, int64(0), is_pivot_row)
            for i, row_factors in zip(rows, factors, strict=True):
                for column, factor in zip(columns, row_factors, strict=True):
                    self.A.write(i, column, factor)

        self.loop_over_row_pairs(int64(0), update_rows)

    def _copy_pivot_rows(self, pivots: list[Value]):
        rows = [RowPerLane(self.A, p) for p in pivots]
        with self.along_row(), nests.loop_range(self.em, int64(0), int64(self.n), self.step) as j:
            for c, row in enumerate(rows):
                self.pivot_rows.write(c, j, row.read(j))


class _LUFactors(_Elimination):
    """LU factorisation, in which every lane exchanges its rows."""

    def emit(self) -> list[EmittedArray]:
        em, memory = self.em, self.em.memory
        shape = (self.n,)
        self.pivots = memory.allocate(shape, np.int32)
        self.permutation = em.copy_to_memory(
            em.constant(np.arange(self.n, dtype=np.int32)), np.dtype(np.int32)
        )
        nests.loop_blocks(em, self.n, _COLUMNS, self._eliminate)
        out = memory.allocate((self.n, self.n), self.dtype)
        with em.loop_nest((self.n, self.n)) as index:
            memory.write(out, index, self.A.read(*index))
        self.A.release()
        self.panel.release()
        return [em.load_if_small(x) for x in (out, self.pivots, self.permutation)]

    def _eliminate(self, k: Value, count: int):
        em, lanes, dtype, memory = self.em, self.em.lanes, self.dtype, self.em.memory
        columns = [self.add_index(k, c) for c in range(count)]
        last = int64(self.n)
        with nests.loop_range(em, k, last) as i:
            for c, column in enumerate(columns):
                self.panel.write(c, i, self.A.read(i, column))
        for q, column in enumerate(columns):

            def is_free(i, number, column=column):
                is_below = lanes.compare(np.int64, ">=", number, lanes.splat(column))
                is_inside = lanes.compare(np.int64, "<", number, np.int64(self.n))
                return lanes.and_(np.bool_, is_below, is_inside)

            p = self.find_pivot(q, k, is_free)
            memory.write(self.pivots, (column,), lanes.convert(p, np.int64, np.int32))
            displaced = memory.read(self.permutation, (column,))
            memory.write(self.permutation, (column,), memory.gather(self.permutation, p))
            memory.scatter(self.permutation, p, displaced, None)
            self._exchange_rows(column, p)
            pivot_column, pivot_row = ColumnPerLane(self.panel, p), []
            for c in range(count):
                displaced = self.panel.read(c, column)
                pivot_row.append(pivot_column.read(c))
                pivot_column.write(c, displaced)
                self.panel.write(c, column, pivot_row[c])
            # As in LAPACK, a column of zeros, whose pivot is zero, is not scaled.
            is_zero = lanes.compare(dtype, "==", pivot_row[q], dtype.type(0))
            pivot = lanes.select(dtype, is_zero, dtype.type(1), pivot_row[q])
            inverse = lanes.div(dtype, dtype.type(1), pivot)
            with self.along_row():
                splat_row, scale = (
                    [self.panel.splat(x) for x in pivot_row],
                    self.panel.splat(inverse),
                )
                with nests.loop_range(em, self.add_index(column, 1), last, self.step) as i:
                    factor = lanes.mul(dtype, self.panel.read(q, i), scale)
                    self.panel.write(q, i, factor)
                    for c in range(q + 1, count):
                        product = lanes.mul(dtype, factor, splat_row[c])
                        self.panel.write(c, i, lanes.sub(dtype, self.panel.read(c, i), product))
        first_right = self.add_index(k, count)
        with nests.loop_range(em, k, last) as i:
            for c, column in enumerate(columns):
                self.A.write(i, column, self.panel.read(c, i))
        if count < _COLUMNS:
            return
        for q in range(1, count):
            factors = [self.panel.read(c, columns[q]) for c in range(q)]
            self.combine(
                [columns[q]],
                self._row_readers(columns[:q]),
                [factors],
                first_right,
                operation="sub",
            )

        def update_rows(rows):
            factors = [[self.panel.read(c, i) for c in range(count)] for i in rows]
            self.combine(rows, self._row_readers(columns), factors, first_right, operation="sub")

        self.loop_over_row_pairs(first_right, update_rows)

    def _row_readers(self, rows: list[Any]):
        return [functools.partial(self.A.read, row) for row in rows]

    def _exchange_rows(self, k: Value, p: Value):
        pivot_row = RowPerLane(self.A, p)
        with self.along_row(), nests.loop_range(self.em, int64(0), int64(self.n), self.step) as j:
            row_entry, pivot_entry = self.A.read(k, j), pivot_row.read(j)
            self.A.write(k, j, pivot_entry)
            pivot_row.write(j, row_entry)
