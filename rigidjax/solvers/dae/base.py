"""What the solvers of differential-algebraic equations have in common."""

import abc

import diffrax
import equinox as eqx
from jaxtyping import PyTree

from ...annotations import Count, Norm, Number, Terms, Y
from ..terms import AbstractDAETerm, check_unknowns, flatten, unwrap
from ..wrappers.replayable import AbstractReplayable
from .equations import build_equations, differentiation_index
from .newton import SimplifiedNewton
from .proposed import ProposedStepController


class AbstractDAESolver(
    diffrax.AbstractImplicitSolver, diffrax.AbstractAdaptiveSolver, AbstractReplayable
):
    """A solver that knows what a good step-size controller for it is, and which terms it takes.

    **Attributes:** `max_index`, the largest differentiation index of an unknown; 0 for ordinary
    differential equations alone.
    """

    max_index: eqx.AbstractClassVar[int]
    root_finder: eqx.AbstractVar[SimplifiedNewton]

    @abc.abstractmethod
    def controller(
        self, rtol: Number, atol: Number, norm: Norm
    ) -> diffrax.AbstractStepSizeController:
        """The step-size controller to use with this solver."""

    def evaluations(self, solver_state: PyTree) -> Count:
        """Evaluations of the equations in the last attempted step, Jacobian columns apart."""
        return solver_state.evaluations

    def func(self, terms, t0, y0, args) -> Y:
        r"""Rate $\dot y$ at a point, of least norm where the equations leave it open."""
        y, unravel = flatten(y0)
        return unravel(build_equations(terms, t0, y0, args).start_rate(t0, y))


class AbstractProposingSolver(AbstractDAESolver):
    """A method of variable order that proposes its own steps."""

    def error_order(self, terms) -> int:
        """1: the step that the method proposes is inversely proportional to what it returns."""
        return 1

    def controller(self, rtol, atol, norm) -> ProposedStepController:
        """The steps that the method proposes."""
        return ProposedStepController(rtol=rtol, atol=atol, norm=norm)


def check_problem(solver: AbstractDAESolver, terms: Terms, y0: Y) -> None:
    """Raise for a problem that is not for this solver.

    **Raises:** `TypeError` for terms and unknowns of another kind, `ValueError` for an index that
    is too high or not given for every unknown.
    """
    name = type(solver).__name__
    check_unknowns(y0, name)
    term, _ = unwrap(terms)
    if solver.max_index == 0 and isinstance(term, AbstractDAETerm):
        raise TypeError(
            f"`{name}` integrates ordinary differential equations, a `diffrax.ODETerm`; got a "
            f"`{type(term).__name__}`. Use `Radau5` or `BDF`."
        )
    index = differentiation_index(terms)
    if index is None:
        return
    size = flatten(y0)[0].size
    if len(index) != size:
        raise ValueError(
            f"`{type(term).__name__}(index=...)` has {len(index)} entries for {size} unknowns."
        )
    if max(index) > solver.max_index:
        raise ValueError(
            f"`{name}` integrates equations of index up to {solver.max_index}; got unknowns of "
            f"index {max(index)}. Use `Radau5`, or equations of a lower index."
        )
