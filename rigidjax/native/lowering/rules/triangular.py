"""Triangular systems in memory, by substitution over the triangle only."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...passes.analysis import expand
from ...primitives.registry import Equation, rule
from ...values.builder import int64
from ...values.complex import make_pair
from ...values.memory import ArrayView, EmittedArray
from .. import nests
from ..emitter import Emitter
from ..matrices import Matrix, along_row

# Size up to which a solution in registers is as fast.
_FEW = 5
# Number of columns (or row vectors) of the right-hand side that are solved at the same time.
_COLUMNS = 4


@rule("triangular_solve")
def _triangular_solve(em: Emitter, equation: Equation, A: EmittedArray, B: EmittedArray):
    """Solve A X = B or X A = B, for one matrix or a batch."""
    dtype, params = np.dtype(equation.outvars[0].aval.dtype), equation.params
    if A.shape[-1] <= _FEW or not B.size or dtype.kind not in "fc":
        return em.emit(expand(equation), [A, B])
    lower = params["lower"]
    A, B = (em.to_memory(x, dtype) for x in (A, B))
    out = em.memory.allocate(B.shape, dtype)
    if params["left_side"] == params["transpose_a"]:
        A, lower = _transpose(A), not lower
    right_side, solution = (x if params["left_side"] else _transpose(x) for x in (B, out))
    n, count = right_side.shape[-2:]
    step = em.vectors.width if count >= em.vectors.width else 1
    X = Matrix(em, (n, -(-count // step) * step), dtype)
    with em.loop_nest(A.shape[:-2]) as batch_index:
        matrix, rhs_view, solution_view = (
            _matrix_view(em, x, batch_index) for x in (A, right_side, solution)
        )
        X.fill(rhs_view)
        _solve_triangle(em, matrix, X, step, lower, params["conjugate_a"], params["unit_diagonal"])
        with em.loop_nest((n, count)) as index_in_matrix:
            em.memory.write(solution_view, index_in_matrix, X.read(*index_in_matrix))
    X.release()
    return em.load_if_small(out)


def _transpose(x: ArrayView):
    return nests.permute_axes(x, [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2])


def _matrix_view(em: Emitter, x: Any, index: Sequence[Any]):
    """Return a view of one matrix of a batch."""
    offset = em.memory.flat_index(x, (*index, 0, 0))
    return ArrayView(x.buffer, x.shape[-2:], x.strides[-2:], offset)


def _solve_triangle(
    em: Emitter, A: ArrayView, X: Matrix, step: int, lower: bool, is_conjugate: bool, is_unit: bool
):
    """Solve in place of `X`: subtract each solved row from the remaining rows."""
    lanes, build, dtype, n = em.lanes, em.builder, X.dtype, A.shape[0]

    def read_entry(i, k):
        x = em.memory.read(A, (i, k))
        return (
            make_pair(dtype, x.real, lanes.neg(X.real_dtype, x.imag))
            if is_conjugate and X.has_imag
            else x
        )

    def solve(columns):
        with em.loop(n) as iteration:
            k = iteration if lower else build.sub(int64(n - 1), iteration)
            inverse = None if is_unit else lanes.div(dtype, dtype.type(1), read_entry(k, k))
            with along_row(em, step):
                solved = [X.read(k, j) for j in columns]
                if inverse is not None:
                    solved = [lanes.mul(dtype, x, X.splat(inverse)) for x in solved]
                for j, x in zip(columns, solved, strict=True):
                    X.write(k, j, x)
            first, last = (build.add(k, int64(1)), int64(n)) if lower else (int64(0), k)
            with nests.loop_range(em, first, last) as i:
                entry = read_entry(i, k)
                with along_row(em, step):
                    entry = X.splat(entry)
                    for j, x in zip(columns, solved, strict=True):
                        remainder = lanes.sub(dtype, X.read(i, j), lanes.mul(dtype, entry, x))
                        X.write(i, j, remainder)

    def solve_parts(first, count):
        first = build.mul(first, int64(step))
        solve([build.add(first, int64(c * step)) for c in range(count)])

    nests.loop_blocks(em, X.shape[1] // step, _COLUMNS, solve_parts)
