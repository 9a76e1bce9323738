"""Solvers that can make a step again, for derivatives in reverse mode."""

import abc

import diffrax
import equinox as eqx
from jaxtyping import Array, PyTree

from ...annotations import Args, Jump, Past, Repeated, Terms, Time, Y


class AbstractRepeatable(eqx.Module):
    """A solver that can make a step again, for the discrete adjoint (`rigidjax.adjoints`)."""

    @abc.abstractmethod
    def past(self, solver_state: PyTree) -> Past:
        """What of the solver's state the next step depends on.

        Unknowns of earlier steps, and their lengths; `None`, `None` for a one-step method.
        """

    @abc.abstractmethod
    def found(self, before: PyTree[Array], after: PyTree[Array]) -> PyTree[Array]:
        """What a step had to find out, from the solver's states before and after it."""

    @abc.abstractmethod
    def repeated(
        self, terms: Terms, t0: Time, t1: Time, y0: Y, args: Args, past: Past, found: PyTree[Array],
        made_jump: Jump,
    ) -> Repeated:  # fmt: skip
        """An accepted step of which everything that was iterated or chosen is known.

        Its derivatives are those of `step`.
        **Returns:** unknowns at the end, dense information, and the past of the next step.
        """


class WholeSteps(AbstractRepeatable):
    """Any solver as one that makes its steps again as a whole, from its state before them."""

    solver: diffrax.AbstractSolver

    def past(self, solver_state) -> Past:
        return eqx.filter(solver_state, eqx.is_inexact_array), None

    def found(self, before, after) -> PyTree[Array]:
        return eqx.filter(before, eqx.is_inexact_array, inverse=True)

    def repeated(self, terms, t0, t1, y0, args, past, found, made_jump) -> Repeated:
        state = eqx.combine(past[0], found)
        y1, _, dense_info, state, _ = self.solver.step(terms, t0, t1, y0, args, state, made_jump)
        return y1, dense_info, self.past(state)


class FreshSteps(AbstractRepeatable):
    """Explicit Runge-Kutta method that replays a step from its start alone."""

    solver: diffrax.AbstractERK

    def past(self, solver_state) -> Past:
        return None, None

    def found(self, before, after) -> PyTree[Array]:
        return None

    def repeated(self, terms, t0, t1, y0, args, past, found, made_jump) -> Repeated:
        state = self.solver.init(terms, t0, t1, y0, args)
        y1, _, dense_info, _, _ = self.solver.step(terms, t0, t1, y0, args, state, True)
        return y1, dense_info, self.past(state)


def repeatable(solver: diffrax.AbstractSolver) -> AbstractRepeatable:
    """The solver itself if it can make its steps again, else as one that makes whole ones."""
    if isinstance(solver, AbstractRepeatable):
        return solver
    return FreshSteps(solver) if isinstance(solver, diffrax.AbstractERK) else WholeSteps(solver)
