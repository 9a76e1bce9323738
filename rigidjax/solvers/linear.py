"""Linear systems of the implicit solvers, by any solver of lineax."""

from typing import NamedTuple

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import lineax as lx
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Num, PyTree

from ..annotations import Matrix, Scalar
from ..native.ops import inverse as inverse_of, sequential_vmap_on_cpu
from .rate_elimination import CondensedInverse, Pairs

InverseState = tuple[Matrix, eqxi.Static]  # inverse, structures of unknowns and of right-hand sides


class Inverse(lx.AbstractLinearSolver):
    r"""Solves $A x = b$ by the inverse matrix, as a linear solver for lineax.

    A matrix that serves for several right-hand sides costs one inverse, each of them one product.
    By XLA runs of BDF with 8 to 27 unknowns take 0.6 to 0.8 times as long as with `lineax.LU`,
    those of Radau5 0.7 times with 8, as long with 23 and 1.15 times with 27; kernels: see
    `benchmarks/linear_solvers.py`. The relative error is up to the condition number times
    round-off, as with LU; the residual can be larger, which Newton's method makes good.

    **Raises:** `ValueError` for an operator that is not square.
    """

    def init(self, operator, options) -> InverseState:
        """The inverse."""
        if operator.in_size() != operator.out_size():
            raise ValueError(
                "`Inverse` solves systems with a square matrix; got one of shape "
                f"({operator.out_size()}, {operator.in_size()}). Use `lineax.SVD()`."
            )
        structures = operator.in_structure(), operator.out_structure()
        return inverse_of(operator.as_matrix()), eqxi.Static(structures)

    def compute(
        self, state: InverseState, vector, options
    ) -> tuple[PyTree[Array], lx.RESULTS, dict]:
        """A product with it."""
        inverse, structures = state
        value = inverse @ ravel_pytree(vector)[0]
        return _unravel(structures.value[0], value), lx.RESULTS.successful, {}

    def transpose(self, state: InverseState, options) -> tuple[InverseState, dict]:
        """The transposed inverse."""
        inverse, structures = state
        return (inverse.T, eqxi.Static(structures.value[::-1])), {}

    def conj(self, state: InverseState, options) -> tuple[InverseState, dict]:
        """The conjugate of the inverse."""
        inverse, structures = state
        return (jnp.conj(inverse), structures), {}

    def assume_full_rank(self) -> bool:
        """Yes."""
        return True


class _QR(lx.AbstractLinearSolver):
    """Takes the place of `lineax.QR`, with Q as a matrix.

    LAPACK's `dormqr`, by which that one multiplies by Q, writes into the factors for as long as it
    runs, and XLA, which does not know that, may read or copy them at that time.
    """

    def init(self, operator, options):
        """Q, R, and whether the system is transposed."""
        structures = operator.in_structure(), operator.out_structure()
        return *jnp.linalg.qr(operator.as_matrix()), eqxi.Static((False, structures))

    def compute(self, state, vector, options):
        """A product with Q and a triangular system with R, transposed in the other order."""
        Q, R, known = state
        is_transposed, (structure, _) = known.value
        b = ravel_pytree(vector)[0]
        if is_transposed:
            value = jnp.conj(Q) @ jax.scipy.linalg.solve_triangular(R, b, trans="T")
        else:
            value = jax.scipy.linalg.solve_triangular(R, jnp.conj(Q.T) @ b)
        return _unravel(structure, value), lx.RESULTS.successful, {}

    def transpose(self, state, options):
        """The transposed system."""
        Q, R, known = state
        is_transposed, structures = known.value
        return (Q, R, eqxi.Static((not is_transposed, structures[::-1]))), {}

    def conj(self, state, options):
        """The conjugate of the system."""
        return (jnp.conj(state[0]), jnp.conj(state[1]), state[2]), {}

    def assume_full_rank(self) -> bool:
        """Yes."""
        return True


def _replace_qr(solver: lx.AbstractLinearSolver) -> lx.AbstractLinearSolver:
    return _QR() if type(solver) is lx.QR else solver


class RepeatedBlock(eqx.Module):
    """Solves systems of a matrix that stands twice on the diagonal, zeros elsewhere.

    **Arguments:** `solver`, of the matrix that stands there twice.
    """

    solver: lx.AbstractLinearSolver


LinearSolver = lx.AbstractLinearSolver | RepeatedBlock


class Factorisation(NamedTuple):
    """A matrix and what a linear solver made of it, arrays alone.

    **Attributes:** `matrix`, `None` with `Inverse`, which does not need it; `state`.
    """

    matrix: Matrix | None
    state: PyTree[Array]


def factorise(solver: LinearSolver, A: Num[Array, "n n"], rates: Pairs = ()) -> Factorisation:
    r"""What `solver` makes of a matrix before any right-hand side is known.

    **Arguments:** `rates`, pairs (i, j): rows i have no entries but (i, i) and (i, j).
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
    """Zeros of the structure of `factored`."""
    shapes = jax.eval_shape(
        lambda A: factorise(solver, A, rates), jax.ShapeDtypeStruct((n, n), jnp.dtype(dtype))
    )
    return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)


def solve(solver: LinearSolver, system: Factorisation, b: Num[Array, " n"]) -> Num[Array, " n"]:
    """Solution for a right-hand side, with its derivatives by matrix and right-hand side."""
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
    """How large the inverse is, at least: its largest entry, or that of one product with it."""
    if isinstance(solver, RepeatedBlock):
        return inverse_size(solver.solver, system, n // 2, dtype)
    if isinstance(solver, Inverse):
        state = system.state
        inverse = state.inverse if isinstance(state, CondensedInverse) else state
        return jnp.max(jnp.abs(inverse), initial=0.0)
    return jnp.max(jnp.abs(solve(solver, system, jnp.ones(n, dtype))), initial=0.0)


def check_linear_solver(owner: str, solver: object) -> None:
    """Raise for what does not solve systems with any square matrix.

    **Raises:** `TypeError`, `ValueError`.
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


def _unravel(structure, value):
    """A vector as arrays of these shapes."""
    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), structure)
    return ravel_pytree(zeros)[1](value)


def _init_state(solver, A):
    return solver.init(lx.MatrixLinearOperator(A), {})


def _is_shape(x):
    return isinstance(x, jax.ShapeDtypeStruct)


def _factorise_arrays(solver, A):
    """The arrays of the state of a linear solver."""
    dynamic, static = eqx.partition(solver, eqx.is_array)
    return sequential_vmap_on_cpu(
        lambda A, *leaves: eqx.filter(
            _init_state(
                eqx.combine(jax.tree.unflatten(jax.tree.structure(dynamic), leaves), static), A
            ),
            eqx.is_array,
        )
    )(A, *jax.tree.leaves(dynamic))
