"""Gragg-Bulirsch-Stoer extrapolation."""

from typing import Any, ClassVar

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

from ..base import check_problem
from ..equations import Explicit, equations, frozen, length
from ..terms import flattened
from .base import AbstractExtrapolation, ExtrapolationState, conclude, first_state
from .table import Sequence, combined, extrapolate

_NUMBERS = (2, 4, 6, 8, 10, 12, 14, 16)
_SEQUENCE = Sequence(_NUMBERS, 2, tuple(1.0 + np.cumsum(_NUMBERS)))


class Odex(AbstractExtrapolation):
    r"""Extrapolation of the explicit midpoint rule, of variable order up to 14 and variable step.

    For ordinary differential equations that are not stiff, at high accuracy. Takes a
    `diffrax.ODETerm`. Dense output is of order 5, from $\dot y$ and $\ddot y$ at both ends; it is
    not error-controlled, and at high orders far less accurate than the steps. The method proposes
    its own steps, see `ProposedStepController`.

    **Arguments:** `root_finder`, whose tolerances are those of the choice of order; nothing is
    solved.
    **Source:** Hairer-Norsett-Wanner I, II.9 (9.13), (9.22) ff.; the code ODEX.
    """

    max_index: ClassVar[int] = 0

    def order(self, terms: Any) -> int:
        """The largest order."""
        return 2 * (len(_NUMBERS) - 1)

    def init(self, terms: Any, t0: Any, t1: Any, y0: Any, args: Any) -> ExtrapolationState:
        """A first guess of the number of columns, from the tolerance."""
        check_problem(self, terms, y0)
        return first_state(self.root_finder, len(_NUMBERS))

    def step(
        self, terms: Any, t0: Any, t1: Any, y0: Any, args: Any, solver_state: Any, made_jump: Any
    ) -> tuple[Any, Any, Any, Any, diffrax.RESULTS]:
        """One step from `t0` to `t1`."""
        y, unravel = flattened(y0)
        eqs = equations(terms, t0, y0, args)
        assert isinstance(eqs, Explicit)
        h = length(t0, t1, y.dtype)
        finder = self.root_finder
        scale = finder.scale(unravel(frozen(y)), None, h)
        e = extrapolate(
            _SEQUENCE, solver_state.target, (y, y), _substep(eqs, t0, t1, y, h), _value,
            lambda v: finder.norm(unravel(v / scale)).astype(y.dtype),
        )  # fmt: skip
        y1 = jnp.where(jnp.isfinite(e.error), e.value[0], y)
        target, error, result = conclude(
            _SEQUENCE, e, solver_state.target, scale, t0, t1, y0, finder
        )

        dense = _dense(eqs, t0, t1, y, y1, h, unravel)
        state = ExtrapolationState(target, e.columns, e.count + 1)
        return unravel(y1), unravel(error), dense, state, result

    def repeated(
        self, terms: Any, t0: Any, t1: Any, y0: Any, args: Any, past: Any, found: Any,
        made_jump: Any,
    ) -> tuple[Any, Any, Any]:  # fmt: skip
        """A step of a known number of columns."""
        y, unravel = flattened(y0)
        eqs = equations(terms, t0, y0, args)
        h = length(t0, t1, y.dtype)
        substep = _substep(eqs, t0, t1, y, h)
        y1 = combined(_SEQUENCE, found, (y, y), substep, _value, y[None])[0]
        return unravel(y1), _dense(eqs, t0, t1, y, y1, h, unravel), (None, None)


def _substep(eqs, t0, t1, y, h):
    """The substeps of the explicit midpoint rule, smoothed."""
    f0 = eqs.f(t0, y)

    def substep(carry, i, n, first):
        # At the i-th point, from 1: on by a double step, or at the last one smoothed.
        old, now = carry
        short = h / n
        old, now = jnp.where(first, y, old), jnp.where(first, y + short * f0, now)
        t = t0 + ((i + 1) * (t1 - t0)) / n
        f = eqs.f(t, now)
        last = i == n - 1
        smooth = 0.5 * (old + now + short * f)
        return jnp.where(last, smooth, now), jnp.where(last, smooth, old + 2.0 * short * f)

    return substep


def _value(carry):
    """What is extrapolated."""
    return carry[1][None]


def _dense(eqs, t0, t1, y0, y1, h, unravel):
    """Dense information: two derivatives at both ends."""

    def derivatives(t, y):
        rate = eqs.f(t, y)
        _, second = jax.jvp(eqs.f, (t, y), (jnp.ones_like(t), rate))
        return jax.vmap(unravel)(jnp.stack([y, h * rate, h * h * second]))

    return dict(left=derivatives(t0, y0), right=derivatives(t1, y1))
