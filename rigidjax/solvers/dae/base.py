"""Base classes of the solvers for differential-algebraic equations."""

import abc
from typing import ClassVar

import diffrax
import equinox as eqx
from jaxtyping import PyTree

from ...annotations import Args, Count, Norm, Number, Terms, Time, Y
from ..base.replayable import AbstractReplayable, AbstractStepSolver
from ..base.terms import AbstractDAETerm, check_unknowns, flatten, unwrap
from .controllers import ProposedStepController
from .equations import build_equations, differentiation_index
from .newton import SimplifiedNewton


class AbstractDAESolver(
    AbstractStepSolver,
    diffrax.AbstractImplicitSolver,
    diffrax.AbstractAdaptiveSolver,
    AbstractReplayable,
):
    """An implicit or extrapolation method with its own step-size controller.

    **Attributes:** `max_index`, the largest differentiation index that the solver accepts; 0 for
    ordinary differential equations only; `root_finder`, the Newton iteration and its tolerances;
    `is_multistep`; `takes_residuals`, whether it solves equations as residuals; `probe_patience`,
    that of its root finder for unknowns with a probe, if it differs.
    """

    max_index: eqx.AbstractClassVar[int]
    is_multistep: ClassVar[bool] = False
    takes_residuals: ClassVar[bool] = False
    probe_patience: ClassVar[int | None] = None
    term_structure: ClassVar = diffrax.AbstractTerm
    root_finder: eqx.AbstractVar[SimplifiedNewton]

    @abc.abstractmethod
    def controller(
        self, rtol: Number, atol: Number, norm: Norm
    ) -> diffrax.AbstractStepSizeController:
        """Return the recommended step-size controller for the given tolerances."""

    def evaluations(self, solver_state: PyTree) -> Count:
        """Return the evaluations in the last attempted step, Jacobian columns excluded."""
        return solver_state.evaluations

    def func(self, terms: Terms, t0: Time, y0: Y, args: Args) -> Y:
        r"""Return the rate $\dot y$ at a point, of least norm where it is not unique."""
        y, unravel = flatten(y0)
        return unravel(build_equations(terms, t0, y0, args).start_rate(t0, y))


class AbstractProposingSolver(AbstractDAESolver):
    """A method of variable order that proposes its own step sizes."""

    def error_order(self, terms: Terms) -> int:
        """Return 1: the proposed step is inversely proportional to the returned error."""
        return 1

    def controller(self, rtol: Number, atol: Number, norm: Norm) -> ProposedStepController:
        """Return the controller that takes the steps that the method proposes."""
        return ProposedStepController(rtol=rtol, atol=atol, norm=norm)


def check_problem(solver: AbstractDAESolver, terms: Terms, y0: Y) -> None:
    """Raise if the solver does not accept the terms or the unknowns.

    **Raises:** `TypeError` for terms of another kind or unknowns that are not real, `ValueError`
    for an index that is too high or not given for every unknown.
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
