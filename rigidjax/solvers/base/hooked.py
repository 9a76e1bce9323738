"""Solvers with hooks: functions that change the start and the end of every step."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import diffrax
import equinox as eqx
import jax.numpy as jnp
import optimistix as optx
from jaxtyping import Array, PyTree

from ...annotations import (
    Args,
    DenseInfo,
    Flag,
    History,
    InterpolationClass,
    Number,
    ReplayResult,
    StepResult,
    Terms,
    Time,
    Y,
)
from .replayable import AbstractReplayable, AbstractStepSolver, Start, as_replayable


def innermost_solver(solver: diffrax.AbstractSolver) -> diffrax.AbstractSolver:
    """Return the solver inside all wrappers."""
    while isinstance(solver, diffrax.AbstractWrappedSolver):
        solver = solver.solver
    return solver


class DelegatedProperties(AbstractStepSolver, diffrax.AbstractWrappedSolver):
    """A wrapper with the properties of the wrapped solver."""

    solver: eqx.AbstractVar[diffrax.AbstractSolver]

    @property
    def term_structure(self) -> PyTree[type[diffrax.AbstractTerm]]:
        return self.solver.term_structure

    @property
    def term_compatible_contr_kwargs(self) -> PyTree:
        return self.solver.term_compatible_contr_kwargs

    @property
    def interpolation_cls(self) -> InterpolationClass:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.solver.interpolation_cls

    @property
    def scan_kind(self) -> str | None:
        """Kind of loop of the wrapped solver, which diffrax sets for a mode of differentiation."""
        return self.solver.scan_kind  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def root_finder(self) -> optx.AbstractRootFinder:
        return self.solver.root_finder  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def root_find_max_steps(self) -> int:
        return self.solver.root_find_max_steps  # pyright: ignore[reportAttributeAccessIssue]

    def order(self, terms: Terms) -> int | None:
        return self.solver.order(terms)

    def strong_order(self, terms: Terms) -> Number | None:
        return self.solver.strong_order(terms)

    def error_order(self, terms: Terms) -> Number | None:
        return self.solver.error_order(terms)

    def func(self, terms: Terms, t0: Time, y0: Y, args: Args) -> Y:
        return self.solver.func(terms, t0, y0, args)


class AbstractDelegating(DelegatedProperties, AbstractReplayable):
    """A wrapper that changes the steps of a solver and has its other properties."""

    @property
    def inner(self) -> AbstractReplayable:
        """The wrapped solver as one that can replay its steps."""
        return as_replayable(self.solver)


class End(NamedTuple):
    """End of a step.

    **Attributes:** `y`; `error`, `result`, `None` in a replayed step; `dense_info`; `memory`, as of
    the start of the next step.
    """

    y: Y
    error: Any
    dense_info: DenseInfo
    memory: PyTree[Array]
    result: Any


class AbstractHook(eqx.Module):
    """A change of the start and the end of every step, the same in a replayed step.

    **Attributes:** `has_flag`, whether a flag is passed from the end of a step to the next start;
    `keeps_stages`, whether the stages of an explicit method remain those of the vector field from
    the recorded start; `restarts`, whether every step evaluates the vector field at its start;
    `changes_field`, whether the hook changes the inputs of the vector field at the start.
    """

    has_flag: ClassVar[bool] = False
    keeps_stages: ClassVar[bool] = True
    changes_field: ClassVar[bool] = False

    @property
    def restarts(self) -> bool:
        return False

    def interpolation(self, inner: InterpolationClass) -> InterpolationClass:
        """Return the dense output from that of the solver with the hooks within this one."""
        return inner

    def first(self, t0: Time, t1: Time, y0: Y) -> Y:
        """Return the unknowns with which the solver is initialised."""
        return y0

    def before(self, start: Start, flag: Any) -> Start:
        """Return the start of the step for the solver with the hooks within this one."""
        return start

    def after(self, start: Start, end: End) -> tuple[End, Any]:
        """Return the changed end and the flag, from the start before this hook and the end."""
        return end, None


class HookedSolver(AbstractDelegating):
    """A solver with hooks at the start and the end of every step.

    **Arguments:** `solver`, any diffrax solver; `hooks`, outer ones first: the first one sees a
    start before, and an end after the others.
    """

    solver: diffrax.AbstractSolver
    hooks: tuple[AbstractHook, ...]

    @property
    def interpolation_cls(self) -> InterpolationClass:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Dense output with the changes by the hooks."""
        inner = self.solver.interpolation_cls
        for hook in reversed(self.hooks):
            inner = hook.interpolation(inner)
        return inner

    def init(self, terms: Terms, t0: Time, t1: Time, y0: Y, args: Args) -> PyTree[Array]:
        """Return the state of the wrapped solver, and the flags of the hooks, `False`."""
        for hook in self.hooks:
            y0 = hook.first(t0, t1, y0)
        flags = tuple(jnp.array(False) if hook.has_flag else None for hook in self.hooks)
        return self.solver.init(terms, t0, t1, y0, args), flags

    def history(self, solver_state: PyTree[Array]) -> History:
        return self.inner.history(solver_state[0])

    def step_record(self, before: PyTree[Array], after: PyTree[Array]) -> PyTree[Array]:
        """Return the wrapped solver's record, and the flags at the start of the step."""
        return self.inner.step_record(before[0], after[0]), before[1]

    def make_step(self, start: Start) -> StepResult[PyTree]:
        """Make a step of the wrapped solver between the changes of its start and its end."""
        memory, flags = start.memory

        def make(start):
            y1, error, dense_info, memory, result = self.solver.step(
                start.terms, start.t0, start.t1, start.y, start.args, start.memory, start.made_jump
            )
            return End(y1, error, dense_info, memory, result)

        start = start._replace(solver=self.solver, memory=memory)
        end, flags = self._between_hooks(make, start, flags)
        return end.y, end.error, end.dense_info, (end.memory, flags), end.result

    def replay(self, start: Start, step_record: PyTree[Array]) -> ReplayResult:
        """Replay a step of the wrapped solver between the changes of its start and its end."""
        inner_record, flags = step_record

        def make(start):
            y1, dense_info, history = self.inner.replay(start, inner_record)
            return End(y1, None, dense_info, history, None)

        end, _ = self._between_hooks(make, start._replace(solver=self.solver), flags)
        return end.y, end.dense_info, end.memory

    def finish(self, t: Time, y: Y, dense_info: DenseInfo) -> tuple[Y, DenseInfo]:
        """Return the end of a step after the hooks, of an explicit method whose stages they keep.

        **Arguments:** `t`, end of the step, s; `y`, `dense_info`, of the wrapped solver.
        """
        start = Start(self.solver, None, t, t, y, None, True, None)
        end = End(y, None, dense_info, None, None)
        for hook in reversed(self.hooks):
            end, _ = hook.after(start, end)
        return end.y, end.dense_info

    def _between_hooks(
        self, make: Callable[[Start], End], start: Start, flags: tuple[Flag | None, ...]
    ) -> tuple[End, tuple[Flag | None, ...]]:
        starts, new = [], []
        for hook, flag in zip(self.hooks, flags, strict=True):
            starts.append(start)
            start = hook.before(start, flag)
        end = make(start)
        for hook, start in zip(reversed(self.hooks), reversed(starts), strict=True):
            end, flag = hook.after(start, end)
            new.append(flag)
        return end, tuple(reversed(new))


def hooks_of(solver: diffrax.AbstractSolver) -> tuple[AbstractHook, ...]:
    """Return the hooks of a solver."""
    return solver.hooks if issubclass(type(solver), HookedSolver) else ()  # pyright: ignore


def with_hook(solver: diffrax.AbstractSolver, hook: AbstractHook, index: int = 0) -> HookedSolver:
    """Return the solver with a hook within `index` others."""
    hooks = hooks_of(solver)
    inner: Any = solver
    return HookedSolver(inner.solver if hooks else inner, (*hooks[:index], hook, *hooks[index:]))
