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
from .table import Sequence, choose, extrapolate

_NUMBERS = (2, 4, 6, 8, 10, 12, 14, 16)
_SEQUENCE = Sequence(_NUMBERS, 2, tuple(1.0 + np.cumsum(_NUMBERS)))


class ExtrapolationState(NamedTuple):
    """The expected number of columns of the next step, and evaluations of the last attempt."""

    target: Any
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
        return ExtrapolationState(first_target(self.root_finder, len(_NUMBERS)), jnp.array(0))

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

        e = extrapolate(
            _SEQUENCE, solver_state.target, (y, y), substep, lambda carry: carry[1][None],
            lambda v: finder.norm(unravel(v / scale)).astype(y.dtype),
        )  # fmt: skip
        y1 = jnp.where(jnp.isfinite(e.error), e.value[0], y)
        target, error, result = conclude(
            _SEQUENCE, e, solver_state.target, scale, t0, t1, y0, finder
        )

        def derivatives(t, y):
            rate = eqs.f(t, y)
            one = jnp.ones_like(t)
            _, second = jax.jvp(eqs.f, (t, y), (one, rate))
            return jax.vmap(unravel)(jnp.stack([y, h * rate, h * h * second]))

        dense = dict(left=derivatives(t0, y), right=derivatives(t1, y1))
        state = ExtrapolationState(target, e.count + 1)
        return unravel(y1), unravel(error), dense, state, result


def first_target(finder: Any, columns: int) -> Any:
    """Number of columns to start with, as in the codes ODEX and SEULEX."""
    rtol = jnp.max(jnp.asarray(finder.rtol, float)) + 1e-40
    guess = jnp.round(-0.6 * jnp.log10(rtol) + 1.5).astype(jnp.result_type(1))
    return jnp.clip(guess, 2, columns - 2)


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
