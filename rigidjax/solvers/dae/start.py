"""Whether the start of a differential-algebraic equation satisfies its algebraic equations."""

import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...annotations import T, Terms, Time, Vector, Y
from ..terms import flatten, unwrap
from .base import AbstractDAESolver
from .equations import AbstractEquations, ImplicitEquations, differentiation_index, stop_gradients

# An unknown may be off by this part of itself (or of 1) at any tolerance, as states of joints.
_TOLERANCE = 1e-6
# Or by so many tolerances.
_TIMES = 10.0
# Of logarithms of residuals, in a message.
_FINENESS, _LIMIT = 100, 3200
# Iterations for the rate of F(t, y, y') = 0, of which one is enough where F is linear in it.
_RATE_ITERATIONS = 3


def check_start_consistency(
    solver: AbstractDAESolver, terms: Terms, t: Time, y0: Y, eqs: AbstractEquations, state: T
) -> T:
    r"""The first state of a solver; an error where the unknowns violate an algebraic equation.

    Algebraic equations are what is left of $F(t, y, \dot y) = 0$ whatever $\dot y$ is. At index 3
    their first derivative by time is one more that the start has to satisfy. Violations are
    measured by the least change of the unknowns that makes them good.

    **Raises:** an error of Equinox, with the equation and its residual.
    """
    term, _ = unwrap(terms)
    if not (eqs.is_singular and term.check_start):
        return state
    y, unravel = flatten(y0)
    eqs, t, y = stop_gradients((eqs, t, y))
    finder = solver.root_finder
    allowed = _TIMES * finder.scale(unravel(y), None, jnp.ones((), y.dtype))
    allowed = jnp.maximum(allowed, _TOLERANCE * jnp.maximum(jnp.abs(y), 1.0))
    index = differentiation_index(terms)
    levels = 2 if index is not None and max(index) == 3 else 1
    found = _measure_violations(eqs, t, y, levels)
    names = getattr(term, "names", None)
    shown = jnp.ones(y.size, bool) if names is None else jnp.asarray([bool(x) for x in names])
    bad = jnp.stack([~jnp.all(jnp.abs(change) <= allowed) for _, change in found])
    level = jnp.argmax(bad)
    residual = jnp.stack([jnp.abs(r) for r, _ in found])[level]
    # Something that is not finite is for the first step to report.
    bad = jnp.any(bad) & jnp.all(jnp.isfinite(residual))
    row = jnp.argmax(jnp.where(shown, residual, -1.0))
    code = _residual_code(residual[row]).astype(row.dtype) + (2 * _LIMIT + 1) * (
        row + y.size * level
    )
    code = jnp.where(bad, code, 0)
    messages = _InconsistencyMessages(type(solver).__name__, names, y.size)
    state = eqx.branched_error_if(state, bad, code, messages)
    state = _check_rate_pairs(state, eqs, t, y) if eqs.rates else state
    has_product = getattr(term, "product", None) is not None
    return _check_product(state, eqs, t, y) if has_product else state


def _check_product(state, eqs, t, y):
    """The state; an error where `product` is not that with the mass matrix."""
    rate = jnp.cos(jnp.arange(1.0, y.size + 1.0)).astype(y.dtype)
    M = eqs.mass(t, y)
    off = jnp.abs(eqs.times(t, y, rate) - M @ rate)
    allowed = jnp.sqrt(jnp.finfo(y.dtype).eps) * jnp.maximum(jnp.abs(M) @ jnp.abs(rate), 1e-30)
    message = (
        "`MassMatrixTerm(product=...)` is not the product of the matrix that `mass=` gives and a "
        "rate, at the start. Without `product=` it is computed from the matrix."
    )
    return eqx.error_if(state, jnp.any(off > allowed), message)


def _check_rate_pairs(state, eqs, t, y):
    """The state; an error where equations are not what `rates` says."""
    _, M, K = eqs.linearize(t, y, jnp.zeros_like(y))
    i, j = np.array(eqs.rates).T
    unit = np.eye(len(y))
    # K holds -1 at (i, j), or 1 if time runs backwards.
    wrong = (M[i] != unit[i]).any(1) | (jnp.abs(K[i]) != unit[j]).any(1)
    messages = [
        f"`MassMatrixTerm(rates=...)` names the pair ({a}, {b}), but equation number {a} is not "
        f"y_{a}' = y_{b}, with 1 on the diagonal of the mass matrix."
        for a, b in eqs.rates
    ]
    return eqx.branched_error_if(state, jnp.any(wrong), jnp.argmax(wrong), messages)


def _residual_code(residual):
    logarithm = jnp.log10(jnp.maximum(residual, 1e-30))
    code = jnp.round(_FINENESS * logarithm).astype(jnp.int32)
    return jnp.clip(code, -_LIMIT, _LIMIT) + _LIMIT


def _measure_violations(eqs: AbstractEquations, t, y, levels: int) -> list[tuple[Vector, Vector]]:
    """Residuals of the equations and least changes of the unknowns, both (n,), level by level."""
    rate = eqs.start_rate(t, y)
    if isinstance(eqs, ImplicitEquations):
        rate = _improve_rate(eqs, t, y, rate)
    _, M, K = eqs.linearize(t, y, rate)
    left, M_inverse = _left_null_space(M)
    rows = left.T @ K
    residual = left.T @ eqs.residual(t, y, rate)
    found = [(left @ residual, -jnp.linalg.pinv(rows) @ residual)]
    if levels == 2:
        _, by_time = jax.jvp(lambda t: eqs.residual(t, y, rate), (t,), (jnp.ones_like(t),))
        residual = left.T @ (by_time.astype(y.dtype) + K @ rate)
        rows = -rows @ M_inverse @ K
        found.append((left @ residual, -jnp.linalg.pinv(rows) @ residual))
    return found


def _improve_rate(eqs, t, y, rate):
    """Gauss-Newton iterations for the rate."""

    def improved(_, rate):
        _, M, _ = eqs.linearize(t, y, rate)
        return rate - jnp.linalg.pinv(M) @ eqs.residual(t, y, rate)

    return jax.lax.fori_loop(0, _RATE_ITERATIONS, improved, rate)


def _left_null_space(M):
    """Vectors that M^T takes to zero as columns of a matrix (n, n), zeros elsewhere; and M^+."""
    U, s, Vt = jnp.linalg.svd(M)
    cutoff = 10 * len(M) * jnp.finfo(M.dtype).eps
    keep = s > cutoff * jnp.max(s, initial=0.0)
    inverse = (Vt.T * jnp.where(keep, 1.0 / jnp.where(keep, s, 1.0), 0.0)[None]) @ U.T
    return jnp.where(keep[None], 0.0, U), inverse


class _InconsistencyMessages(Sequence[str]):
    """A message for every equation, level and size of the residual, written when it is wanted."""

    def __init__(self, solver: str, names: tuple[str, ...] | None, size: int):
        self.solver, self.names, self.size = solver, names, size

    def __len__(self):
        return 2 * self.size * (2 * _LIMIT + 1)

    def __getitem__(self, index: Any) -> str:
        place, code = divmod(int(index), 2 * _LIMIT + 1)
        level, row = divmod(place, self.size)
        residual = math.pow(10.0, (code - _LIMIT) / _FINENESS)
        name = f" ({self.names[row]})" if self.names is not None else ""
        derivative = ", differentiated by time as index 3 asks for," if level else ""
        return (
            f"The start of `{self.solver}` is not consistent: the algebraic equation number "
            f"{row}{name}{derivative} has the residual {residual:.2g}. Start from unknowns that "
            "satisfy it, of a formulation from `model.encode(rj.consistent_state(system, state))`; "
            "of an `ImplicitTerm` also give the start's rates, `rate=`, if they are not unique."
        )
