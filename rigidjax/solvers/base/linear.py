"""Linear systems of the implicit solvers, for any linear solver of lineax."""

from typing import Any, NamedTuple

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import lineax as lx
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Num, PyTree

from ...annotations import Matrix, Scalar
from ...small_arrays import inverse as inverse_of, sequential_vmap_on_cpu
from .rate_elimination import CondensedInverse, Pairs

# The inverse; the structures of the unknowns and of the right-hand sides.
InverseState = tuple[Matrix, eqxi.Static]
# Q and R; whether the system is transposed, and the structures.
QRState = tuple[Matrix, Matrix, eqxi.Static]


class Inverse(lx.AbstractLinearSolver):
    r"""Linear solver for lineax that solves $A x = b$ by the inverse matrix.

    A matrix is inverted once, and each right-hand side costs one product.
    For matrices of up to about 20 rows this is faster than `lineax.LU` on most systems, see
    `benchmarks/linear_solvers.py`. The relative error is bounded by the condition number times
    round-off, as with LU. The residual can be larger; the iterations of Newton's method correct it.

    **Raises:** `ValueError` for an operator that is not square.
    """

    def init(self, operator: lx.AbstractLinearOperator, options: dict[str, Any]) -> InverseState:
        """Invert the matrix of the operator."""
        if operator.in_size() != operator.out_size():
            raise ValueError(
                "`Inverse` solves systems with a square matrix; got one of shape "
                f"({operator.out_size()}, {operator.in_size()}). Use `lineax.SVD()`."
            )
        structures = operator.in_structure(), operator.out_structure()
        return inverse_of(operator.as_matrix()), eqxi.Static(structures)

    def compute(
        self, state: InverseState, vector: PyTree[Array], options: dict[str, Any]
    ) -> tuple[PyTree[Array], lx.RESULTS, dict]:
        """Multiply a right-hand side by the inverse."""
        inverse, structures = state
        value = inverse @ ravel_pytree(vector)[0]
        return _unravel(structures.value[0], value), lx.RESULTS.successful, {}

    def transpose(self, state: InverseState, options: dict[str, Any]) -> tuple[InverseState, dict]:
        """Return the transposed inverse."""
        inverse, structures = state
        return (inverse.T, eqxi.Static(structures.value[::-1])), {}

    def conj(self, state: InverseState, options: dict[str, Any]) -> tuple[InverseState, dict]:
        """Return the complex conjugate of the inverse."""
        inverse, structures = state
        return (jnp.conj(inverse), structures), {}

    def assume_full_rank(self) -> bool:
        """Return true: the matrix must be nonsingular."""
        return True


class _QR(lx.AbstractLinearSolver):
    """Linear solver by QR factorisation with Q as a matrix; replaces `lineax.QR`.

    `lineax.QR` multiplies by Q with LAPACK's `dormqr`, which writes into its input while it runs.
    Concurrent operations that read the same factors could then see wrong values.
    """

    def init(self, operator: lx.AbstractLinearOperator, options: dict[str, Any]):
        """Factorise the matrix of the operator."""
        structures = operator.in_structure(), operator.out_structure()
        return *jnp.linalg.qr(operator.as_matrix()), eqxi.Static((False, structures))

    def compute(self, state: QRState, vector: PyTree[Array], options: dict[str, Any]):
        """Solve by a product with Q and a triangular system with R."""
        Q, R, static = state
        is_transposed, (structure, _) = static.value
        b = ravel_pytree(vector)[0]
        if is_transposed:
            value = jnp.conj(Q) @ jax.scipy.linalg.solve_triangular(R, b, trans="T")
        else:
            value = jax.scipy.linalg.solve_triangular(R, jnp.conj(Q.T) @ b)
        return _unravel(structure, value), lx.RESULTS.successful, {}

    def transpose(self, state: QRState, options: dict[str, Any]):
        """Return the state of the transposed system."""
        Q, R, static = state
        is_transposed, structures = static.value
        return (Q, R, eqxi.Static((not is_transposed, structures[::-1]))), {}

    def conj(self, state: QRState, options: dict[str, Any]):
        """Return the state of the complex conjugate system."""
        return (jnp.conj(state[0]), jnp.conj(state[1]), state[2]), {}

    def assume_full_rank(self) -> bool:
        """Return true: the matrix must be nonsingular."""
        return True


def _replace_qr(solver: lx.AbstractLinearSolver) -> lx.AbstractLinearSolver:
    return _QR() if type(solver) is lx.QR else solver


class RepeatedBlock(eqx.Module):
    """Solver for block-diagonal matrices with two equal blocks.

    **Arguments:** `solver`, linear solver for the block.
    """

    solver: lx.AbstractLinearSolver


LinearSolver = lx.AbstractLinearSolver | RepeatedBlock


class Factorisation(NamedTuple):
    """A matrix and its factorisation by a linear solver.

    **Attributes:** `matrix`, `None` with `Inverse`, which does not need it; `state`, the arrays of
    the state of the linear solver.
    """

    matrix: Matrix | None
    state: PyTree[Array]


def factorise(solver: LinearSolver, A: Num[Array, "n n"], rates: Pairs = ()) -> Factorisation:
    r"""Factorise a matrix for use with several right-hand sides.

    **Arguments:** `solver`; `A`; `rates`, pairs (i, j) where row i has no entries but (i, i) and
    (i, j).
    """
    if isinstance(solver, RepeatedBlock):
        half = len(A) // 2
        return factorise(solver.solver, A[:half, :half], rates)
    if isinstance(solver, Inverse):
        return Factorisation(None, CondensedInverse(A, rates) if rates else inverse_of(A))
    return Factorisation(A, _factorise_arrays(_replace_qr(solver), jax.lax.stop_gradient(A)))


def zero_factorisation(
    solver: LinearSolver, n: int, dtype: jnp.dtype, rates: Pairs = ()
) -> Factorisation:
    """Return zeros in the structure of a result of `factorise`."""
    shapes = jax.eval_shape(
        lambda A: factorise(solver, A, rates), jax.ShapeDtypeStruct((n, n), jnp.dtype(dtype))
    )
    return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)


def solve(solver: LinearSolver, system: Factorisation, b: Num[Array, " n"]) -> Num[Array, " n"]:
    """Solve for a right-hand side; differentiable with respect to matrix and right-hand side."""
    if isinstance(solver, RepeatedBlock):
        halves = jnp.split(b, 2)
        return jnp.concatenate([solve(solver.solver, system, half) for half in halves])
    if isinstance(system.state, CondensedInverse):
        return system.state.solve(b)
    if isinstance(solver, Inverse):
        return system.state @ b
    solver = _replace_qr(solver)
    _, static = eqx.partition(
        eqx.filter_eval_shape(_init_state, solver, system.matrix), lambda x: _is_shape(x)
    )
    state = eqx.combine(system.state, static)
    assert system.matrix is not None
    operator = lx.MatrixLinearOperator(system.matrix)
    return lx.linear_solve(operator, b, solver, state=state, throw=False).value


def inverse_size(solver: LinearSolver, system: Factorisation, n: int, dtype: jnp.dtype) -> Scalar:
    """Return a lower bound of the size of the inverse.

    The bound is the largest entry of the inverse or of its product with a vector of ones.
    """
    if isinstance(solver, RepeatedBlock):
        return inverse_size(solver.solver, system, n // 2, dtype)
    if isinstance(solver, Inverse):
        state = system.state
        inverse = state.inverse if isinstance(state, CondensedInverse) else state
        return jnp.max(jnp.abs(inverse), initial=0.0)
    return jnp.max(jnp.abs(solve(solver, system, jnp.ones(n, dtype))), initial=0.0)


def check_linear_solver(owner: str, solver: object) -> None:
    """Raise unless `solver` solves systems with any square matrix.

    **Raises:** `TypeError` for an object other than a linear solver of lineax, `ValueError` for a
    linear solver that needs a matrix with special structure.
    """
    if not isinstance(solver, lx.AbstractLinearSolver):
        raise TypeError(
            f"`{owner}(linear_solver=...)` takes a solver of lineax such as `lineax.LU()`, an "
            f"instance and not a class; got {solver!r}."
        )
    try:
        jax.eval_shape(lambda A: factorise(solver, A), jax.ShapeDtypeStruct((2, 2), jnp.float32))
    except ValueError as error:
        raise ValueError(
            f"`{owner}(linear_solver=...)` must solve systems with any square matrix, as "
            f"`lineax.LU()` or `lineax.QR()` do; got `{type(solver).__name__}`: {error}"
        ) from error


def _unravel(structure: PyTree[jax.ShapeDtypeStruct], value: Num[Array, " n"]):
    """Return a vector as a pytree of arrays with the given shapes."""
    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), structure)
    return ravel_pytree(zeros)[1](value)


def _init_state(solver: lx.AbstractLinearSolver, A: Num[Array, "n n"]):
    return solver.init(lx.MatrixLinearOperator(A), {})


def _is_shape(x: object):
    return isinstance(x, jax.ShapeDtypeStruct)


def _factorise_arrays(solver: lx.AbstractLinearSolver, A: Num[Array, "n n"]):
    """Factorise a matrix; return the arrays of the state of the linear solver."""
    dynamic, static = eqx.partition(solver, eqx.is_array)
    return sequential_vmap_on_cpu(
        lambda A, *leaves: eqx.filter(
            _init_state(
                eqx.combine(jax.tree.unflatten(jax.tree.structure(dynamic), leaves), static), A
            ),
            eqx.is_array,
        )
    )(A, *jax.tree.leaves(dynamic))
