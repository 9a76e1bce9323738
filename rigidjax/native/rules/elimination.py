"""Inverses, LU factors and triangular systems in memory, each lane with pivots of its own.

Columns are eliminated four at a time: they are worked off beside the matrix, and what is left of
it is read and written a quarter as often. Real and imaginary parts of complex matrices lie apart,
so that single runs compute several numbers of a row at once as they do of real ones.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from llvmlite import ir

from .. import nests
from ..analysis import expanded, rule
from ..builder import I64, Value, int64
from ..complex import is_complex, paired, part_dtype, parts
from ..emitter import Emitter
from ..lanes import element_type
from ..memory import Held, View

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
        return em.run(expanded(equation), [A])
    return _Inverse(em, A, dtype).result()


@rule("lu")
def _lu(em: Emitter, equation, A):
    """Factors of a matrix whose rows are exchanged: (LU, pivots, permutation), as LAPACK's."""
    dtype = np.dtype(equation.outvars[0].aval.dtype)
    if A.ndim != 2 or A.shape[0] != A.shape[1] or A.shape[0] <= _FEW or dtype.kind not in "fc":
        return em.run(expanded(equation), [A])
    return _Factors(em, A, dtype).results()


@rule("triangular_solve")
def _triangular_solve(em: Emitter, equation, A, B):
    """Solution of A X = B or X A = B, of one matrix or of a stack."""
    dtype, params = np.dtype(equation.outvars[0].aval.dtype), equation.params
    if A.shape[-1] <= _FEW or not B.size or dtype.kind not in "fc":
        return em.run(expanded(equation), [A, B])
    lower = params["lower"]
    A, B = (em.in_memory(x, dtype) for x in (A, B))
    out = em.memory.allocate(B.shape, dtype)
    if params["left_side"] == params["transpose_a"]:
        A, lower = _transposed(A), not lower
    given, found = (x if params["left_side"] else _transposed(x) for x in (B, out))
    n, count = given.shape[-2:]
    step = em.row.width if count >= em.row.width else 1
    X = _Matrix(em, (n, -(-count // step) * step), dtype)
    with em.indices(A.shape[:-2]) as index:
        one, right, solution = (_member(em, x, index) for x in (A, given, found))
        X.fill(right)
        _solve_triangle(em, one, X, step, lower, params["conjugate_a"], params["unit_diagonal"])
        with em.indices((n, count)) as place:
            em.memory.write(solution, place, X.read(*place))
    X.release()
    return em.settled(out)


def _transposed(x):
    return nests.reordered(x, [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2])


def _member(em, x, index):
    """One matrix of a stack."""
    offset = em.memory.position(x, (*index, 0, 0))
    return View(x.buffer, x.shape[-2:], x.strides[-2:], offset)


def _solve_triangle(em, A, X, step, lower, is_conjugate, is_unit):
    """Unknown by unknown, each of which is taken from the rows of `X` that are left."""
    lanes, build, dtype, n = em.lanes, em.builder, X.dtype, A.shape[0]

    def factor(i, k):
        x = em.memory.read(A, (i, k))
        return paired(dtype, x.real, lanes.neg(X.real, x.imag)) if is_conjugate and X.imag else x

    def solve(columns):
        with em.loop(n) as turn:
            k = turn if lower else build.sub(int64(n - 1), turn)
            inverse = None if is_unit else lanes.div(dtype, dtype.type(1), factor(k, k))
            with _in_rows(em, step):
                known = [X.read(k, j) for j in columns]
                if inverse is not None:
                    known = [lanes.mul(dtype, x, X.spread(inverse)) for x in known]
                for j, x in zip(columns, known, strict=True):
                    X.write(k, j, x)
            first, last = (build.add(k, int64(1)), int64(n)) if lower else (int64(0), k)
            with nests.span(em, first, last) as i:
                own = factor(i, k)
                with _in_rows(em, step):
                    own = X.spread(own)
                    for j, x in zip(columns, known, strict=True):
                        rest = lanes.sub(dtype, X.read(i, j), lanes.mul(dtype, own, x))
                        X.write(i, j, rest)

    parts_of_rows = X.shape[1] // step
    whole, left = divmod(parts_of_rows, _COLUMNS)
    if whole:
        with em.loop(whole) as turn:
            first = build.mul(turn, int64(_COLUMNS * step))
            solve([build.add(first, int64(c * step)) for c in range(_COLUMNS)])
    if left:
        solve([int64((whole * _COLUMNS + c) * step) for c in range(left)])


@contextlib.contextmanager
def _in_rows(em: Emitter, step: int) -> Iterator[None]:
    """Rows take the place of lanes, if there are `step` numbers of them at once."""
    with em.row.in_place_of_lanes() if step > 1 else contextlib.nullcontext():
        yield


class _Matrix:
    """A matrix in memory, real and imaginary parts apart."""

    def __init__(self, em: Emitter, shape: tuple[int, int], dtype: np.dtype):
        self.em, self.dtype, self.shape = em, dtype, shape
        count = 2 if is_complex(dtype) else 1
        self.real, self.imag = part_dtype(dtype), count == 2
        self.parts = [em.memory.allocate(shape, self.real) for _ in range(count)]

    def fill(self, x: View | None = None) -> None:
        """Take the entries of a smaller matrix; zero beside and below it, all if there is none."""
        em = self.em
        rows, columns = (0, 0) if x is None else x.shape
        if x is not None:
            with em.indices(x.shape) as index:
                self.write(*index, em.memory.read(x, index))
        for shape, shift in (
            ((rows, self.shape[1] - columns), (0, columns)),
            ((self.shape[0] - rows, self.shape[1]), (rows, 0)),
        ):
            if all(shape):
                corner = (em.memory.position(part, shift) for part in self.parts)
                views = [
                    View(part.buffer, shape, part.strides, at)
                    for part, at in zip(self.parts, corner, strict=True)
                ]
                with em.indices(shape) as index:
                    for view in views:
                        em.memory.write(view, index, self.real.type(0))

    def read(self, *index: Any) -> Any:
        """An entry, or where rows take the place of lanes those from there on."""
        read = self.em.memory.read if self.is_single else self.em.row.read
        return self.number([read(part, index) for part in self.parts])

    def write(self, *index_and_value: Any) -> None:
        *index, value = index_and_value
        write = self.em.memory.write if self.is_single else self.em.row.write
        value = self.em.lanes.value(value, self.dtype)
        for part, one in zip(self.parts, self.apart(value), strict=True):
            write(part, tuple(index), one)

    @property
    def is_single(self):
        return self.em.row.width == 1 or self.em.lanes.width == 1

    def number(self, values: list[Any]) -> Any:
        return paired(self.dtype, *values) if len(values) > 1 else values[0]

    def apart(self, value: Any) -> tuple[Any, ...]:
        return parts(value) if len(self.parts) > 1 else (value,)

    def spread(self, value: Any) -> Any:
        """A number again and again, where rows take the place of lanes."""
        if self.is_single:
            return value
        return self.number([self.em.lanes.splat(one) for one in self.apart(value)])

    def release(self) -> None:
        for part in self.parts:
            self.em.memory.release(part.buffer)


class _OwnRow:
    """A row of a matrix that differs from lane to lane."""

    def __init__(self, matrix: _Matrix, row: Value):
        self.matrix, em = matrix, matrix.em
        build, self.width = em.builder, em.lanes.width
        self.align = matrix.real.itemsize
        stride, self.starts = int64(matrix.shape[1] * self.width), []
        kind = element_type(matrix.dtype)
        for part in matrix.parts:
            places = (build.mul(em.lanes.lane(row, t), stride) for t in range(self.width))
            self.starts.append([
                build.gep(part.buffer.pointer, [build.add(at, int64(t))], source_etype=kind)
                for t, at in enumerate(places)
            ])  # fmt: skip

    def _addresses(self, starts, j):
        em, kind = self.matrix.em, element_type(self.matrix.dtype)
        j = em.builder.mul(j, int64(self.width)) if self.width > 1 else j
        return (em.builder.gep(start, [j], source_etype=kind) for start in starts)

    def read(self, j: Value) -> Any:
        """An entry, or where rows take the place of lanes those from there on."""
        em, kind, values = self.matrix.em, element_type(self.matrix.dtype), []
        kind = kind if self.width > 1 else em.lanes.vector(kind)
        for starts in self.starts:
            places = self._addresses(starts, j)
            loads: list[Value] = [em.builder.load(at, typ=kind, align=self.align) for at in places]
            values.append(em.lanes.gathered(loads) if self.width > 1 else loads[0])
        return self.matrix.number(values)

    def write(self, j: Value, value: Any) -> None:
        em = self.matrix.em
        for starts, one in zip(self.starts, self.matrix.apart(value), strict=True):
            for t, at in enumerate(self._addresses(starts, j)):
                lane = em.lanes.lane(one, t) if self.width > 1 else one
                em.builder.store(lane, at, align=self.align)


class _Elimination:
    """A matrix `A`, and beside it four of its columns, each a row of `panel`."""

    def __init__(self, em: Emitter, A: Held, dtype: np.dtype):
        self.em, self.dtype, self.n = em, dtype, A.shape[0]
        self.real = part_dtype(dtype)
        self.step = em.row.width
        # Rows end where a whole part of them does.
        length = -(-self.n // self.step) * self.step
        self.A = _Matrix(em, (self.n, length), dtype)
        self.panel = _Matrix(em, (_COLUMNS, length + self.step), dtype)
        self.A.fill(em.in_memory(A, dtype))
        self.panel.fill()

    def blocks(self, eliminate: Callable[[Value, int], None]) -> None:
        """`eliminate(k, count)` for all blocks of columns."""
        whole, left = divmod(self.n, _COLUMNS)
        if whole:
            with self.em.loop(whole) as turn:
                eliminate(self.em.builder.mul(turn, int64(_COLUMNS)), _COLUMNS)
        if left:
            eliminate(int64(whole * _COLUMNS), left)

    def plus(self, k: Value, count: int) -> Value:
        return self.em.builder.add(k, int64(count)) if count else k

    def in_rows(self):
        return _in_rows(self.em, self.step)

    def largest(self, q: int, first: Value, is_free: Callable[[Value, Value], Any]) -> Any:
        """Where column `q` of the panel is largest or NaN, among rows that are free.

        `is_free(i, number)` is told the row, as an integer and as a number of lanes.
        """
        em, lanes, build, real = self.em, self.em.lanes, self.em.builder, self.real
        with self.in_rows():
            before, start = build.block, [real.type(-1), np.int64(0)]
            with nests.span(em, first, int64(self.n), self.step, at_least_once=True) as i:
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
                found = [tuple(lanes.lane(x, t) for x in new) for t in range(self.step)]

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
            self.em.lanes.unary("fabs", self.real, one, np.abs) for one in self.panel.apart(x)
        ]
        return functools.reduce(functools.partial(self.em.lanes.add, self.real), absolute)

    def combine(self, rows, others, factors, first, own=None, sign="add") -> None:
        """Add other rows times factors to rows of `A`, or subtract them, from column `first` on.

        Where `own` holds, nothing is left of the row.
        """
        em, lanes, dtype = self.em, self.em.lanes, self.dtype
        method = getattr(lanes, sign)
        with self.in_rows():
            spread = [[self.A.spread(factor) for factor in of] for of in factors]
            with nests.span(em, first, int64(self.n), self.step) as j:
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
        with nests.span(self.em, first, int64(last), together) as i:
            function([self.plus(i, t) for t in range(together)])
        if last < self.n:
            function([int64(last)])


class _Inverse(_Elimination):
    """Rows stay where they are: pivots are looked for in those that are free."""

    def result(self) -> Held:
        em, lanes, memory = self.em, self.em.lanes, self.em.memory
        shape = (_COLUMNS, self.A.shape[1])
        self.others = _Matrix(em, shape, self.dtype)
        self.free = memory.allocate((self.A.shape[1],), self.real)
        self.rows, self.columns = (memory.allocate((self.n,), np.int64) for _ in range(2))
        with em.loop(self.A.shape[1]) as i:
            inside = em.builder.icmp_signed("<", i, int64(self.n))
            one, zero = (lanes.value(self.real.type(x), self.real) for x in (1, 0))
            memory.write(self.free, (i,), em.builder.select(inside, one, zero))
        self.blocks(self._eliminate)
        out = memory.allocate((self.n, self.n), self.dtype)
        with em.loop(self.n) as i:
            row = _OwnRow(self.A, memory.read(self.rows, (i,)))
            with em.loop(self.n) as j:
                at = memory.read(self.columns, (j,))
                memory.write(out, (i, j), self._entry(row, at))
        for one in (self.A, self.panel, self.others):
            one.release()
        for view in (self.free, self.rows, self.columns):
            memory.release(view.buffer)
        return em.settled(out)

    def _entry(self, row, at):
        """An entry of a row, both different from lane to lane."""
        em, kind = self.em, element_type(self.dtype)
        values = []
        for starts in row.starts:
            loads = []
            for t, start in enumerate(starts):
                place = em.lanes.lane(at, t)
                place = em.builder.mul(place, int64(row.width)) if row.width > 1 else place
                address = em.builder.gep(start, [place], source_etype=kind)
                loads.append(em.builder.load(address, typ=kind, align=self.real.itemsize))
            values.append(em.lanes.gathered(loads))
        return self.A.number(values)

    def _is_free(self, i, _):
        read = self.em.memory.read if self.step == 1 else self.em.row.read
        return self.em.lanes.compare(self.real, ">", read(self.free, (i,)), self.real.type(0))

    def _eliminate(self, k, count):
        em, lanes, dtype, memory = self.em, self.em.lanes, self.dtype, self.em.memory
        columns = [self.plus(k, c) for c in range(count)]
        with em.loop(self.n) as i:
            for c, column in enumerate(columns):
                self.panel.write(c, i, self.A.read(i, column))
        pivots = []
        for q, column in enumerate(columns):
            p = self.largest(q, int64(0), self._is_free)
            pivots.append(p)
            memory.write_at(self.free, p, self.real.type(0), None)
            memory.write(self.rows, (column,), p)
            memory.write_at(self.columns, p, lanes.splat(column), None)
            own = _OwnEntries(self.panel, p)
            pivot = lanes.div(dtype, dtype.type(1), own.read(q))
            row = [pivot if c == q else lanes.mul(dtype, own.read(c), pivot) for c in range(count)]
            with self.in_rows():
                spread = [self.panel.spread(one) for one in row]
                with nests.span(em, int64(0), int64(self.n), self.step) as i:
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
        rows = [_OwnRow(self.A, p) for p in pivots]
        with self.in_rows(), nests.span(self.em, int64(0), int64(self.n), self.step) as j:
            for c, row in enumerate(rows):
                self.others.write(c, j, row.read(j))


class _Factors(_Elimination):
    """Rows are exchanged, each lane's own."""

    def results(self) -> list[Held]:
        em, memory = self.em, self.em.memory
        shape = (self.n,)
        self.pivots = memory.allocate(shape, np.int32)
        self.order = em.copied(em.constant(np.arange(self.n, dtype=np.int32)), np.dtype(np.int32))
        self.blocks(self._eliminate)
        out = memory.allocate((self.n, self.n), self.dtype)
        with em.indices((self.n, self.n)) as index:
            memory.write(out, index, self.A.read(*index))
        self.A.release()
        self.panel.release()
        return [em.settled(x) for x in (out, self.pivots, self.order)]

    def _eliminate(self, k, count):
        em, lanes, dtype, memory = self.em, self.em.lanes, self.dtype, self.em.memory
        columns = [self.plus(k, c) for c in range(count)]
        last = int64(self.n)
        with nests.span(em, k, last) as i:
            for c, column in enumerate(columns):
                self.panel.write(c, i, self.A.read(i, column))
        for q, column in enumerate(columns):

            def is_free(i, number, column=column):
                below = lanes.compare(np.int64, ">=", number, lanes.splat(column))
                inside = lanes.compare(np.int64, "<", number, np.int64(self.n))
                return lanes.and_(np.bool_, below, inside)

            p = self.largest(q, k, is_free)
            memory.write(self.pivots, (column,), lanes.convert(p, np.int64, np.int32))
            moved = memory.read(self.order, (column,))
            memory.write(self.order, (column,), memory.read_at(self.order, p))
            memory.write_at(self.order, p, moved, None)
            self._exchange(column, p)
            own, row = _OwnEntries(self.panel, p), []
            for c in range(count):
                moved = self.panel.read(c, column)
                row.append(own.read(c))
                own.write(c, moved)
                self.panel.write(c, column, row[c])
            inverse = lanes.div(dtype, dtype.type(1), row[q])
            with self.in_rows():
                spread, scale = [self.panel.spread(x) for x in row], self.panel.spread(inverse)
                with nests.span(em, self.plus(column, 1), last, self.step) as i:
                    factor = lanes.mul(dtype, self.panel.read(q, i), scale)
                    self.panel.write(q, i, factor)
                    for c in range(q + 1, count):
                        part = lanes.mul(dtype, factor, spread[c])
                        self.panel.write(c, i, lanes.sub(dtype, self.panel.read(c, i), part))
        right = self.plus(k, count)
        with nests.span(em, k, last) as i:
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
        own = _OwnRow(self.A, p)
        with self.in_rows(), nests.span(self.em, int64(0), int64(self.n), self.step) as j:
            one, other = self.A.read(k, j), own.read(j)
            self.A.write(k, j, other)
            own.write(j, one)


class _OwnEntries:
    """An entry of each row of a matrix, whose place differs from lane to lane."""

    def __init__(self, matrix: _Matrix, place: Value):
        self.matrix, self.place = matrix, place

    def _at(self, row):
        em, length = self.matrix.em, self.matrix.shape[1]
        return em.lanes.add(np.int64, self.place, np.int64(row * length))

    def read(self, row: int) -> Any:
        memory, at = self.matrix.em.memory, self._at(row)
        return self.matrix.number([memory.read_at(part, at) for part in self.matrix.parts])

    def write(self, row: int, value: Any) -> None:
        memory, at = self.matrix.em.memory, self._at(row)
        value = self.matrix.em.lanes.value(value, self.matrix.dtype)
        for part, one in zip(self.matrix.parts, self.matrix.apart(value), strict=True):
            memory.write_at(part, at, one, None)
