"""Solvers that can make a step again, for derivatives in reverse mode."""

import abc

import diffrax
import equinox as eqx
from jaxtyping import Array, PyTree

from ...annotations import Args, History, Jump, ReplayResult, Terms, Time, Y


class AbstractReplayable(eqx.Module):
    """A solver that can make a step again, for the discrete adjoint (`rigidjax.adjoints`)."""

    @abc.abstractmethod
    def history(self, solver_state: PyTree) -> History:
        """What of the solver's state the next step depends on.

        Unknowns of earlier steps, and their lengths; `None`, `None` for a one-step method.
        """

    @abc.abstractmethod
    def step_record(self, before: PyTree[Array], after: PyTree[Array]) -> PyTree[Array]:
        """What a step had to find out, from the solver's states before and after it."""

    @abc.abstractmethod
    def replay(
        self, terms: Terms, t0: Time, t1: Time, y0: Y, args: Args, history: History,
        step_record: PyTree[Array], made_jump: Jump,
    ) -> ReplayResult:  # fmt: skip
        """An accepted step of which everything that was iterated or chosen is known.

        Its derivatives are those of `step`.
        **Returns:** unknowns at the end, dense information, and the history for the next step.
        """


class ReplayFromState(AbstractReplayable):
    """Any solver as one that makes its steps again as a whole, from its state before them."""

    solver: diffrax.AbstractSolver

    def history(self, solver_state) -> History:
        return eqx.filter(solver_state, eqx.is_inexact_array), None

    def step_record(self, before, after) -> PyTree[Array]:
        return eqx.filter(before, eqx.is_inexact_array, inverse=True)

    def replay(self, terms, t0, t1, y0, args, history, step_record, made_jump) -> ReplayResult:
        state = eqx.combine(history[0], step_record)
        y1, _, dense_info, state, _ = self.solver.step(terms, t0, t1, y0, args, state, made_jump)
        return y1, dense_info, self.history(state)


class ReplayFromStart(AbstractReplayable):
    """Explicit Runge-Kutta method that replays a step from its start alone."""

    solver: diffrax.AbstractERK

    def history(self, solver_state) -> History:
        return None, None

    def step_record(self, before, after) -> PyTree[Array]:
        return None

    def replay(self, terms, t0, t1, y0, args, history, step_record, made_jump) -> ReplayResult:
        state = self.solver.init(terms, t0, t1, y0, args)
        y1, _, dense_info, _, _ = self.solver.step(terms, t0, t1, y0, args, state, True)
        return y1, dense_info, self.history(state)


def as_replayable(solver: diffrax.AbstractSolver) -> AbstractReplayable:
    """The solver itself if it can make its steps again, else as one that makes whole ones."""
    if isinstance(solver, AbstractReplayable):
        return solver
    return (
        ReplayFromStart(solver)
        if isinstance(solver, diffrax.AbstractERK)
        else ReplayFromState(solver)
    )
