"""Counting the evaluations of an implicit solver, including those of rejected steps.

When a step is rejected, diffrax restores the state of the solver but not that of the controller.
The solver therefore passes the count of each attempt to the controller, beside its error estimate.
A callback to the host for every evaluation would cost more than the steps.
"""

import itertools
from collections.abc import Callable
from typing import Any, ClassVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from ...annotations import Args, Number, StepSizeResult, Time, Y
from ..base.hooked import AbstractHook, End, HookedSolver, Start, hooks_of
from ..explicit.unrolled import StageLoop, Unrolled


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

    def init(self, *args: Any, **options: Any) -> tuple[Time, PyTree]:
        t, state = self.controller.init(*args, **options)
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


# Evaluations by the number of the run; callbacks of the counted runs increment them.
_counts: dict[int, int] = {}
_run_numbers = itertools.count()


def base_solver(solver: diffrax.AbstractSolver) -> diffrax.AbstractSolver:
    """Return the solver inside all wrappers of this package."""
    while issubclass(type(solver), HookedSolver) or type(solver) in (Unrolled, StageLoop):
        solver = solver.solver  # pyright: ignore[reportAttributeAccessIssue]
    return solver


def explicit_evaluations(solver: diffrax.AbstractSolver) -> tuple[int, int] | None:
    """Return the evaluations of each step and of the start; `None` if they are not fixed."""
    inner = base_solver(solver)
    if isinstance(inner, diffrax.AbstractERK) and type(inner) is not diffrax.HalfSolver:
        tableau = inner.tableau
        if not isinstance(tableau, diffrax.ButcherTableau):
            return None
        stages = len(tableau.c) + 1
        if tableau.fsal and not any(hook.restarts for hook in hooks_of(solver)):
            return stages - 1, 1
        return stages, 0
    if type(inner) is diffrax.Euler:
        return 1, 0
    return None


class CountedField(eqx.Module):
    """A vector field that counts its evaluations on the host, Jacobian columns excluded."""

    vector_field: Callable[..., Y]
    number: np.ndarray

    def __call__(self, t: Time, y: Y, args: Args) -> Y:
        return _count_and_evaluate(self.vector_field, self.number, t, y, args)


def _increment_count(number: np.ndarray, t: Time):
    # The callback is batched over `t`: stages that are evaluated together count one by one.
    _counts[int(number)] = _counts.get(int(number), 0) + 1


@eqx.filter_custom_jvp
def _count_and_evaluate(
    vector_field: Callable[..., Y], number: np.ndarray, t: Time, y: Y, args: Args
):
    jax.debug.callback(_increment_count, number, t)
    return vector_field(t, y, args)


@_count_and_evaluate.def_jvp
def _count_and_evaluate_jvp(primals: tuple, tangents: tuple):
    # A linearisation counts as one evaluation, whatever the number of its Jacobian columns.
    vector_field, number, t, y, args = primals
    jax.debug.callback(_increment_count, number, t)
    t_vector_field, _, *t_rest = tangents
    return eqx.filter_jvp(
        lambda field, t, y, args: field(t, y, args),
        (vector_field, t, y, args),
        (t_vector_field, *t_rest),
    )


def start_count() -> np.ndarray:
    """Start a count and return its run number."""
    number = next(_run_numbers)
    _counts[number] = 0
    return np.asarray(number)


def finish_count(number: np.ndarray) -> int:
    """End a count; return the evaluations of the run since `start_count`."""
    jax.effects_barrier()
    return _counts.pop(int(number))
