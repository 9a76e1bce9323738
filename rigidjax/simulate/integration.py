"""Integration of a run whose arguments have been checked."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import diffrax
import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..adjoints.boundaries import NestedForwardMode
from ..annotations import Flag, Scalar, Time
from ..checks import check_alive
from ..control.transition import Transition
from ..formulations import AbstractAbsolute, AbstractFormulation
from ..formulations.binding import bind_start
from ..formulations.charts import Unknowns
from ..formulations.joint_checks import StartFaults, decode_for_check, find_faults
from ..mechanics import has_joints
from ..persistent_jit import persistent_jit
from ..private_names import diffeqsolve
from ..projection import AbstractProjection
from ..projection.projection import ConvertedProjection
from ..signals.call_times import find_call_times
from ..signals.signal import signals_of
from ..solvers import dae_term
from ..solvers.base.hooked import hooks_of, with_hook
from ..solvers.conserving.base import AbstractStructureSolver, ModelTerm
from ..solvers.dae.base import AbstractDAESolver
from ..solvers.explicit.unrolled import is_small_field, set_stage_loop, unroll_stages
from ..solvers.wrappers.after_step import ProjectedEnd, RechartedEnd
from ..solvers.wrappers.counting import (
    CountedField,
    CountedSteps,
    CountingController,
    explicit_evaluations,
)
from ..solvers.wrappers.knots import (
    FrozenSignals,
    KnotController,
    Knots,
    find_knot_controller,
    knots_of_signals,
    separate_delays,
)
from ..solvers.wrappers.sampled import (
    SampledStart,
    before_samples,
    sample_times,
    take_first_samples,
)
from ..state import State
from .arguments import Method
from .backend_policy import backend_of, choose_call, choose_call_after, choose_call_of_run
from .endings import (
    ProjectedFunction,
    add_singularity_event,
    cut_at_crossing,
    is_okay,
    mark_invalid,
    mark_nonfinite,
    mark_singularity,
    name_result,
    nan_unless_event,
    project_saved,
)
from .solution import Solution

_SAVE_Y = diffrax.SubSaveAt(t1=True).fn


class RunArguments(NamedTuple):
    """Checked arguments of `simulate`: a problem, and the method by which it is integrated.

    Either `state0` or `y0` is set. `number` counts evaluations of the vector field on the host;
    `invalid` is a flag that an argument is not admissible, and `shortens` tells whether such a run
    has no duration; `massive`, whether no body lacks mass,
    `None` if the start needs no check; `num_samples`, the number of samples of each sampled
    controller.
    """

    model: AbstractFormulation
    state0: State | None
    y0: Unknowns | None
    t0: Array
    t1: Array
    saveat: diffrax.SaveAt
    event: diffrax.Event | None
    args: Any
    method: Method
    number: np.ndarray | None
    invalid: Array | None
    shortens: bool
    massive: bool | None
    num_samples: dict[str, int]
    transitions: tuple[Transition, ...] = ()
    max_transitions: int = 0
    sampling_start: Array | None = None

    @property
    def is_hybrid(self) -> bool:
        """Whether the run has transitions, its own or those of joints that stick."""
        return bool(self.transitions) or self.model.multibody.has_modes

    @property
    def first_sample(self) -> Array:
        """Time from which the samples of controllers count, s."""
        return self.t0 if self.sampling_start is None else self.sampling_start

    @property
    def adapts_steps(self) -> bool:
        """Whether the length of steps depends on their errors."""
        return isinstance(self.method.controller, diffrax.AbstractAdaptiveStepSizeController)

    @property
    def watches_singularity(self) -> bool:
        """Whether the run ends at a singularity of its parametrization."""
        model = self.model
        minimal = model.rotation.num_constraints == 0
        return minimal and not model.recharting and model.layout.num_rotations > 0

    @property
    def saves_between_steps(self) -> bool:
        """Whether samples at given times are saved, which lie between steps."""
        # `subs` is `None` for dense output alone.
        return getattr(self.saveat.subs, "ts", None) is not None

    @property
    def interpolates_event(self) -> bool:
        """Whether a root finder locates an event within a step."""
        return self.event is not None and self.event.root_finder is not None

    @property
    def saves_unknowns(self) -> bool:
        """Whether the unknowns themselves are saved, as opposed to a function of them."""
        return getattr(self.saveat.subs, "fn", None) is _SAVE_Y


def counts_evaluations(solver: diffrax.AbstractSolver) -> bool:
    """Return whether the state of a solver counts evaluations of the vector field."""
    return isinstance(solver, AbstractDAESolver | AbstractStructureSolver)


@functools.partial(persistent_jit, inside_jit=True)
def integrate(run: RunArguments) -> tuple[Solution, Array, StartFaults | None]:
    """Return the solution without its model, whether the run succeeded, and faults of its start."""
    model = with_call_times(run.model, run.t0, functools.partial(_unknowns_of, run))
    run = run._replace(model=separate_delays(model, run.t0, run.t1))
    call = choose_call(run.method.adjoint)
    model, y0, term, faults = call(
        _prepare, run.model, run.state0, run.y0, run.t0, run.massive, run.is_hybrid
    )
    invalid = run.invalid
    if faults is not None:
        bad = jnp.any(faults.flags)
        invalid = bad if invalid is None else invalid | bad
    run = run._replace(model=model, invalid=invalid)
    if invalid is not None and run.shortens:
        t0, t1, dt, saveat = shorten_to_zero(invalid, run.t0, run.t1, run.method.dt, run.saveat)
        method = run.method._replace(dt=dt)
        run = run._replace(t0=t0, t1=t1, saveat=saveat, method=method)
    solve = _solve
    if run.is_hybrid:
        from .hybrid import solve_segments

        solve = functools.partial(solve_segments, _solve)
    return *choose_call_of_run(run.method.adjoint)(solve, run, y0, term), faults


def _prepare(
    model: AbstractFormulation,
    state0: State | None,
    y0: Unknowns | None,
    t0: Array,
    massive: bool | None,
    is_hybrid: bool,
) -> tuple[AbstractFormulation, Unknowns, diffrax.AbstractTerm | None, StartFaults | None]:
    """Return the prepared model, its initial unknowns, its term if it is a DAE, and faults."""
    model, faults = prepare_if_constant(model), None
    if state0 is not None:
        state0 = model.place_start(state0, t0)
    if massive is not None:
        start = state0
        if start is None:
            assert y0 is not None
            start = decode_for_check(model, t0, y0)
        faults = find_faults(bind_start(model), start, t0, massive)
    dae: Any = model if isinstance(model, AbstractAbsolute) and model.index > 0 else None
    if y0 is None:
        assert state0 is not None
        state0 = state0.normalized()
        y0 = _start(model, state0, t0)
    elif dae is not None:
        state0 = model.decode(t0, y0).normalized()
    if not is_hybrid:  # In a hybrid run, contacts close before the first samples.
        y0 = take_first_samples(model, t0, y0)
    # The start was checked for consistency before.
    term = None if dae is None else dae_term(dae, state0, t0, check_start=False)
    return model, y0, term, faults


def shorten_to_zero(
    invalid: Flag, t0: Time, t1: Time, dt0: Time | None, saveat: diffrax.SaveAt
) -> tuple[Array, Array, Array | None, diffrax.SaveAt]:
    """Return times, step and samples; those of a run of zero duration if `invalid`."""
    start = jnp.where(invalid, 0.0, t0)
    t1 = jnp.where(invalid, start, t1)
    dt0 = None if dt0 is None else jnp.where(invalid, 1.0, dt0)
    subs: Any = saveat.subs
    if subs is not None and subs.ts is not None:
        ts = jnp.where(invalid, start, subs.ts)
        saveat = eqx.tree_at(lambda s: s.subs.ts, saveat, ts)
    return start, t1, dt0, saveat


def prepare_if_constant(model: AbstractFormulation) -> AbstractFormulation:
    """Return the prepared model, unless its parameters change during a run.

    Prepared values would be those of the whole run, but each step uses its own piece of a signal
    and the masses at its own time.
    """
    system = model.multibody
    changes = signals_of(model) or system.has_changing_mass or system.is_controlled
    return model if changes else model.prepare()


def _start(model: AbstractFormulation, state0: State, t0: Array) -> Unknowns:
    return model.chart(state0, t0) if model.recharting else model.start(state0, t0)


def _unknowns_of(run: RunArguments) -> Unknowns:
    """Return the unknowns of a run, or their shapes."""
    if run.y0 is not None:
        return run.y0
    return eqx.filter_eval_shape(_start, run.model, run.state0, run.t0)


def with_call_times(
    model: AbstractFormulation, t: Time, unknowns: Callable[[], Unknowns]
) -> AbstractFormulation:
    """Return the model, whose signals have the times at which its equations call them.

    **Errors:** as of `call_times.find_call_times`.
    """
    sources = list(model.multibody.sources)
    return find_call_times(model, evaluate_equations, t, unknowns, sources)


def evaluate_equations(model: AbstractFormulation, t: Scalar, y: Any) -> Any:
    """Return the rates of the unknowns, or mass matrix and right-hand side of a DAE."""
    if isinstance(model, AbstractAbsolute) and model.index > 0:
        return model.mass_matrix(t, y), model.right_hand_side(t, y)
    return model.vector_field(t, y)


def _solve(
    run: RunArguments, y0: Unknowns, term: diffrax.AbstractTerm | None
) -> tuple[Solution, Array]:
    """Integrate a prepared run; return the solution without its model, and whether it succeeded."""
    model = run.model
    if not signals_of(model) and run.number is None:
        projection = _convert_projection(run, y0)
        run = run._replace(method=run.method._replace(projection=projection))
    terms = _make_terms(run, y0, term)
    solver, controller = _make_solver_and_controller(run, terms, y0)
    # Interpolated unknowns are projected like those at the ends of steps.
    interpolated = run.saves_between_steps or run.interpolates_event
    hooks = [hook for hook in hooks_of(solver) if isinstance(hook, ProjectedEnd)]
    hook = hooks[0] if hooks and interpolated else None
    saveat = run.saveat
    if counts_evaluations(run.method.solver):
        saveat = eqx.tree_at(lambda s: s.controller_state, saveat, True)
    if hook is not None and not run.saves_unknowns:
        saveat = eqx.tree_at(lambda s: s.subs.fn, saveat, replace_fn=_after_projection(hook))
    asked = saveat.subs.ts if run.num_samples and run.saves_between_steps else None
    if asked is not None:
        ts = before_samples(model, run.first_sample, asked, not run.adapts_steps)
        saveat = eqx.tree_at(lambda s: s.subs.ts, saveat, jnp.maximum(ts, run.t0))
    if run.event is not None:
        # The end is always saved in addition, because it is where an event occurred.
        ends = [diffrax.SubSaveAt(t1=True)]
        subs = ends if saveat.subs is None else [saveat.subs, *ends]
        saveat = eqx.tree_at(lambda s: s.subs, saveat, subs, is_leaf=lambda x: x is None)
    solution = diffeqsolve(
        terms,
        solver,
        run.t0,
        run.t1,
        run.method.dt,
        y0,
        run.args,
        saveat=saveat,
        stepsize_controller=controller,
        adjoint=run.method.adjoint,
        event=add_singularity_event(model, run.event) if run.watches_singularity else run.event,
        max_steps=run.method.max_steps,
        throw=False,
        progress_meter=run.method.meter,
    )
    ts: Any = solution.ts
    ys: Any = solution.ys
    mask, at_event = solution.event_mask, None
    if run.event is not None:
        at_event = ts[-1], ys[-1]
        ts, ys = (ts[0], ys[0]) if len(ts) > 1 else (None, None)
    if asked is not None:
        ts = _with_asked_times(ts, int(run.saveat.subs.t0), asked)
    saved_ts = ts
    result = name_result(solution.result, run.method.solver, model, run.t0, run.t1)
    saved = ys is not None and run.saves_unknowns
    if hook is not None and run.saves_unknowns:
        ys = choose_call_after(solution)(project_saved, hook, ts, ys, run.t0, y0)
    if at_event is not None and hook is not None and run.interpolates_event:
        project = functools.partial(choose_call_after(solution), project_saved)
        at_event = at_event[0], project(hook, *at_event, run.t0, y0)
    if run.watches_singularity:
        result, mask = mark_singularity(result, mask)
        if saved:
            ts, ys = cut_at_crossing(model, y0, ts, ys)
    if saved:
        result = mark_nonfinite(result, saved_ts, ys)
    if run.invalid is not None:
        result, ts, ys = mark_invalid(run.invalid, result, ts, ys)
    if at_event is not None:
        at_event = nan_unless_event(result, mask, *at_event)
    stats, controller_state = _collect_stats(run, solution, solver)
    # The model is set later, because passing it through a compiled function costs time.
    no_model: Any = None
    solution = Solution(
        no_model, ts, ys, stats, result, mask, solution.interpolation,
        solution.solver_state, controller_state, *(at_event or (None, None)),
        t0=run.t0,
    )  # fmt: skip
    return solution, is_okay(result)


def _with_asked_times(ts: Any, first: int, asked: Array) -> Any:
    """Return saved times, those that were reached replaced by the ones that were asked for."""
    if ts is None:
        return None
    known = slice(first, first + len(asked))
    return ts.at[known].set(jnp.where(jnp.isfinite(ts[known]), asked, ts[known]))


def _convert_projection(run: RunArguments, y0: Unknowns) -> AbstractProjection | None:
    """Return the projection of a run, traced once."""
    model, projection = run.model, run.method.projection
    if projection is None:
        return None
    function = functools.partial(projection, model)
    return ConvertedProjection(eqx.filter_closure_convert(function, run.t0, y0))


def _make_terms(
    run: RunArguments, y0: Unknowns, term: diffrax.AbstractTerm | None
) -> diffrax.AbstractTerm:
    """Return the equations as a diffrax term that counts evaluations if the run has a counter."""
    number = run.number
    count = (lambda field: field) if number is None else lambda field: CountedField(field, number)
    if isinstance(run.method.solver, AbstractStructureSolver):
        return ModelTerm(run.model)
    if term is not None:
        return eqx.tree_at(lambda term: term.vector_field, term, replace_fn=count)
    field = run.model.vector_field
    if number is None and not signals_of(run.model):
        field = check_alive(eqx.filter_closure_convert(field, run.t0, y0, run.args))
    return diffrax.ODETerm(count(field))


def _make_solver_and_controller(
    run: RunArguments, terms: diffrax.AbstractTerm, y0: Unknowns
) -> tuple[diffrax.AbstractSolver, diffrax.AbstractStepSizeController]:
    """Return the wrapped solver and the wrapped controller."""
    model, method = run.model, run.method
    solver, controller = cast(Any, method.solver), _end_steps_at_knots(run)
    is_counted = counts_evaluations(solver)
    if is_counted:
        solver, controller = with_hook(solver, CountedSteps()), CountingController(controller)
    solver = freeze_signals_of_steps(solver, model, controller)
    solver = wrap_solver(solver, model, method.projection)
    if run.num_samples:
        solver = with_hook(solver, SampledStart(model, run.first_sample, not run.adapts_steps))
    if isinstance(method.adjoint, diffrax.ForwardMode | NestedForwardMode) and not is_counted:
        # As `AnyMode` does where it differentiates.
        form = unroll_stages if is_small_field(terms, run.t0, y0, run.args) else set_stage_loop
        solver = form(solver)
    return solver, controller


def _after_projection(hook: ProjectedEnd) -> Callable[[Callable[..., Any]], ProjectedFunction]:
    return lambda function: ProjectedFunction(function, hook)


def _collect_stats(
    run: RunArguments, solution: diffrax.Solution, solver: diffrax.AbstractSolver
) -> tuple[dict[str, Any], Any]:
    """Return work counters and backend of a run, and the controller state if it is saved."""
    names = ("num_steps", "num_accepted_steps", "num_rejected_steps")
    stats = {name: solution.stats[name] for name in names}
    controller_state: Any = solution.controller_state
    if counts_evaluations(run.method.solver):
        controller_state, stats["num_rhs"] = controller_state
        controller_state = controller_state if run.saveat.controller_state else None
    per_step = explicit_evaluations(solver)
    if per_step is not None:
        stats["num_rhs"] = per_step[0] * stats["num_steps"] + per_step[1]
    stats["backend"] = backend_of(solution)
    for name in ("derivative_error", "crossings", "jumps", "num_search_steps"):
        if name in solution.stats:
            stats[name] = solution.stats[name]
    return stats, controller_state


def wrap_solver(
    solver: diffrax.AbstractSolver,
    model: AbstractFormulation,
    projection: AbstractProjection | None,
) -> diffrax.AbstractSolver:
    """Return the solver with projection and re-charting after each step."""
    constrained = model.rotation.num_constraints > 0 or has_joints(model.system)
    if projection is not None and constrained:
        solver = with_hook(solver, ProjectedEnd(model, projection))
    return with_hook(solver, RechartedEnd(model)) if model.recharting else solver


def _end_steps_at_knots(run: RunArguments) -> diffrax.AbstractStepSizeController:
    """Return the controller; an adaptive one ends its steps at the samples of signals and of
    controllers."""
    controller = run.method.controller
    knots = knots_of_signals(run.model)
    knots += tuple(
        Knots(ts, None) for ts in sample_times(run.model, run.first_sample, run.num_samples)
    )
    has_knots = knots or signals_of(run.model)
    if not has_knots or not run.adapts_steps:
        return controller
    return KnotController(controller, knots)  # pyright: ignore[reportCallIssue]


def freeze_signals_of_steps(
    solver: diffrax.AbstractSolver,
    model: AbstractFormulation,
    controller: diffrax.AbstractStepSizeController,
) -> diffrax.AbstractSolver:
    """Return the solver, in each step of which a signal is one polynomial."""
    signals = signals_of(model)
    if not signals:
        return solver
    jumps, fixed = any(s.jumps for s in signals), find_knot_controller(controller) is None
    for signal in signals:
        has_many = signal.call_times == "any" or len(signal.clocks) > 1
        if fixed and signal.jumps and has_many:
            raise ValueError(
                f"A law calls {signal.label}, which jumps, at several times or at times that are "
                "not linear in that of the run, so that steps of a fixed length cannot end at its "
                "samples. Use an adaptive step size, or one Signal for each of the times."
            )
    return with_hook(solver, FrozenSignals(jumps, fixed))
