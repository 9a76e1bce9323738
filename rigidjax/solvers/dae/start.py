"""Checks of the start of a differential-algebraic equation for consistency."""

import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...annotations import Matrix, Scalar, T, Terms, Time, Vector, Y
from ...small_arrays import finite_svd
from ..base.terms import flatten, unwrap
from .base import AbstractDAESolver
from .equations import (
    AbstractEquations,
    ImplicitEquations,
    VariableMassEquations,
    differentiation_index,
    stop_gradients,
)

# Admitted change of an unknown relative to its size (or to 1), the same as for states of joints.
_TOLERANCE = 1e-6
# Admitted change in multiples of the tolerance of a step, where that is larger.
_TOLERANCE_FACTOR = 10.0
# Resolution, and bound, of the encoded logarithm of a residual in a message.
_CODES_PER_DECADE, _MAX_CODE = 100, 3200
# Iterations for the rate of F(t, y, y') = 0. A single one suffices if F is linear in the rate.
_RATE_ITERATIONS = 3


def check_start_consistency(
    solver: AbstractDAESolver, terms: Terms, t: Time, y0: Y, eqs: AbstractEquations, state: T
) -> T:
    r"""Return the initial state of a solver, with a run-time error for an inconsistent start.

    The algebraic equations are the combinations of $F(t, y, \dot y) = 0$ that do not depend on
    $\dot y$. At index 3 the start must also satisfy their first time derivative. A violation is
    measured by the least change of the unknowns that removes it.

    **Arguments:** `state`, initial state, returned unchanged; the error is attached to it.
    **Raises:** an error of Equinox with the number of the equation and its residual.
    """
    term, _ = unwrap(terms)
    if not (eqs.is_singular and term.check_start):
        return state
    y, unravel = flatten(y0)
    eqs, t, y = stop_gradients((eqs, t, y))
    finder = solver.root_finder
    allowed = _TOLERANCE_FACTOR * finder.scale(unravel(y), None, jnp.ones((), y.dtype))
    allowed = jnp.maximum(allowed, _TOLERANCE * jnp.maximum(jnp.abs(y), 1.0))
    index = differentiation_index(terms)
    levels = 2 if index is not None and max(index) == 3 else 1
    violations = _measure_violations(eqs, t, y, levels)
    names = getattr(term, "names", None)
    is_named = jnp.ones(y.size, bool) if names is None else jnp.asarray([bool(x) for x in names])
    bad = jnp.stack([~jnp.all(jnp.abs(change) <= allowed) for _, change in violations])
    level = jnp.argmax(bad)
    residual = jnp.stack([jnp.abs(r) for r, _ in violations])[level]
    # A residual that is not finite is reported by the first step.
    bad = jnp.any(bad) & jnp.all(jnp.isfinite(residual))
    row = jnp.argmax(jnp.where(is_named, residual, -1.0))
    code = _residual_code(residual[row]).astype(row.dtype) + (2 * _MAX_CODE + 1) * (
        row + y.size * level
    )
    code = jnp.where(bad, code, 0)
    messages = _InconsistencyMessages(type(solver).__name__, names, y.size)
    state = eqx.branched_error_if(state, bad, code, messages)
    state = _check_rate_pairs(state, eqs, t, y) if eqs.rates else state
    has_product = getattr(term, "product", None) is not None
    return _check_product(state, eqs, t, y) if has_product else state  # pyright: ignore[reportArgumentType]


def _check_product(state: T, eqs: VariableMassEquations, t: Time, y: Vector) -> T:
    """Return the state, with an error if `product` differs from that with the mass matrix."""
    rate = jnp.cos(jnp.arange(1.0, y.size + 1.0)).astype(y.dtype)
    M = eqs.mass(t, y)
    error = jnp.abs(eqs.times(t, y, rate) - M @ rate)
    allowed = jnp.sqrt(jnp.finfo(y.dtype).eps) * jnp.maximum(jnp.abs(M) @ jnp.abs(rate), 1e-30)
    message = (
        "`MassMatrixTerm(product=...)` differs from the product of the matrix of `mass=` with a "
        "rate at the start. Correct it, or leave `product=` out to multiply by the matrix."
    )
    return eqx.error_if(state, jnp.any(error > allowed), message)


def _check_rate_pairs(state: T, eqs: AbstractEquations, t: Time, y: Vector) -> T:
    """Return the state, with an error if the equations are not those that `rates` states."""
    _, M, K = eqs.linearize(t, y, jnp.zeros_like(y))
    i, j = np.array(eqs.rates).T
    unit = np.eye(len(y))
    # K has the entry -1 at (i, j), or 1 if time runs backwards.
    wrong = (M[i] != unit[i]).any(1) | (jnp.abs(K[i]) != unit[j]).any(1)
    messages = [
        f"`MassMatrixTerm(rates=...)` has the pair ({a}, {b}), but equation number {a} is not "
        f"y_{a}' = y_{b} with 1 on the diagonal of the mass matrix."
        for a, b in eqs.rates
    ]
    return eqx.branched_error_if(state, jnp.any(wrong), jnp.argmax(wrong), messages)


def _residual_code(residual: Scalar):
    logarithm = jnp.log10(jnp.maximum(residual, 1e-30))
    code = jnp.round(_CODES_PER_DECADE * logarithm).astype(jnp.int32)
    return jnp.clip(code, -_MAX_CODE, _MAX_CODE) + _MAX_CODE


def _measure_violations(
    eqs: AbstractEquations, t: Time, y: Vector, levels: int
) -> list[tuple[Vector, Vector]]:
    """Return the residuals and the least changes of the unknowns, both (n,), per level.

    Level 1 are the algebraic equations, level 2 their time derivatives.
    """
    rate = eqs.start_rate(t, y)
    if isinstance(eqs, ImplicitEquations):
        rate = _improve_rate(eqs, t, y, rate)
    _, M, K = eqs.linearize(t, y, rate)
    null_space, M_inverse = _left_null_space(M)
    rows = null_space.T @ K
    residual = null_space.T @ eqs.residual(t, y, rate)
    violations = [(null_space @ residual, -jnp.linalg.pinv(rows) @ residual)]
    if levels == 2:
        _, by_time = jax.jvp(lambda t: eqs.residual(t, y, rate), (t,), (jnp.ones_like(t),))
        residual = null_space.T @ (by_time.astype(y.dtype) + K @ rate)
        rows = -rows @ M_inverse @ K
        violations.append((null_space @ residual, -jnp.linalg.pinv(rows) @ residual))
    return violations


def _improve_rate(eqs: AbstractEquations, t: Time, y: Vector, rate: Vector):
    """Improve the rate by Gauss-Newton iterations."""

    def iterate(_, rate):
        _, M, _ = eqs.linearize(t, y, rate)
        return rate - jnp.linalg.pinv(M) @ eqs.residual(t, y, rate)

    return jax.lax.fori_loop(0, _RATE_ITERATIONS, iterate, rate)


def _left_null_space(M: Matrix):
    """Return a basis of the left null space of M, padded by zero columns to (n, n), and M^+."""
    U, s, Vt = finite_svd(M)
    cutoff = 10 * len(M) * jnp.finfo(M.dtype).eps
    keep = s > cutoff * jnp.max(s, initial=0.0)
    inverse = (Vt.T * jnp.where(keep, 1.0 / jnp.where(keep, s, 1.0), 0.0)[None]) @ U.T
    return jnp.where(keep[None], 0.0, U), inverse


class _InconsistencyMessages(Sequence[str]):
    """Messages for every equation, level and encoded residual, formatted on access."""

    def __init__(self, solver: str, names: tuple[str, ...] | None, size: int):
        self.solver, self.names, self.size = solver, names, size

    def __len__(self):
        return 2 * self.size * (2 * _MAX_CODE + 1)

    def __getitem__(self, index: Any) -> str:
        equation, code = divmod(int(index), 2 * _MAX_CODE + 1)
        level, row = divmod(equation, self.size)
        residual = math.pow(10.0, (code - _MAX_CODE) / _CODES_PER_DECADE)
        name = f" ({self.names[row]})" if self.names is not None else ""
        derivative = ", differentiated by time as index 3 requires," if level else ""
        return (
            f"The start of `{self.solver}` is not consistent: the algebraic equation number "
            f"{row}{name}{derivative} has the residual {residual:.2g}. Start from unknowns that "
            "satisfy it; for a formulation, `model.encode(rj.consistent_state(system, state))`. "
            "For an `ImplicitTerm` also pass the rates of the start as `rate=` if not unique."
        )
