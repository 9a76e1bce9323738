"""The stage equations of a Radau method: their solution, and its derivatives."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from ..equations import AbstractEquations
from .tableau import Tableau, lagrange_basis, radau_tableau


class Step(NamedTuple):
    """Equations, start and length of a step, and the unknowns (n,) at its start."""

    equations: AbstractEquations
    t0: Any
    t1: Any
    y0: Any


def stage_residual(step: Step, Z: Any, tableau: Tableau) -> Any:
    r"""$F(t_i, y_0 + z_i, \sum_j (A^{-1})_{ij} z_j / h)$ at all stages, shape (s, n).

    **Arguments:** `Z`, increments $z_i$ of the stages, shape (s, n).
    """
    h = (step.t1 - step.t0).astype(Z.dtype)
    rates = (jnp.asarray(tableau.A_inverse, Z.dtype) @ Z) / h
    c = jnp.asarray(tableau.c, step.t0.dtype)
    ts = jnp.where(c == 1, step.t1, step.t0 + c * (step.t1 - step.t0))
    return jax.vmap(step.equations.residual)(ts, step.y0 + Z, rates)


def stage_jacobian(step: Step, Z: Any, tableau: Tableau) -> Any:
    """Derivative of the stage equations by the increments, shape (s n, s n)."""
    h = (step.t1 - step.t0).astype(Z.dtype)
    A_inverse = jnp.asarray(tableau.A_inverse, Z.dtype)
    c = jnp.asarray(tableau.c, step.t0.dtype)
    ts = jnp.where(c == 1, step.t1, step.t0 + c * (step.t1 - step.t0))
    _, M, K = jax.vmap(step.equations.linearize)(ts, step.y0 + Z, (A_inverse @ Z) / h)
    s, n = Z.shape
    full = (A_inverse / h)[:, None, :, None] * M[:, :, None, :]
    full = full + jnp.eye(s, dtype=Z.dtype)[:, None, :, None] * K[:, :, None, :]
    return full.reshape(s * n, s * n)


@eqx.filter_custom_jvp
def solved(step, Z, okay, stages):
    """The solution `Z` of the stage equations, with the derivatives of the solution.

    Those of the iteration that found it are of no interest: `Z` itself counts as a constant. The
    rule applies to its own result, for derivatives of any order.

    **Arguments:** `step`; `Z`, (s, n); `okay`, whether `Z` is a solution (if not, it has no
    derivatives, and nothing singular is solved for them); `stages`, their number.
    """
    return Z


@solved.def_jvp
def _solved_jvp(primals, tangents):
    step, Z, okay, stages = primals
    d_step = tangents[0]
    tableau = radau_tableau(stages)
    Z = solved(step, Z, okay, stages)
    _, change = eqx.filter_jvp(lambda step: stage_residual(step, Z, tableau), (step,), (d_step,))
    J = stage_jacobian(step, Z, tableau)
    J = jnp.where(okay, J, jnp.eye(Z.size, dtype=Z.dtype))
    change = jnp.where(okay, change, 0.0)
    return Z, -jnp.linalg.solve(J, change.ravel()).reshape(Z.shape)


class Factors(NamedTuple):
    r"""Inverses of the Newton matrix.

    **Attributes:** `real`, $(\gamma/h\,M + K)^{-1}$, (n, n); `full`, the inverse of
    $A^{-1} \otimes M / h + I \otimes K$, (s n, s n).
    """

    real: Any
    full: Any


def factors(M: Any, K: Any, h: Any, tableau: Tableau) -> Factors:
    r"""Inverse of the Newton matrix by one real and (s - 1)/2 complex systems of n unknowns.

    The inverse is put together in the original basis: one product of a matrix of 3 n rows costs
    less than the transformations and the two products of n rows (n = 8: 0.3 us to 0.6 us).
    **Source:** Hairer-Wanner II, IV.8 (8.13).
    """
    T, T_inverse = tableau.T, tableau.T_inverse
    real = jnp.linalg.inv(tableau.gamma / h * M + K)
    matrices, weights = [real], [T[:, :1] * T_inverse[:1]]
    for k, eigenvalue in enumerate(tableau.pairs):
        i, j = 1 + 2 * k, 2 + 2 * k
        pair = jnp.linalg.inv(complex(eigenvalue) / h * M + K)
        matrices += [pair.real, pair.imag]
        weights += [
            T[:, i, None] * T_inverse[i] + T[:, j, None] * T_inverse[j],
            T[:, i, None] * T_inverse[j] - T[:, j, None] * T_inverse[i],
        ]
    s, n = len(T), len(M)
    full = sum(
        jnp.asarray(w, M.dtype)[:, None, :, None] * X[None, :, None, :]
        for w, X in zip(weights, matrices, strict=True)
    )
    return Factors(real, jnp.reshape(full, (s * n, s * n)))


def extrapolated(Z: Any, ratio: Any, tableau: Tableau) -> Any:
    r"""Increments that the last step's collocation polynomial predicts for the next one.

    **Arguments:** `Z`, of the last step, (s, n); `ratio` of the lengths of next and last step.
    **Source:** Hairer-Wanner II, IV.8 (8.5).
    """
    basis = lagrange_basis(tableau.c, 1.0 + jnp.asarray(tableau.c, Z.dtype) * ratio)
    return jnp.stack(basis, axis=1) @ Z - Z[-1]
