"""Gragg-Bulirsch-Stoer extrapolation."""

from typing import Any, ClassVar, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..base import AbstractDAESolver, check_problem
from ..equations import Explicit, equations, frozen, length
from ..newton import default_newton
from ..outcome import RESULTS, ended
from ..proposed import ProposedStepController, proposal
from ..terms import flattened
from .interpolation import HermiteInterpolation
from .table import Sequence, choose, combined, extrapolate

_NUMBERS = (2, 4, 6, 8, 10, 12, 14, 16)
_SEQUENCE = Sequence(_NUMBERS, 2, tuple(1.0 + np.cumsum(_NUMBERS)))


class ExtrapolationState(NamedTuple):
    """The expected number of columns of the next step, those of the last attempt and its
    evaluations."""

    target: Any
    columns: Any
    evaluations: Any


class Odex(AbstractDAESolver):
    r"""Extrapolation of the explicit midpoint rule, of variable order up to 14 and variable step.

    For ordinary differential equations that are not stiff, at high accuracy. Takes a
    `diffrax.ODETerm`. Dense output is of order 5, from $\dot y$ and $\ddot y$ at both ends; it is
    not error-controlled, and at high orders far less accurate than the steps. The method proposes
    its own steps, see `ProposedStepController`.

    **Arguments:** `root_finder`, whose tolerances are those of the choice of order; nothing is
    solved.
    **Source:** Hairer-Norsett-Wanner I, II.9 (9.13), (9.22) ff.; the code ODEX.
    """

    root_finder: Any = eqx.field(default_factory=default_newton)
    root_find_max_steps: int = eqx.field(static=True, default=0)

    max_index: ClassVar[int] = 0
    term_structure: ClassVar = diffrax.AbstractTerm
    interpolation_cls: ClassVar = HermiteInterpolation  # pyright: ignore

    def order(self, terms: Any) -> int:
        """The largest order."""
        return 2 * (len(_NUMBERS) - 1)

    def error_order(self, terms: Any) -> int:
        """1: the step that the method proposes is inversely proportional to what it returns."""
        return 1

    def controller(self, rtol: Any, atol: Any, norm: Any) -> ProposedStepController:
        """The steps that the method proposes."""
        return ProposedStepController(rtol=rtol, atol=atol, norm=norm)

    def evaluations(self, solver_state: ExtrapolationState) -> Any:
        """Evaluations in the last attempted step."""
        return solver_state.evaluations

    def func(self, terms: Any, t0: Any, y0: Any, args: Any) -> Any:
        r"""Rate $\dot y$ at a point."""
        return terms.vf(t0, y0, args)

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

    def past(self, solver_state: ExtrapolationState) -> tuple[None, None]:
        """None: a one-step method."""
        return None, None

    def found(self, before: ExtrapolationState, after: ExtrapolationState) -> Any:
        """The number of columns."""
        return after.columns

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


def first_state(finder: Any, columns: int) -> ExtrapolationState:
    """With the number of columns to start with, as in the codes ODEX and SEULEX."""
    rtol = jnp.max(jnp.asarray(finder.rtol, float)) + 1e-40
    guess = jnp.round(-0.6 * jnp.log10(rtol) + 1.5).astype(jnp.result_type(1))
    zero = jnp.zeros_like(guess)
    return ExtrapolationState(jnp.clip(guess, 2, columns - 2), zero + 1, zero)


def conclude(
    sequence: Sequence, e: Any, target: Any, scale: Any, t0: Any, t1: Any, y0: Any, finder: Any
) -> tuple[Any, Any, Any]:
    """Next target, error estimate for the controller and result of an extrapolated step."""
    best, factor = choose(sequence, e, target)
    ones = finder.norm(jax.tree.map(jnp.ones_like, y0))
    size = jnp.where(e.accepted, 0.5, jnp.inf)
    finite = jnp.isfinite(e.error)
    error = proposal(scale / ones, e.accepted, jnp.maximum(factor, 0.02))
    error = jnp.where(finite, error, jnp.inf)
    result = RESULTS.where(finite, RESULTS.successful, RESULTS.nonfinite)
    error, result = ended(frozen(t0), frozen(t1), size, error, result)
    return best, error, result
