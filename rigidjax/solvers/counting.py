"""Counting the evaluations of an implicit solver, rejected steps included.

diffrax takes back the solver's state when a step is rejected, but not the controller's. So the
solver hands the count of each attempt to the controller, next to its error estimate. (A call-back
to the host for every evaluation costs 0.2 ms, more than ten steps.)
"""

from typing import Any

import diffrax
import jax.numpy as jnp

from .after_step import AbstractDelegating
from .base import AbstractDAESolver
from .structure.base import AbstractStructureSolver


class CountingSolver(AbstractDelegating):
    """Hands the evaluations of each step of `solver` to a `CountingController`."""

    solver: AbstractDAESolver | AbstractStructureSolver

    @property
    def _dae(self) -> Any:
        return self.solver

    @property
    def interpolation_cls(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """As the wrapped solver."""
        return self.solver.interpolation_cls

    def init(self, terms: Any, t0: Any, t1: Any, y0: Any, args: Any) -> Any:
        """As the wrapped solver."""
        return self.solver.init(terms, t0, t1, y0, args)

    def past(self, solver_state: Any) -> tuple[Any, Any]:
        """As the wrapped solver."""
        return self._dae.past(solver_state)

    def found(self, before: Any, after: Any) -> Any:
        """As the wrapped solver."""
        return self._dae.found(before, after)

    def repeated(
        self, terms: Any, t0: Any, t1: Any, y0: Any, args: Any, past: Any, found: Any,
        made_jump: Any,
    ) -> tuple[Any, Any, Any]:  # fmt: skip
        """As the wrapped solver."""
        return self._dae.repeated(terms, t0, t1, y0, args, past, found, made_jump)

    def step(
        self, terms: Any, t0: Any, t1: Any, y0: Any, args: Any, solver_state: Any, made_jump: Any
    ) -> tuple[Any, Any, Any, Any, diffrax.RESULTS]:
        """A step, with its evaluations next to the error."""
        y1, error, dense_info, state, result = self.solver.step(
            terms, t0, t1, y0, args, solver_state, made_jump
        )
        return y1, (error, self.solver.evaluations(state)), dense_info, state, result


class CountingController(diffrax.AbstractStepSizeController):
    """A controller that also adds up what a `CountingSolver` hands over.

    **Arguments:** `controller`, any other. The state is its state and the number of evaluations.
    """

    controller: diffrax.AbstractStepSizeController

    def wrap(self, direction: Any) -> "CountingController":
        """As the wrapped controller."""
        return CountingController(self.controller.wrap(direction))

    def init(
        self, terms: Any, t0: Any, t1: Any, y0: Any, dt0: Any, args: Any, func: Any,
        error_order: Any,
    ) -> tuple[Any, Any]:  # fmt: skip
        """As the wrapped controller."""
        t, state = self.controller.init(terms, t0, t1, y0, dt0, args, func, error_order)
        return t, (state, jnp.array(0))

    def adapt_step_size(
        self, t0: Any, t1: Any, y0: Any, y1_candidate: Any, args: Any, y_error: Any,
        error_order: Any, controller_state: Any,
    ) -> tuple[Any, Any, Any, Any, Any, diffrax.RESULTS]:  # fmt: skip
        """As the wrapped controller."""
        error, count = y_error
        inner, total = controller_state
        *out, inner, result = self.controller.adapt_step_size(
            t0, t1, y0, y1_candidate, args, error, error_order, inner
        )
        keep, t, t_next, jump = out
        return keep, t, t_next, jump, (inner, total + count.astype(total.dtype)), result
