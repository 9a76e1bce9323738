"""Counting the evaluations of an implicit solver, including those of rejected steps.

When a step is rejected, diffrax restores the state of the solver but not that of the controller.
The solver therefore passes the count of each attempt to the controller, beside its error estimate.
A callback to the host for every evaluation would cost more than the steps.
"""

from collections.abc import Callable

import diffrax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from ...annotations import (
    Args,
    History,
    InterpolationClass,
    Jump,
    Number,
    ReplayResult,
    StepResult,
    StepSizeResult,
    Terms,
    Time,
    Y,
)
from ..conserving.base import AbstractStructureSolver
from ..dae.base import AbstractDAESolver
from .after_step import AbstractDelegating


class CountingSolver(AbstractDelegating):
    """A wrapper that passes the evaluations of each step of `solver` to a `CountingController`."""

    solver: AbstractDAESolver | AbstractStructureSolver

    @property
    def interpolation_cls(self) -> InterpolationClass:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.solver.interpolation_cls

    def init(self, terms: Terms, t0: Time, t1: Time, y0: Y, args: Args) -> PyTree[Array]:
        return self.solver.init(terms, t0, t1, y0, args)

    def history(self, solver_state: PyTree[Array]) -> History:
        return self.inner.history(solver_state)

    def step_record(self, before: PyTree[Array], after: PyTree[Array]) -> PyTree[Array]:
        return self.inner.step_record(before, after)

    def replay(
        self,
        terms: Terms,
        t0: Time,
        t1: Time,
        y0: Y,
        args: Args,
        history: History,
        step_record: PyTree[Array],
        made_jump: Jump,
    ) -> ReplayResult:
        return self.inner.replay(terms, t0, t1, y0, args, history, step_record, made_jump)

    def step(
        self,
        terms: Terms,
        t0: Time,
        t1: Time,
        y0: Y,
        args: Args,
        solver_state: PyTree[Array],
        made_jump: Jump,
    ) -> StepResult[PyTree]:
        """Make a step; the error estimate is paired with the number of evaluations."""
        y1, error, dense_info, state, result = self.solver.step(
            terms, t0, t1, y0, args, solver_state, made_jump
        )
        return y1, (error, self.solver.evaluations(state)), dense_info, state, result


class CountingController(diffrax.AbstractStepSizeController):
    """A controller that also sums the evaluations that a `CountingSolver` reports.

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
