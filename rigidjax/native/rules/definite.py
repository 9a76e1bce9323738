"""Positive definite systems in memory: elimination below the diagonal, of a half of the matrix.

With H = L D L^T, entries that nobody needs are not computed: a sixth of n^3 products, where
elimination in array code takes all of them.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import nests
from ..analysis import expanded, rule
from ..builder import I64, Value, int64
from ..emitter import Emitter
from ..memory import Held, View

# Rows up to which elimination in registers is as good.
_FEW = 5


@rule("positive_solve")
def _positive_solve(em: Emitter, equation, H, b):
    """The solution of H x = b; NaN if H is not positive definite."""
    dtype = np.dtype(equation.outvars[0].aval.dtype)
    if len(equation.outvars[0].aval.shape) != 1 or H.shape[0] <= _FEW or dtype.kind != "f":
        return em.run(expanded(equation), [H, b])
    n, z = H.shape[0], em.copied(b, dtype)
    factors = _Factors(em, H, dtype)
    with factors.rows() as (k, i, factor):
        taken = em.lanes.mul(dtype, factor, em.memory.read(z, (k,)))
        rest = em.lanes.sub(dtype, em.memory.read(z, (i,)), taken)
        em.memory.write(z, (i,), rest)
    factors.scale(z, (n,), lambda x, inverse: em.lanes.mul(dtype, x, inverse))
    with em.loop(n) as turn:
        k = em.builder.sub(int64(n - 1), turn)
        factors.subtract(z, factors.row(factors.A, k), em.memory.read(z, (k,)), int64(0), k)
    factors.release()
    return em.settled(z)


@rule("inverse_root")
def _inverse_root(em: Emitter, equation, H):
    """The inverse of the lower triangular root of H; NaN if it is not positive definite."""
    dtype, n = np.dtype(equation.outvars[0].aval.dtype), H.shape[0]
    if n <= _FEW or dtype.kind != "f":
        return em.run(expanded(equation), [H])
    lanes, memory = em.lanes, em.memory
    out = em.copied(em.constant(np.eye(n, dtype=dtype)), dtype)
    factors = _Factors(em, H, dtype)
    with factors.rows() as (k, i, factor):
        target, source = (factors.row(out, at) for at in (i, k))
        factors.subtract(target, source, factor, int64(0), _after(em, k))

    def worst(total, index):
        inverse = memory.read(factors.inverses, index)
        return lanes.select(dtype, lanes.compare(dtype, "==", inverse, inverse), total, inverse)

    valid = nests.accumulated(em, (n,), dtype, dtype.type(0), worst)
    is_valid = lanes.compare(dtype, "==", valid, dtype.type(0))

    def entry(x, inverse):
        scaled = lanes.mul(dtype, x, lanes.unary("sqrt", dtype, inverse, np.sqrt))
        return lanes.select(dtype, is_valid, scaled, dtype.type(np.nan))

    factors.scale(out, (n, n), entry)
    factors.release()
    return em.settled(out)


class _Factors:
    """L below the diagonal of `A`, and the inverses of D; NaN where an entry of D is not positive.

    **Arguments:** `H`, symmetric, of which entries on and below the diagonal are read.
    """

    def __init__(self, em: Emitter, H: Held, dtype: np.dtype):
        self.em, self.dtype, self.n = em, dtype, H.shape[0]
        self.A = em.copied(H, dtype)
        self.inverses, self._column = (em.memory.allocate((self.n,), dtype) for _ in range(2))

    @contextlib.contextmanager
    def rows(self) -> Iterator[tuple[Value, Value, Any]]:
        """Eliminate; inside, row `k` times a factor is subtracted from row `i`."""
        em, dtype = self.em, self.dtype
        lanes, memory = em.lanes, em.memory
        last = int64(self.n)
        with em.loop(self.n) as k:
            pivot = memory.read(self.A, (k, k))
            positive = lanes.compare(dtype, ">", pivot, dtype.type(0))
            pivot = lanes.select(dtype, positive, pivot, dtype.type(np.nan))
            inverse = lanes.div(dtype, dtype.type(1), pivot)
            memory.write(self.inverses, (k,), inverse)
            below = _after(em, k)
            with _span(em, below, last) as i:
                memory.write(self._column, (i,), memory.read(self.A, (i, k)))
            with _span(em, below, last) as i:
                factor = lanes.mul(dtype, memory.read(self._column, (i,)), inverse)
                row = self.row(self.A, i)
                self.subtract(row, self._column, factor, below, _after(em, i))
                memory.write(self.A, (i, k), factor)
                yield k, i, factor

    def row(self, x, k):
        """A row of a matrix."""
        return View(x.buffer, x.shape[1:], x.strides[1:], self.em.memory.position(x, (k, 0)))

    def subtract(self, x, y, factor, first, last):
        """`factor * y` from `x`, the entries from `first` to before `last`, four at a time."""
        build, lanes, memory = self.em.builder, self.em.lanes, self.em.memory

        def entries(places):
            pairs = [[memory.read(line, (j,)) for line in (x, y)] for j in places]
            for j, (one, other) in zip(places, pairs, strict=True):
                rest = lanes.sub(self.dtype, one, lanes.mul(self.dtype, factor, other))
                memory.write(x, (j,), rest)

        blocks = build.and_(build.sub(last, first), int64(-4))
        single = build.add(first, blocks)
        with _span(self.em, first, single, 4) as j:
            entries([build.add(j, int64(k)) for k in range(4)])
        with _span(self.em, single, last) as j:
            entries([j])

    def scale(self, x, shape, function):
        """Entries by a function of them and of the inverse that belongs to their row."""
        em = self.em
        with em.indices(shape) as index:
            inverse = em.memory.read(self.inverses, index[:1])
            em.memory.write(x, index, function(em.memory.read(x, index), inverse))

    def release(self):
        for view in (self.A, self.inverses, self._column):
            self.em.memory.release(view.buffer)


def _after(em, k):
    return em.builder.add(k, int64(1))


@contextlib.contextmanager
def _span(em: Emitter, first: Value, last: Value, step: int = 1) -> Iterator[Value]:
    """A loop from `first` to below `last`, which may be none; gives the number."""
    build = em.builder
    before = build.block
    head, body, after = (build.append_basic_block(name) for name in ("head", "body", "after"))
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
