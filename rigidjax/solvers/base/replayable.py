"""Steps of solvers from their starts, and their replay for derivatives in reverse mode."""

import abc
from typing import NamedTuple

import diffrax
import equinox as eqx
from jaxtyping import Array, PyTree

from ...annotations import Args, History, Jump, ReplayResult, StepResult, Terms, Time, Y


class Start(NamedTuple):
    """Start of a step.

    **Attributes:** `solver` that makes the step, in a hook the wrapped one; `terms`, `t0`, `t1`,
    `y`, `args`, `made_jump`, as of a step of diffrax; `memory`, state of the solver, in a replayed
    step its history.
    """

    solver: diffrax.AbstractSolver
    terms: Terms
    t0: Time
    t1: Time
    y: Y
    args: Args
    made_jump: Jump
    memory: PyTree[Array]


class AbstractStepSolver(diffrax.AbstractSolver):
    """A solver of diffrax whose steps are made from a `Start`."""

    def step(
        self, terms: Terms, t0: Time, t1: Time, y0: Y, args: Args, solver_state: PyTree[Array],
        made_jump: Jump,
    ) -> StepResult[PyTree]:  # fmt: skip
        """Make a step, with diffrax's arguments."""
        return self.make_step(Start(self, terms, t0, t1, y0, args, made_jump, solver_state))

    @abc.abstractmethod
    def make_step(self, start: Start) -> StepResult[PyTree]:
        """Return the unknowns, error estimate, dense information, state and result of a step."""


class AbstractReplayable(eqx.Module):
    """A solver that can replay a step, for the discrete adjoint (`rigidjax.adjoints`)."""

    @abc.abstractmethod
    def history(self, solver_state: PyTree) -> History:
        """Return the part of the solver's state on which derivatives of the next step depend.

        **Returns:** unknowns of earlier steps, and the lengths of these steps; `None`, `None` for a
        one-step method.
        """

    @abc.abstractmethod
    def step_record(self, before: PyTree[Array], after: PyTree[Array]) -> PyTree[Array]:
        """Return the result of the iterations and choices of a step, which replaying it needs.

        **Arguments:** `before`, `after`, states of the solver before and after the step.
        """

    @abc.abstractmethod
    def replay(self, start: Start, step_record: PyTree[Array]) -> ReplayResult:
        """Replay an accepted step without iterations, from its `step_record`.

        Derivatives are those of `step`.

        **Returns:** unknowns at the end, dense information, and the history for the next step.
        """


class ReplayFromState(AbstractReplayable):
    """Wrapper of any solver, which replays a step by repeating it from the state before it."""

    solver: diffrax.AbstractSolver

    def history(self, solver_state: PyTree[Array]) -> History:
        return eqx.filter(solver_state, eqx.is_inexact_array), None

    def step_record(self, before: PyTree[Array], after: PyTree[Array]) -> PyTree[Array]:
        return eqx.filter(before, eqx.is_inexact_array, inverse=True)

    def replay(self, start: Start, step_record: PyTree[Array]) -> ReplayResult:
        _, terms, t0, t1, y0, args, made_jump, history = start
        state = eqx.combine(history[0], step_record)
        y1, _, dense_info, state, _ = self.solver.step(terms, t0, t1, y0, args, state, made_jump)
        return y1, dense_info, self.history(state)


class ReplayFromStart(AbstractReplayable):
    """An explicit Runge-Kutta method, which replays a step from its start alone."""

    solver: diffrax.AbstractERK

    def history(self, solver_state: PyTree[Array]) -> History:
        return None, None

    def step_record(self, before: PyTree[Array], after: PyTree[Array]) -> PyTree[Array]:
        return None

    def replay(self, start: Start, step_record: PyTree[Array]) -> ReplayResult:
        _, terms, t0, t1, y0, args, _, _ = start
        state = self.solver.init(terms, t0, t1, y0, args)
        y1, _, dense_info, _, _ = self.solver.step(terms, t0, t1, y0, args, state, True)
        return y1, dense_info, self.history(state)


def as_replayable(solver: diffrax.AbstractSolver) -> AbstractReplayable:
    """Return the solver if it can replay steps, otherwise a wrapper that repeats them."""
    if isinstance(solver, AbstractReplayable):
        return solver
    return (
        ReplayFromStart(solver)
        if isinstance(solver, diffrax.AbstractERK)
        else ReplayFromState(solver)
    )
