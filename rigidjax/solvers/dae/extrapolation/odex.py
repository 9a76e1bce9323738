"""Gragg-Bulirsch-Stoer extrapolation."""

from collections.abc import Callable
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from ....annotations import Args, Count, ReplayResult, Scalar, StepResult, Terms, Time, Vector, Y
from ...base.replayable import Start
from ...base.terms import flatten
from ..base import check_problem
from ..equations import ExplicitEquations, build_equations, step_length, stop_gradients
from .base import AbstractExtrapolation, ExtrapolationState, conclude_step, initial_state
from .dense_odex import SEQUENCE, dense_weights
from .table import StepSequence, end_weights, extrapolate, substep_time, sum_substeps

_NUMBERS = (2, 4, 6, 8, 10, 12, 14, 16)
_SEQUENCE = StepSequence(_NUMBERS, 2, tuple(1.0 + np.cumsum(_NUMBERS)))


class Odex(AbstractExtrapolation):
    r"""Extrapolation of the explicit midpoint rule, of variable order up to 14 and variable step.

    Suited to ordinary differential equations that are not stiff, at high accuracy. Accepts a
    `diffrax.ODETerm`. Dense output is as accurate as the steps. It comes from an extrapolation of
    its own with one more column, so that runs that save values between steps take about four times
    as long; other runs do not compute it. Its evaluations are not counted. The method proposes its
    own steps, see `ProposedStepController`.

    **Arguments:** `root_finder`, whose tolerances and norm control order and step; the method
    solves no nonlinear equations; `root_find_max_steps`, without effect.
    **Source:** Hairer-Norsett-Wanner I, II.9 (9.13), (9.22) ff.; the code ODEX.
    """

    max_index: ClassVar[int] = 0

    def order(self, terms: Terms) -> int:
        """Return the largest order."""
        return 2 * (len(_NUMBERS) - 1)

    def init(self, terms: Terms, t0: Time, t1: Time, y0: Y, args: Args) -> ExtrapolationState:
        """Return the initial state, with the number of columns estimated from the tolerance."""
        check_problem(self, terms, y0)
        return initial_state(self.root_finder, len(_NUMBERS))

    def make_step(self, start: Start) -> StepResult[ExtrapolationState]:
        _, terms, t0, t1, y0, args, _, solver_state = start
        y, unravel = flatten(y0)
        eqs = build_equations(terms, t0, y0, args)
        assert isinstance(eqs, ExplicitEquations)
        h = step_length(t0, t1, y.dtype)
        finder = self.root_finder
        scale = finder.scale(unravel(stop_gradients(y)), None, h)
        substep = _midpoint_substep(eqs, t0, t1, y, h)
        e = extrapolate(
            _SEQUENCE, solver_state.target, (y, y), substep, lambda carry: carry[1][None],
            lambda v: finder.norm(unravel(v / scale)).astype(y.dtype),
        )  # fmt: skip
        change = jnp.where(jnp.isfinite(e.error), e.value[0] - y, 0.0)
        y1 = y + change
        target, error, result = conclude_step(
            _SEQUENCE, e, solver_state.target, t0, t1, y0, unravel(y1), finder
        )
        dense = _dense_info(eqs, t0, t1, y, change, h, e.columns, unravel)
        state = ExtrapolationState(target, e.columns, e.count + 1)
        return unravel(y1), unravel(error), dense, state, result

    def replay(self, start: Start, step_record: Count) -> ReplayResult:
        """Repeat a step of a known number of columns."""
        _, terms, t0, t1, y0, args, _, _ = start
        y, unravel = flatten(y0)
        eqs = build_equations(terms, t0, y0, args)
        assert isinstance(eqs, ExplicitEquations)
        h = step_length(t0, t1, y.dtype)
        substep, weights = _midpoint_substep(eqs, t0, t1, y, h), end_weights(_SEQUENCE)
        change = sum_substeps(
            _SEQUENCE, weights, step_record, (y, y), substep, lambda carry: carry[1] - y
        )[0]
        dense = _dense_info(eqs, t0, t1, y, change, h, step_record, unravel)
        return unravel(y + change), dense, (None, None)


def _midpoint_substep(eqs: ExplicitEquations, t0: Time, t1: Time, y: Vector, h: Scalar):
    """Return the function of a substep of the explicit midpoint rule with Gragg's smoothing.

    The carry consists of the last two values, and optionally of the rate evaluated last.
    """
    f0 = eqs.f(t0, y)

    def substep(carry, i, n, first):
        # From point i, counted from 1, a double step forward, or smoothing at the last point.
        old, now, *rate = carry
        short = h / n.astype(h.dtype)
        old, now = jnp.where(first, y, old), jnp.where(first, y + short * f0, now)
        t = substep_time(t0, t1, i, n)
        f = eqs.f(t, now)
        last = i == n - 1
        smooth = 0.5 * (old + now + short * f)
        new = jnp.where(last, smooth, old + 2.0 * short * f)
        return (jnp.where(last, smooth, now), new, f)[: 2 + len(rate)]

    return substep


def _dense_info(
    eqs: ExplicitEquations,
    t0: Time,
    t1: Time,
    y: Vector,
    change: Vector,
    h: Scalar,
    columns: Count,
    unravel: Callable[[Vector], Y],
):
    """Return dense information from a separate extrapolation, computed only if it is used."""
    f0, f1 = eqs.f(t0, y), eqs.f(t1, y + change)
    columns = jnp.minimum(columns + 1, len(SEQUENCE.numbers))
    table, start = dense_weights(), (y, y, jnp.zeros_like(y))
    substep = _midpoint_substep(eqs, t0, t1, y, h)
    inside = sum_substeps(
        SEQUENCE, table.inside, columns, start, substep, lambda carry: h * carry[2]
    )
    ends = jnp.asarray(table.ends, y.dtype)[columns - 1]
    q = inside + ends @ jnp.stack([change, h * f0, h * f1])
    return dict(y0=unravel(y), change=unravel(change), q=jax.vmap(unravel)(q))
