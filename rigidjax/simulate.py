"""The entry point: a formulation, a state and an end time in, a `Solution` out."""

import contextlib
import functools
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike

from .adjoint import AnyMode
from .arguments import (
    accurate_between,
    after_step,
    check_index,
    check_signals,
    check_structure,
    checked_solver,
    save_at,
    step_control,
    times,
    with_tolerances,
)
from .checks import is_traced, is_tracing, noted_faults, precision_of
from .endings import (
    OfProjected,
    cut_at_crossing,
    is_finite,
    is_okay,
    project_saved,
    result_of_signals,
    spoiled_if_failed,
    thrown,
    with_singularity,
)
from .evaluations import (
    Counted,
    explicit_evaluations,
    finish_count,
    start_count,
)
from .formulations import AbstractAbsolute, AbstractFormulation
from .joints.base import replaced
from .meshes import as_one
from .native.backend import NAMES, Backend, as_kernel, by_kernel, checked_name
from .projection import AbstractProjection
from .results import RESULTS, SimulationError, failures_kept, note_run
from .sample_times import checked_before
from .signal import signals_of
from .solution import Solution
from .solvers import Projected, Recharted, dae_term
from .solvers.base import AbstractDAESolver
from .solvers.counting import CountingController, CountingSolver
from .solvers.knots import KnotController, Knots, Pinned, knots_of, separated
from .solvers.structure.base import AbstractStructureSolver, ModelTerm
from .solvers.unrolled import forward_stages, is_small, unrolled
from .state import State
from .system import has_joints


def simulate(
    model: AbstractFormulation,
    state0: State,
    t1: ArrayLike,
    *,
    t0: ArrayLike = 0.0,
    ts: ArrayLike | None = None,
    solver: diffrax.AbstractSolver | None = None,
    rtol: float = 1e-8,
    atol: float = 1e-8,
    dt: ArrayLike | None = None,
    projection: bool | AbstractProjection = True,
    adjoint: diffrax.AbstractAdjoint | None = None,
    event: diffrax.Event | None = None,
    progress: bool | diffrax.AbstractProgressMeter = False,
    max_steps: int = 100_000,
    throw: bool = True,
    saveat: diffrax.SaveAt | None = None,
    stepsize_controller: diffrax.AbstractStepSizeController | None = None,
    args: Any = None,
    backend: str = "auto",
) -> Solution:
    r"""Integrate a formulation in time.

    Assembles the arguments of `diffrax.diffeqsolve`; all of it can be done with diffrax directly,
    with `diffrax.ODETerm(model.vector_field)`, `model.encode(state0)` and the solvers in
    `rj.solvers`. Works under `jax.jit`, `jax.vmap`, `jax.jvp`, `jax.grad` and their compositions.

    **Arguments:**

    - `model`: a formulation such as `rj.NullSpace(system)`.
    - `state0`: the state at `t0`.
    - `t1`, `t0`: end and start, s; `t1 > t0`.
    - `ts`: times to save at, increasing, within `[t0, t1]`; `None` saves the end alone.
    - `solver`: any diffrax solver of ordinary differential equations; `None` for
      `diffrax.Dopri8()`. Equations of index 1, 2, 3 take `rj.solvers.Radau5()` or `BDF()`.
    - `rtol`, `atol`: tolerances of the adaptive step size, per unknown.
    - `dt`: a fixed step, s; the tolerances then serve implicit solvers only. Adaptive steps end at
      the samples of an `rj.Signal`, fixed ones must end where it jumps.
    - `projection`: after every step, `True` for the closed form of the parametrization, `False` for
      none, or a projection such as `rj.projection.MassMetric()`. It also acts on what is saved
      between steps. A joint that it cannot close ends the run with `RESULTS.joints_open`; without
      a projection look at `Solution.warnings`. Structure-preserving solvers run without any.
    - `adjoint`: a diffrax adjoint; `None` for `rj.AnyMode()`, forward and reverse mode of any
      order.
    - `event`: a `diffrax.Event`; its functions get the unknowns `y`, see `model.decode`.
    - `progress`: `True` for a progress line, or a diffrax progress meter.
    - `max_steps`: steps, accepted and rejected, after which the run ends with a named result; those
      that end at samples of an `rj.Signal` come on top.
    - `throw`: raise `SimulationError` for a run that fails; if `False`, look at `Solution.result`.
      Then also a traced state, time or step that is not admissible is the result of its own run,
      `RESULTS.invalid_input`, as is a model that was built with such numbers in a lane of
      `jax.vmap`; the other lanes run on.
    - `saveat`: a `diffrax.SaveAt` instead of `ts`, for dense output, steps, solver state.
    - `stepsize_controller`: a diffrax controller instead of `rtol`, `atol`, `dt`.
    - `args`: handed to the vector field and to events.
    - `backend`: `"native"` for one machine-code kernel for the whole run, `"xla"` for XLA's
      kernels, `"auto"` for the first where that is possible. `sol.stats["backend"]` says which it
      was, its `why_not` what kept it from being native; see `docs/native.md`.

    **Returns:** a `Solution`.
    **Raises:** `ValueError` and `TypeError` for arguments that do not fit, `SimulationError`.
    """
    spoiled, throw = throw and failures_kept.value, throw and not failures_kept.value
    if not isinstance(model, AbstractFormulation):
        raise TypeError(
            "`simulate(model, ...)` takes a formulation such as `rj.NullSpace(system)`; got "
            f"{type(model).__name__}."
        )
    method = checked_solver(solver)
    check_index(model, method)
    check_structure(model, method, projection, stepsize_controller, dt)
    # Time has the precision of everything else, since diffrax promotes the unknowns to it.
    dtype = precision_of(model, state0)
    with contextlib.nullcontext([]) if throw else noted_faults() as of_times:
        t0, t1 = times(t0, t1, dtype)
        saveat = save_at(saveat, ts, t0, t1, dtype)
        controller, dt0 = step_control(method, stepsize_controller, rtol, atol, dt, dtype)
    with contextlib.nullcontext([]) if throw else noted_faults() as of_state:
        state0 = model.check_state(state0, t0)
    check_signals(model, method, controller, t0, t1, event)
    method = with_tolerances(method, controller, rtol, atol)
    method = accurate_between(method, saveat, event)
    projected = after_step(projection, method)
    if isinstance(progress, bool):
        progress = diffrax.TextProgressMeter() if progress else _NO_METER
    adjoint = _with_backend(adjoint, checked_name(backend))
    max_steps += sum(len(signal.ts) for signal in signals_of(model))
    known = (model, state0, t0, t1, dt0, saveat, controller, method, args)
    traced = is_traced(known) or is_tracing()
    # A host counter needs a run of its own: under a transformation nobody reads it.
    counts_itself = isinstance(method, AbstractDAESolver | AbstractStructureSolver)
    count = explicit_evaluations(method) is None and not counts_itself and not traced
    number = start_count() if count else None
    invalid = _any([*of_times, *of_state, *_nan_leaves(model)])
    # Adaptive steps of what is not finite are rejected for ever. Fixed ones end; there all lanes of
    # a batch keep one and the same time, which is faster.
    adaptive = isinstance(controller, diffrax.AbstractAdaptiveStepSizeController)
    stopped = invalid if adaptive else _any(of_times)
    if stopped is not None:
        t0, t1, dt0, saveat = _no_time(stopped, t0, t1, dt0, saveat)
    run = model.gathered()

    def solve(saveat, number):
        solution, okay = as_one(
            _solve, run, state0, t0, t1, dt0, saveat, controller, method, projected, adjoint, event,
            progress, max_steps, args, number, invalid,
        )  # fmt: skip
        return replaced(solution, model=model), okay

    solution, okay = solve(saveat, number)
    if number is not None:
        stats = {**solution.stats, "num_rhs": jnp.asarray(finish_count(number))}
        solution = eqx.tree_at(lambda s: s.stats, solution, stats, is_leaf=lambda x: x is None)
    if solution.ts is not None:
        note_run(solution)
    if spoiled:
        return spoiled_if_failed(solution, okay)
    if not throw:
        return solution
    if not traced and not np.asarray(okay).all() and np.all(solution.result == RESULTS.joints_open):
        # What was saved may end long before the end.
        opening = solve(_SAVE_END, None)[0].warnings
        raise SimulationError(" ".join([RESULTS[solution.result], *opening]))
    return thrown(solution, okay, traced)


# Made once: building modules costs more than a short run.
_ANY_MODE = {name: AnyMode(backend=name) for name in NAMES}
_NO_METER = diffrax.NoProgressMeter()
_SAVE_END = diffrax.SaveAt(t1=True)
_SAVE_Y = diffrax.SubSaveAt(t1=True).fn


@eqx.filter_jit
def _solve(
    model, state0, t0, t1, dt0, saveat, controller, solver, projection, adjoint, event,
    meter, max_steps, args, number, invalid,
):  # fmt: skip
    model = separated(model, t0, t1)
    kernels = isinstance(adjoint, AnyMode) and adjoint.backend != "xla"
    model, y0, term = (by_kernel if kernels else _called)(_begun, model, state0, t0)
    # Joints that are closed at all times between steps would be written out for each of them.
    many = has_joints(model.system) and getattr(saveat.subs, "ts", None) is not None
    integrated = functools.partial(as_kernel, _is_native) if kernels and not many else _called
    return integrated(
        _ended, model, y0, term, t0, t1, dt0, saveat, controller, solver, projection, adjoint,
        event, meter, max_steps, args, number, invalid,
    )  # fmt: skip


def _called(function, *args):
    return function(*args)


def _is_native(results):
    return results[0].stats["backend"] == "native"


def _begun(model, state0, t0):
    """The model with what it prepares, its unknowns at a checked state, its term if it has one."""
    # Steps see the pieces of signals, what would be prepared the whole of them.
    model = model if signals_of(model) else model.prepared()
    state0 = state0.normalized()
    y0 = model.chart(state0, t0) if model.recharting else model.start(state0, t0)
    # Consistent by what is checked before.
    implicit = isinstance(model, AbstractAbsolute) and model.index > 0
    return model, y0, dae_term(model, state0, t0, check_start=False) if implicit else None


def _ended(
    model, y0, term, t0, t1, dt0, saveat, controller, solver, projection, adjoint, event,
    meter, max_steps, args, number, invalid,
):  # fmt: skip
    """What a run saved, how it ended, and whether that is as it should be."""
    asked = saveat
    structured = isinstance(solver, AbstractStructureSolver)
    counts_itself = structured or isinstance(solver, AbstractDAESolver)
    failure: Any = getattr(RESULTS, solver.failure if structured else "nonlinear_divergence")
    controller = _ending_at_knots(controller, model)
    if counts_itself:
        solver, controller = CountingSolver(solver), CountingController(controller)
        saveat = eqx.tree_at(lambda s: s.controller_state, saveat, True)
    solver = _wrapped(_pinned(solver, model, controller), model, projection)
    count = (lambda field: field) if number is None else lambda field: Counted(field, number)
    if structured:
        terms = ModelTerm(model)
    elif term is not None:
        terms = eqx.tree_at(lambda term: term.vector_field, term, replace_fn=count)
    else:
        terms = diffrax.ODETerm(count(model.vector_field))
    if isinstance(adjoint, diffrax.ForwardMode) and not structured and not counts_itself:
        # As `AnyMode` does where it differentiates.
        form = unrolled if is_small(terms, t0, y0, args) else forward_stages
        solver = form(solver)
    minimal = model.rotation.num_constraints == 0
    watch = minimal and not model.recharting and model.layout.num_rotations > 0
    projected: Any = solver.solver if isinstance(solver, Recharted) else solver
    subs: Any = saveat.subs
    # Without `subs` for dense output alone.
    between = isinstance(projected, Projected) and getattr(subs, "ts", None) is not None
    plain = getattr(subs, "fn", None) is _SAVE_Y
    if between and not plain:
        saveat = eqx.tree_at(lambda s: s.subs.fn, saveat, OfProjected(subs.fn, projected))
    solution = checked_before()(diffrax.diffeqsolve)(
        terms,
        solver,
        t0,
        t1,
        dt0,
        y0,
        args,
        saveat=saveat,
        stepsize_controller=controller,
        adjoint=adjoint,
        event=with_singularity(model, event) if watch else event,
        max_steps=max_steps,
        throw=False,
        progress_meter=meter,
    )
    ts, ys = solution.ts, solution.ys
    if between and plain:
        ys = project_saved(projected, solution.ts, ys, t0, y0)
    result = RESULTS.promote(solution.result)
    result = RESULTS.where(result == RESULTS.nonlinear_divergence, failure, result)
    result = result_of_signals(result, model, t0, t1)
    # In a run, as `JOINTS_OPEN`.
    result = RESULTS.where(result == RESULTS.stagnation, RESULTS.joints_open, result)
    mask: Any = solution.event_mask
    if watch:
        singular = jnp.any(jnp.stack(jax.tree.leaves(mask["singular"])))
        result = RESULTS.where(singular, RESULTS.singular_parametrization, result)
        mask = mask.get("user")
    saved = ys is not None and plain
    if watch and saved:
        ts, ys = cut_at_crossing(model, y0, ts, ys)
    if saved:
        result = RESULTS.where(
            is_finite(solution, ys) | ~is_okay(result), result, RESULTS.nonfinite_state
        )
    stats = {
        key: solution.stats[key]
        for key in ("num_steps", "num_accepted_steps", "num_rejected_steps")
    }
    per_step = explicit_evaluations(solver)
    controller_state: Any = solution.controller_state
    if counts_itself:
        controller_state, stats["num_rhs"] = controller_state
        controller_state = controller_state if asked.controller_state else None
    if per_step is not None:
        stats["num_rhs"] = per_step[0] * stats["num_steps"] + per_step[1]
    stats["backend"] = solution.stats.get("backend", Backend("xla", ("a diffrax adjoint",)))
    if invalid is not None:
        result = RESULTS.where(invalid, RESULTS.invalid_input, result)
        ts, ys = jax.tree.map(
            lambda x: jnp.where(invalid, jnp.asarray(jnp.inf, x.dtype), x)
            if eqx.is_inexact_array(x) else x,
            (ts, ys),
        )  # fmt: skip
    okay = is_okay(result)
    later: Any = None  # The model: what is handed through a compiled function costs time.
    solution = Solution(
        later, ts, ys, stats, result, mask, solution.interpolation,
        solution.solver_state, controller_state,
    )  # fmt: skip
    return solution, okay


def _with_backend(adjoint, backend):
    """The adjoint that takes this backend."""
    if adjoint is None:
        return _ANY_MODE[backend]
    if backend == "auto":
        return adjoint
    if isinstance(adjoint, AnyMode):
        return AnyMode(adjoint.checkpoints, backend)
    if backend == "native":
        raise ValueError(
            '`backend="native"` runs with `rj.AnyMode()`; got '
            f"`adjoint={type(adjoint).__name__}()`. Leave out one of the two."
        )
    return adjoint


def _nan_leaves(model):
    """Flags of the traced numbers of a model; NaN is what a check made of a bad one in a lane."""
    leaves = filter(eqx.is_inexact_array, jax.tree.leaves(model))
    return [jnp.any(jnp.isnan(leaf)) for leaf in leaves if is_traced(leaf)]


def _any(flags):
    return jnp.any(jnp.stack(flags)) if flags else None


def _no_time(invalid, t0, t1, dt0, saveat):
    """A run that ends where it begins if it is invalid."""
    start = jnp.where(invalid, 0.0, t0)
    t1 = jnp.where(invalid, start, t1)
    dt0 = None if dt0 is None else jnp.where(invalid, 1.0, dt0)
    subs: Any = saveat.subs
    if subs is not None and subs.ts is not None:
        ts = jnp.where(invalid, start, subs.ts)
        saveat = eqx.tree_at(lambda s: s.subs.ts, saveat, ts)
    return start, t1, dt0, saveat


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
    return Pinned(solver, jumps, fixed=knots_of(controller) is None)
