"""Extrapolation of the linearly implicit Euler method."""

from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
from jaxtyping import Array, PyTree

from ....annotations import (
    Args,
    Count,
    Norm,
    ReplayResult,
    Scalar,
    StepResult,
    Terms,
    Time,
    Vector,
    Y,
)
from ...base.linear import Inverse, check_linear_solver, factorise, solve, zero_factorisation
from ...base.replayable import Start
from ...base.terms import flatten
from ..base import check_problem
from ..equations import (
    AbstractEquations,
    ConstantMassEquations,
    ExplicitEquations,
    build_equations,
    step_length,
    stop_gradients,
)
from ..start import check_start_consistency
from .base import AbstractExtrapolation, ExtrapolationState, conclude_step, initial_state
from .dense_seulex import SEQUENCE, dense_weights
from .table import (
    Extrapolation,
    StepSequence,
    Substep,
    end_weights,
    extrapolate,
    substep_time,
    sum_substeps,
)

_NUMBERS = (2, 3, 4, 6, 8, 12, 16, 24)
# A Jacobian counts as one evaluation and a factorisation, as in the code SEULEX, as another.
_SEQUENCE = StepSequence(_NUMBERS, 1, tuple(1.0 + np.cumsum(np.asarray(_NUMBERS) + 1.0)))
# Bounds on the defects in the last and the first substep, in tolerances, and the step factor after
# a violation. Smooth problems stay well below the bounds. In initial layers of stiff problems the
# defect of the first substep is sometimes larger, which costs a step.
_MAX_END_DEFECT, _MAX_START_DEFECT, _RETRY_FACTOR = 20.0, 100.0, 0.25


class Seulex(AbstractExtrapolation):
    r"""Extrapolation of the linearly implicit Euler method, of variable order and step.

    Suited to stiff equations. Accepts a `diffrax.ODETerm`, or a `MassMatrixTerm` with a constant
    matrix, of index up to 1. Dense output is as accurate as the steps. It comes from an
    extrapolation of its own with more substeps, so that runs that save values between steps take
    about four times as long; other runs do not compute it. Its evaluations are not counted. The
    method proposes its own steps, see `ProposedStepController`. The Jacobian is evaluated at the
    start of each step; derivatives of a run include those of the Jacobian.

    **Arguments:** `root_finder`, whose tolerances and norm control order and step; the method
    solves no nonlinear equations. `linear_solver`, any linear solver of lineax for square matrices;
    `root_find_max_steps`, without effect.
    **Raises:** `TypeError` for a mass matrix that is not constant or for a fully implicit equation;
    `TypeError`, `ValueError` for an unsuitable linear solver.
    **Source:** Hairer-Wanner II, IV.9 (9.27) ff., VI.4; the code SEULEX; dense output after
    Hairer-Ostermann (1990).
    """

    linear_solver: lx.AbstractLinearSolver = eqx.field(default_factory=Inverse)

    max_index: ClassVar[int] = 1

    def __check_init__(self):
        check_linear_solver("Seulex", self.linear_solver)

    def order(self, terms: Terms) -> int:
        """Return the largest order."""
        return len(_NUMBERS) - 1

    def init(self, terms: Terms, t0: Time, t1: Time, y0: Y, args: Args) -> ExtrapolationState:
        """Return the initial state, with the number of columns estimated from the tolerance."""
        check_problem(self, terms, y0)
        eqs = build_equations(terms, t0, y0, args)
        if not isinstance(eqs, ExplicitEquations | ConstantMassEquations):
            raise TypeError(
                "`Seulex` takes a `diffrax.ODETerm` or a `MassMatrixTerm` with a constant matrix; "
                "use `Radau5` or `BDF` for other equations."
            )
        state = initial_state(self.root_finder, len(_NUMBERS))
        return check_start_consistency(self, terms, t0, y0, eqs, state)

    def make_step(self, start: Start) -> StepResult[ExtrapolationState]:
        _, terms, t0, t1, y0, args, _, solver_state = start
        y, unravel = flatten(y0)
        eqs = build_equations(terms, t0, y0, args)
        h = step_length(t0, t1, y.dtype)
        finder = self.root_finder
        scale = finder.scale(unravel(stop_gradients(y)), None, h)
        carry, substep = self._start_and_substep(eqs, t0, t1, y, h)

        def norm(v):
            return finder.norm(unravel(v / scale)).astype(y.dtype)

        e = extrapolate(
            _SEQUENCE, solver_state.target, carry, substep, lambda carry: jnp.stack(carry[1:]), norm
        )
        change, end_rate, start_bend = jnp.where(jnp.isfinite(e.error), e.value, 0.0)
        y1 = y + change
        ends = stop_gradients((t0, t1, y, y1, end_rate, start_bend))
        e = _reject_jumps_near_ends(eqs, self.linear_solver, e, norm, *ends)
        target, error, result = conclude_step(
            _SEQUENCE, e, solver_state.target, t0, t1, y0, unravel(y1), finder
        )
        state = ExtrapolationState(target, e.columns, e.count + 2)
        dense = _dense_info(carry, substep, y, change, e.columns, unravel)
        return unravel(y1), unravel(error), dense, state, result

    def replay(self, start: Start, step_record: Count) -> ReplayResult:
        """Repeat a step of a known number of columns."""
        _, terms, t0, t1, y0, args, _, _ = start
        y, unravel = flatten(y0)
        eqs = build_equations(terms, t0, y0, args)
        carry, substep = self._start_and_substep(eqs, t0, t1, y, step_length(t0, t1, y.dtype))
        change = sum_substeps(
            _SEQUENCE, end_weights(_SEQUENCE), step_record, carry, substep, lambda carry: carry[1]
        )[0]
        dense = _dense_info(carry, substep, y, change, step_record, unravel)
        return unravel(y + change), dense, (None, None)

    def _start_and_substep(self, eqs: AbstractEquations, t0: Time, t1: Time, y: Vector, h: Scalar):
        """Return the initial carry of a column and the function of a substep.

        The carry consists of the factorisation of the matrix of the column; the change of the
        unknowns since the start of the step, which suffers less cancellation in dense output than
        the unknowns; the increment of the last substep; and the second increment minus the first,
        both multiplied by the number of substeps.
        """
        zero, linear = jnp.zeros_like(y), self.linear_solver
        _, M, K = eqs.linearize(t0, y, zero)

        def substep(carry, i, n, first):
            system, change, increment, bend = carry
            short = h / n.astype(h.dtype)
            system = jax.lax.cond(
                first, lambda: factorise(linear, M / short + K, eqs.rates), lambda: system
            )
            change = jnp.where(first, zero, change)
            t = substep_time(t0, t1, i, n)
            residual = eqs.residual(t, y + change, zero)
            step = -solve(linear, system, residual)
            scaled = step * n.astype(h.dtype)
            bend = jnp.where(i == 1, scaled - increment, bend)
            return system, change + step, scaled, bend

        return (zero_factorisation(linear, y.size, y.dtype, eqs.rates), zero, zero, zero), substep


def _reject_jumps_near_ends(
    eqs: AbstractEquations, linear_solver: lx.AbstractLinearSolver, e: Extrapolation, norm: Norm,
    t0: Time, t1: Time, y0: Vector, y1: Vector, end_rate: Vector, start_bend: Vector,
) -> Extrapolation:  # fmt: skip
    """Reject a step with a jump of the equations within its first or its last substep.

    Substeps evaluate the equations at their starts, so that a jump within the first or the last
    substep of every column leaves the columns consistent with each other, but wrong. After a jump
    in the last substep, the extrapolated rate at the end, `end_rate`, violates the equations there.
    After a jump in the first substep, the extrapolated difference of the first two increments,
    `start_bend`, is not zero.
    """
    h = step_length(t0, t1, y0.dtype)
    short = h / jnp.asarray(_NUMBERS, h.dtype)[e.columns - 1]
    _, M, K = eqs.linearize(t0, y0, jnp.zeros_like(y0))
    system = factorise(linear_solver, M / short + K, eqs.rates)
    defects = eqs.residual(t1, y1, end_rate / h), M @ start_bend / h
    at_end, at_start = (norm(solve(linear_solver, system, x)) for x in defects)
    has_jump = (at_end > _MAX_END_DEFECT) | (at_start > _MAX_START_DEFECT)
    return e._replace(
        accepted=e.accepted & ~has_jump,
        factors=jnp.where(has_jump, jnp.minimum(e.factors, _RETRY_FACTOR), e.factors),
    )


def _dense_info(
    start: PyTree[Array],
    substep: Substep,
    y: Vector,
    change: Vector,
    columns: Count,
    unravel: Callable[[Vector], Y],
):
    """Return dense information from a separate extrapolation, computed only if it is used."""
    inside, chord = dense_weights()
    # One more column keeps the accuracy of the end where the Jacobian changes fast.
    columns = jnp.minimum(columns + 1, len(SEQUENCE.numbers))
    q = sum_substeps(SEQUENCE, inside, columns, start, substep, lambda carry: carry[1])
    q = q + jnp.asarray(chord, y.dtype)[:, None] * change[None]
    return dict(y0=unravel(y), change=unravel(change), q=jax.vmap(unravel)(q))
