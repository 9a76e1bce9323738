"""Counting the evaluations of the vector field."""

import itertools
from collections.abc import Callable

import diffrax
import equinox as eqx
import jax
import numpy as np

from ..annotations import Args, Time, Y
from .explicit.unrolled import StageLoop, Unrolled
from .wrappers.hooked import HookedSolver, hooks_of

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
