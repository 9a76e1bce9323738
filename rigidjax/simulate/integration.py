"""A run whose arguments have been checked: its steps, what it saved, and how it ended."""

import functools
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import numpy as np
from jaxtyping import Array

from ..adjoints.any_mode import AnyMode
from ..adjoints.probed_loop import NestedForwardMode
from ..formulations import AbstractAbsolute, AbstractFormulation
from ..formulations.charts import Unknowns
from ..mechanics import has_joints
from ..native import Backend, call_as_single_kernel, call_by_kernel
from ..projection import AbstractProjection
from ..signals.signal import signals_of
from ..solvers import Projected, Recharted, dae_term
from ..solvers.conserving.base import AbstractStructureSolver, ModelTerm
from ..solvers.dae.base import AbstractDAESolver
from ..solvers.evaluations import CountedField, explicit_evaluations
from ..solvers.explicit.unrolled import is_small_field, set_stage_loop, unroll_stages
from ..solvers.wrappers.counting import CountingController, CountingSolver
from ..solvers.wrappers.knots import KnotController, Knots, SignalFrozenStep, knots_of, separated
from ..state import State
from .endings import (
    OfProjected,
    at_event_or_nan,
    cut_at_crossing,
    is_okay,
    named_result,
    nonfinite_result,
    of_invalid,
    project_saved,
    singular_result,
    with_singularity,
)
from .sample_times import without_diffrax_checks
from .solution import Solution

_SAVE_Y = diffrax.SubSaveAt(t1=True).fn


class Run(NamedTuple):
    """What is integrated, from where to where and how: arguments of `simulate`, checked.

    Either `state0` or `y0` is given. `number` counts evaluations of the vector field on the host;
    `invalid` tells that a traced argument is not admissible.
    """

    model: AbstractFormulation
    state0: State | None
    y0: Unknowns | None
    t0: Array
    t1: Array
    dt0: Array | None
    saveat: diffrax.SaveAt
    controller: diffrax.AbstractStepSizeController
    solver: diffrax.AbstractSolver
    projection: AbstractProjection | None
    adjoint: diffrax.AbstractAdjoint
    event: diffrax.Event | None
    meter: diffrax.AbstractProgressMeter
    max_steps: int
    args: Any
    number: np.ndarray | None
    invalid: Array | None

    @property
    def watched(self) -> bool:
        """Whether the run ends where its parametrization becomes singular."""
        model = self.model
        minimal = model.rotation.num_constraints == 0
        return minimal and not model.recharting and model.layout.num_rotations > 0

    @property
    def saved_between(self) -> bool:
        """Whether anything is saved at given times, between steps."""
        # `subs` is `None` for dense output alone.
        return getattr(self.saveat.subs, "ts", None) is not None

    @property
    def interpolates_event(self) -> bool:
        """Whether the run ends within a step, where a root finder located an event."""
        return self.event is not None and self.event.root_finder is not None

    @property
    def saves_unknowns(self) -> bool:
        """Whether the unknowns themselves are saved, no function of them."""
        return getattr(self.saveat.subs, "fn", None) is _SAVE_Y


def counts_itself(solver: diffrax.AbstractSolver) -> bool:
    """Whether a solver counts its evaluations in its state."""
    return isinstance(solver, AbstractDAESolver | AbstractStructureSolver)


@eqx.filter_jit
def integrated(run: Run) -> tuple[Solution, Array]:
    """The solution, its model left out, and whether the run ended as it should."""
    run = run._replace(model=separated(run.model, run.t0, run.t1))
    kernels = isinstance(run.adjoint, AnyMode) and run.adjoint.backend != "xla"
    called = call_by_kernel if kernels else _called
    model, y0, term = called(_begun, run.model, run.state0, run.y0, run.t0)
    run = run._replace(model=model)
    ended = functools.partial(call_as_single_kernel, _is_native) if kernels else _called
    return ended(_ended, run, y0, term)


def _called(function, *args):
    return function(*args)


def _is_native(results):
    return results[0].stats["backend"] == "native"


def _begun(model, state0, y0, t0):
    """The model with what it prepares, its unknowns at a checked state, its term if it has one."""
    # Steps see the pieces of signals, what would be prepared the whole of them, and masses as they
    # are at their times.
    changes = signals_of(model) or model.multibody.has_changing_mass
    model = model if changes else model.prepared()
    implicit = isinstance(model, AbstractAbsolute) and model.index > 0
    if y0 is None:
        state0 = state0.normalized()
        y0 = model.chart(state0, t0) if model.recharting else model.start(state0, t0)
    elif implicit:
        state0 = model.decode(t0, y0).normalized()
    # Consistent by what is checked before.
    return model, y0, dae_term(model, state0, t0, check_start=False) if implicit else None


def _ended(run, y0, term):
    """What a run saved, how it ended, and whether that is as it should be."""
    model = run.model
    terms = _terms(run, term)
    solver, controller = _steps(run, terms, y0)
    # Interpolated unknowns are projected like those at the ends of steps.
    stepper: Any = solver.solver if isinstance(solver, Recharted) else solver
    interpolated = run.saved_between or run.interpolates_event
    between = isinstance(stepper, Projected) and interpolated
    saveat = run.saveat
    if counts_itself(run.solver):
        saveat = eqx.tree_at(lambda s: s.controller_state, saveat, True)
    if between and not run.saves_unknowns:
        saveat = eqx.tree_at(lambda s: s.subs.fn, saveat, replace_fn=_of_projected(stepper))
    if run.event is not None:
        # The end too, whatever else is saved: where the event was.
        ends = [diffrax.SubSaveAt(t1=True)]
        subs = ends if saveat.subs is None else [saveat.subs, *ends]
        saveat = eqx.tree_at(lambda s: s.subs, saveat, subs, is_leaf=lambda x: x is None)
    solution = without_diffrax_checks()(diffrax.diffeqsolve)(
        terms,
        solver,
        run.t0,
        run.t1,
        run.dt0,
        y0,
        run.args,
        saveat=saveat,
        stepsize_controller=controller,
        adjoint=run.adjoint,
        event=with_singularity(model, run.event) if run.watched else run.event,
        max_steps=run.max_steps,
        throw=False,
        progress_meter=run.meter,
    )
    ts: Any = solution.ts
    ys: Any = solution.ys
    mask, at_event = solution.event_mask, None
    if run.event is not None:
        at_event = ts[-1], ys[-1]
        ts, ys = (ts[0], ys[0]) if len(ts) > 1 else (None, None)
    saved_ts = ts
    result = named_result(solution.result, run.solver, model, run.t0, run.t1)
    saved = ys is not None and run.saves_unknowns
    if between and run.saves_unknowns:
        called = call_by_kernel if _backend_of(solution) == "native" else _called
        ys = called(project_saved, stepper, ts, ys, run.t0, y0)
    if at_event is not None and isinstance(stepper, Projected) and run.interpolates_event:
        called = call_by_kernel if _backend_of(solution) == "native" else _called
        at_event = at_event[0], called(project_saved, stepper, *at_event, run.t0, y0)
    if run.watched:
        result, mask = singular_result(result, mask)
        if saved:
            ts, ys = cut_at_crossing(model, y0, ts, ys)
    if saved:
        result = nonfinite_result(result, saved_ts, ys)
    if run.invalid is not None:
        result, ts, ys = of_invalid(run.invalid, result, ts, ys)
    if at_event is not None:
        at_event = at_event_or_nan(result, mask, *at_event)
    stats, controller_state = _counts(run, solution, solver)
    later: Any = None  # The model: what is handed through a compiled function costs time.
    solution = Solution(
        later, ts, ys, stats, result, mask, solution.interpolation,
        solution.solver_state, controller_state, *(at_event or (None, None)),
    )  # fmt: skip
    return solution, is_okay(result)


def _terms(run, term):
    """The equations as diffrax takes them, their evaluations counted if that is asked for."""
    number = run.number
    count = (lambda field: field) if number is None else lambda field: CountedField(field, number)
    if isinstance(run.solver, AbstractStructureSolver):
        return ModelTerm(run.model)
    if term is not None:
        return eqx.tree_at(lambda term: term.vector_field, term, replace_fn=count)
    return diffrax.ODETerm(count(run.model.vector_field))


def _steps(run, terms, y0):
    """The solver, with what follows each of its steps, and the controller of their sizes."""
    model, solver = run.model, run.solver
    controller = _ending_at_knots(run.controller, model)
    if counts_itself(run.solver):
        solver, controller = CountingSolver(solver), CountingController(controller)
    solver = _wrapped(_pinned(solver, model, controller), model, run.projection)
    if isinstance(run.adjoint, diffrax.ForwardMode | NestedForwardMode) and not counts_itself(
        run.solver
    ):
        # As `AnyMode` does where it differentiates.
        form = unroll_stages if is_small_field(terms, run.t0, y0, run.args) else set_stage_loop
        solver = form(solver)
    return solver, controller


def _of_projected(stepper):
    return lambda function: OfProjected(function, stepper)


def _backend_of(solution):
    return solution.stats.get("backend", Backend("xla", ("a diffrax adjoint",)))


def _counts(run, solution, solver):
    """Work counters and backend of a run, and the state of the controller where it is asked for."""
    names = ("num_steps", "num_accepted_steps", "num_rejected_steps")
    stats = {name: solution.stats[name] for name in names}
    controller_state: Any = solution.controller_state
    if counts_itself(run.solver):
        controller_state, stats["num_rhs"] = controller_state
        controller_state = controller_state if run.saveat.controller_state else None
    per_step = explicit_evaluations(solver)
    if per_step is not None:
        stats["num_rhs"] = per_step[0] * stats["num_steps"] + per_step[1]
    stats["backend"] = _backend_of(solution)
    if "derivative_error" in solution.stats:
        stats["derivative_error"] = solution.stats["derivative_error"]
    return stats, controller_state


def _wrapped(solver, model, projection):
    """The solver with what follows each of its steps."""
    constrained = model.rotation.num_constraints > 0 or has_joints(model.system)
    if projection is not None and constrained:
        solver = Projected(solver, model, projection)
    return Recharted(solver, model) if model.recharting else solver


def _ending_at_knots(controller, model):
    """The controller, one that chooses its steps ending them at the samples of signals."""
    signals = signals_of(model)
    if not signals or not isinstance(controller, diffrax.AbstractAdaptiveStepSizeController):
        return controller
    knots = tuple(Knots(s.ts, s.delay) for s in signals)
    return KnotController(controller, knots)  # pyright: ignore[reportCallIssue]


def _pinned(solver, model, controller):
    """The solver, each of its steps with the polynomials that signals are within it."""
    signals = signals_of(model)
    if not signals:
        return solver
    jumps = any(signal.jumps for signal in signals)
    return SignalFrozenStep(solver, jumps, fixed=knots_of(controller) is None)
