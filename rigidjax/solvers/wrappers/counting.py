"""Counting the evaluations of an implicit solver, including those of rejected steps.

When a step is rejected, diffrax restores the state of the solver but not that of the controller.
The solver therefore passes the count of each attempt to the controller, beside its error estimate.
A callback to the host for every evaluation would cost more than the steps.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import diffrax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from ...annotations import Args, Number, StepSizeResult, Terms, Time, Y
from .hooked import AbstractHook, End, Start


class CountedSteps(AbstractHook):
    """A hook that passes the evaluations of each step to a `CountingController`."""

    keeps_stages: ClassVar[bool] = False

    def after(self, start: Start, end: End) -> tuple[End, None]:
        """Pair the error estimate with the number of evaluations."""
        if end.result is None:
            return end, None
        solver: Any = start.solver
        return end._replace(error=(end.error, solver.evaluations(end.memory))), None


class CountingController(diffrax.AbstractStepSizeController):
    """A controller that also sums the evaluations that a `CountedSteps` reports.

    Its state is that of the wrapped controller and the number of evaluations.

    **Arguments:** `controller`, the wrapped controller.
    """

    controller: diffrax.AbstractStepSizeController

    def wrap(self, direction: int | Array | np.ndarray) -> "CountingController":
        return CountingController(self.controller.wrap(direction))

    def init(
        self,
        terms: Terms,
        t0: Time,
        t1: Time,
        y0: Y,
        dt0: Time | None,
        args: Args,
        func: Callable[..., Y],
        error_order: Number | None,
    ) -> tuple[Time, PyTree]:
        t, state = self.controller.init(terms, t0, t1, y0, dt0, args, func, error_order)
        return t, (state, jnp.array(0))

    def adapt_step_size(
        self,
        t0: Time,
        t1: Time,
        y0: Y,
        y1_candidate: Y,
        args: Args,
        y_error: Y | None,
        error_order: Number,
        controller_state: PyTree[Array],
    ) -> StepSizeResult[PyTree]:
        assert y_error is not None
        error, count = y_error
        inner, total = controller_state
        keep, t, t_next, jump, inner, result = self.controller.adapt_step_size(
            t0, t1, y0, y1_candidate, args, error, error_order, inner
        )
        return keep, t, t_next, jump, (inner, total + count.astype(total.dtype)), result
