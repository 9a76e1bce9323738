"""Extrapolation of the linearly implicit Euler method."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np

from ....annotations import Repeated, Stepped
from ...linear import Inverse, check_linear_solver, factored, solution, unfactored
from ...terms import flattened
from ..base import check_problem
from ..equations import ConstantMass, Explicit, equations, frozen, length
from ..start import checked_start
from .base import AbstractExtrapolation, ExtrapolationState, conclude, first_state
from .dense_seulex import SEQUENCE, weights
from .table import Sequence, combined, end_weights, extrapolate, part_time

_NUMBERS = (2, 3, 4, 6, 8, 12, 16, 24)
# A Jacobian counts as one evaluation and a factorisation, as in the code SEULEX, as another.
_SEQUENCE = Sequence(_NUMBERS, 1, tuple(1.0 + np.cumsum(np.asarray(_NUMBERS) + 1.0)))


class Seulex(AbstractExtrapolation):
    r"""Extrapolation of the linearly implicit Euler method, of variable order and step.

    For stiff equations; takes a `diffrax.ODETerm`, or a `MassMatrixTerm` with a constant matrix, of
    index up to 1. Values between steps are as accurate as the steps: dense output is extrapolated
    by itself, from more substeps, which makes runs that save such values take about four times as
    long and others no longer; its evaluations are not counted. The method proposes its own steps,
    see `ProposedStepController`. The Jacobian is that of the start of each step, and differentiated
    with the rest.

    **Arguments:** `root_finder`, whose tolerances are those of the choice of order; nothing is
    iterated. `linear_solver`, any solver of lineax for square matrices.
    **Raises:** `TypeError`, `ValueError` for another linear solver.
    **Source:** Hairer-Wanner II, IV.9 (9.27) ff., VI.4; the code SEULEX; dense output after
    Hairer-Ostermann (1990).
    """

    linear_solver: lx.AbstractLinearSolver = eqx.field(default_factory=Inverse)

    max_index: ClassVar[int] = 1

    def __check_init__(self):
        check_linear_solver("Seulex", self.linear_solver)

    def order(self, terms) -> int:
        """The largest order."""
        return len(_NUMBERS) - 1

    def init(self, terms, t0, t1, y0, args) -> ExtrapolationState:
        """A first guess of the number of columns, from the tolerance."""
        check_problem(self, terms, y0)
        eqs = equations(terms, t0, y0, args)
        if not isinstance(eqs, Explicit | ConstantMass):
            raise TypeError(
                "`Seulex` takes a `diffrax.ODETerm` or a `MassMatrixTerm` with a constant matrix; "
                "use `Radau5` or `BDF` for other equations."
            )
        state = first_state(self.root_finder, len(_NUMBERS))
        return checked_start(self, terms, t0, y0, eqs, state)

    def step(
        self, terms, t0, t1, y0, args, solver_state: ExtrapolationState, made_jump
    ) -> Stepped[ExtrapolationState]:
        y, unravel = flattened(y0)
        eqs = equations(terms, t0, y0, args)
        h = length(t0, t1, y.dtype)
        finder = self.root_finder
        scale = finder.scale(unravel(frozen(y)), None, h)
        start, substep = self._substeps(eqs, t0, t1, y, h)
        e = extrapolate(
            _SEQUENCE, solver_state.target, start, substep, lambda carry: carry[1][None],
            lambda v: finder.norm(unravel(v / scale)).astype(y.dtype),
        )  # fmt: skip
        change = jnp.where(jnp.isfinite(e.error), e.value[0], 0.0)
        y1 = y + change
        target, error, result = conclude(
            _SEQUENCE, e, solver_state.target, t0, t1, y0, unravel(y1), finder
        )
        state = ExtrapolationState(target, e.columns, e.count + 1)
        dense = _dense(start, substep, y, change, e.columns, unravel)
        return unravel(y1), unravel(error), dense, state, result

    def repeated(self, terms, t0, t1, y0, args, past, found, made_jump) -> Repeated:
        """A step of a known number of columns."""
        y, unravel = flattened(y0)
        eqs = equations(terms, t0, y0, args)
        start, substep = self._substeps(eqs, t0, t1, y, length(t0, t1, y.dtype))
        change = combined(
            _SEQUENCE, end_weights(_SEQUENCE), found, start, substep, lambda carry: carry[1]
        )[0]
        dense = _dense(start, substep, y, change, found, unravel)
        return unravel(y + change), dense, (None, None)

    def _substeps(self, eqs, t0, t1, y, h):
        """What a column starts with, and its substeps.

        A carry has the factors of the column's matrix and the change of the unknowns since the
        start of the step: their differences, of which dense output is made, keep their digits.
        """
        zero, linear = jnp.zeros_like(y), self.linear_solver
        _, M, K = eqs.linearize(t0, y, zero)

        def substep(carry, i, n, first):
            system, change = carry
            short = h / n.astype(h.dtype)
            system = jax.lax.cond(
                first, lambda: factored(linear, M / short + K, eqs.rates), lambda: system
            )
            change = jnp.where(first, zero, change)
            t = part_time(t0, t1, i, n)
            residual = eqs.residual(t, y + change, zero)
            return system, change - solution(linear, system, residual)

        return (unfactored(linear, y.size, y.dtype, eqs.rates), zero), substep


def _dense(start, substep, y, change, columns, unravel):
    """Dense information, by an extrapolation of its own: XLA leaves out what nobody asks for."""
    inside, chord = weights()
    # With one column more it is as accurate as the end where the Jacobian changes fast (Robertson).
    columns = jnp.minimum(columns + 1, len(SEQUENCE.numbers))
    q = combined(SEQUENCE, inside, columns, start, substep, lambda carry: carry[1])
    q = q + jnp.asarray(chord, y.dtype)[:, None] * change[None]
    return dict(y0=unravel(y), change=unravel(change), q=jax.vmap(unravel)(q))
