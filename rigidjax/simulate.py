"""The entry point: a formulation, a state and an end time in, a `Solution` out."""

import functools
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jaxtyping import ArrayLike

from .adjoint import AnyMode
from .checks import check, finite, float_array, is_traced, is_tracing
from .evaluations import (
    Counted,
    explicit_evaluations,
    finish_count,
    is_after_step,
    start_count,
)
from .formulations import Absolute, AbstractFormulation, Charted
from .formulations.charts import split_chart
from .projection import AbstractProjection, Explicit
from .results import RESULTS, SimulationError
from .solution import Solution
from .solvers import Projected, Recharted, dae_term
from .solvers.base import AbstractDAESolver
from .solvers.counting import CountingController, CountingSolver
from .state import State

# A run without re-charting ends this close to a singularity, in rad.
_SINGULAR_ANGLE = 1e-3


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
    - `dt`: a fixed step, s; the tolerances then serve implicit solvers only.
    - `projection`: after every step, `True` for the closed form of the parametrization, `False` for
      none, or a projection such as `rj.projection.MassMetric()`. It also acts on what is saved
      between steps.
    - `adjoint`: a diffrax adjoint; `None` for `rj.AnyMode()`, forward and reverse mode of any
      order.
    - `event`: a `diffrax.Event`; its functions get the unknowns `y`, see `model.decode`.
    - `progress`: `True` for a progress line, or a diffrax progress meter.
    - `max_steps`: steps, accepted and rejected, after which the run ends with a named result.
    - `throw`: raise `SimulationError` for a run that fails; if `False`, look at `Solution.result`.
    - `saveat`: a `diffrax.SaveAt` instead of `ts`, for dense output, steps, solver state.
    - `stepsize_controller`: a diffrax controller instead of `rtol`, `atol`, `dt`.
    - `args`: handed to the vector field and to events.

    **Returns:** a `Solution`.
    **Raises:** `ValueError` and `TypeError` for arguments that do not fit, `SimulationError`.
    """
    if not isinstance(model, AbstractFormulation):
        raise TypeError(
            "`simulate(model, ...)` takes a formulation such as `rj.NullSpace(system)`; got "
            f"{type(model).__name__}."
        )
    method = _solver(solver)
    _check_index(model, method)
    # Time has the precision of everything else, since diffrax promotes the unknowns to it.
    dtype = jnp.result_type(*filter(eqx.is_inexact_array, jax.tree.leaves((model, state0))))
    t0, t1 = _check_times(t0, t1, dtype)
    state0 = model.check_state(state0, t0)
    saveat = _save_at(saveat, ts, t0, t1, dtype)
    controller, dt0 = _controller(method, stepsize_controller, rtol, atol, dt, dtype)
    method = _with_tolerances(method, controller, rtol, atol)
    after_step = _projection(projection)
    if isinstance(progress, bool):
        progress = diffrax.TextProgressMeter() if progress else _NO_METER
    adjoint = _ANY_MODE if adjoint is None else adjoint
    known = (model, state0, t0, t1, dt0, saveat, controller, method, args)
    traced = is_traced(known) or is_tracing()
    # A host counter needs a run of its own: under a transformation nobody reads it.
    counts_itself = isinstance(method, AbstractDAESolver)
    count = explicit_evaluations(method) is None and not counts_itself and not traced
    number = start_count() if count else None
    solution, okay = _solve(
        model, state0, t0, t1, dt0, saveat, controller, method, after_step, adjoint, event,
        progress, max_steps, args, number,
    )  # fmt: skip
    if number is not None:
        stats = {**solution.stats, "num_rhs": jnp.asarray(finish_count(number))}
        solution = eqx.tree_at(lambda s: s.stats, solution, stats, is_leaf=lambda x: x is None)
    return _throw(solution, okay, traced) if throw else solution


# Made once: building modules costs more than a short run.
_ANY_MODE = AnyMode()
_DOPRI8 = diffrax.Dopri8()
_EXPLICIT = Explicit()
_NO_METER = diffrax.NoProgressMeter()
_SAVE_END = diffrax.SaveAt(t1=True)
_SAVE_Y = diffrax.SubSaveAt(t1=True).fn


@eqx.filter_jit
def _solve(
    model, state0, t0, t1, dt0, saveat, controller, solver, projection, adjoint, event,
    meter, max_steps, args, number,
):  # fmt: skip
    asked = saveat
    counts_itself = isinstance(solver, AbstractDAESolver)
    if counts_itself:
        solver, controller = CountingSolver(solver), CountingController(controller)
        saveat = eqx.tree_at(lambda s: s.controller_state, saveat, True)
    solver = _wrapped(solver, model, projection)
    state0 = state0.normalized()
    y0 = model.chart(state0, t0) if model.recharting else model.start(state0, t0)
    count = (lambda field: field) if number is None else lambda field: Counted(field, number)
    if isinstance(model, Absolute) and model.index > 0:
        terms = dae_term(model)
        terms = eqx.tree_at(lambda term: term.vector_field, terms, replace_fn=count)
    else:
        terms = diffrax.ODETerm(count(model.vector_field))
    minimal = model.rotation.num_constraints == 0
    watch = minimal and not model.recharting
    solution = diffrax.diffeqsolve(
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
        event=_with_singularity(model, event) if watch else event,
        max_steps=max_steps,
        throw=False,
        progress_meter=meter,
    )
    ts, ys = solution.ts, solution.ys
    projected = solver.solver if isinstance(solver, Recharted) else solver
    if isinstance(projected, Projected) and saveat.subs is not None and ys is not None:
        ys = _project_saved(projected, solution.ts, ys, saveat)
    result = RESULTS.promote(solution.result)
    mask: Any = solution.event_mask
    if watch:
        singular = jnp.any(jnp.stack(jax.tree.leaves(mask["singular"])))
        result = RESULTS.where(singular, RESULTS.singular_parametrization, result)
        mask = mask.get("user")
    subs: Any = saveat.subs
    saved = ys is not None and subs.fn is _SAVE_Y
    if watch and saved:
        ts, ys = _cut_at_crossing(model, y0, ts, ys)
    if saved:
        result = RESULTS.where(
            _is_finite(solution, ys) | ~_is_okay(result), result, RESULTS.nonfinite_state
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
    okay = _is_okay(result)
    solution = Solution(
        model, ts, ys, stats, result, mask, solution.interpolation,
        solution.solver_state, controller_state,
    )  # fmt: skip
    return solution, okay


def _is_okay(result):
    return (result == RESULTS.successful) | (result == RESULTS.event_occurred)


def _is_finite(solution, ys):
    """Whether everything that was saved is finite (what was not reached is padded)."""
    values, _ = split_chart(ys)
    return jnp.all(jnp.isfinite(values) | ~jnp.isfinite(solution.ts)[:, None])


def _project_saved(solver, ts, ys, saveat):
    """What was saved between steps is interpolated: project it like the steps themselves."""
    if saveat.subs.fn is not _SAVE_Y or saveat.subs.ts is None:
        return ys

    def project(t, y):
        projected, _, _ = solver.after(t, y)
        reached = jnp.isfinite(t)
        return jax.tree.map(lambda new, old: jnp.where(reached, new, old), projected, y)

    safe = jax.tree.map(lambda y: y, ys)
    return jax.vmap(project)(ts, safe)


def _with_singularity(model, event):
    """`event` together with the events that a minimal parametrization becomes singular."""

    def near(t, y, args, **kwargs):
        return ~(model.singularity(t, y) > _SINGULAR_ANGLE)

    def crossing(i):
        def function(t, y, args, **kwargs):
            values, _ = split_chart(y)
            return model.rotation.singularity_function(model.layout.coordinates(values, i))

        return function

    crossings = [crossing(i) for i in range(model.layout.num_bodies)]
    none = [None] * len(crossings)
    conditions: Any = {"singular": {"near": near, "crossings": crossings}}
    directions: Any = {"singular": {"near": None, "crossings": none}}
    if event is None:
        return diffrax.Event(conditions)
    conditions["user"], directions["user"] = event.cond_fn, event.direction
    return diffrax.Event(conditions, event.root_finder, directions)


def _cut_at_crossing(model, y0, ts, ys):
    """What was saved, without what lies behind a singularity that the last step went across."""
    bodies = range(model.layout.num_bodies)

    def sides(y):
        coordinates = [model.layout.coordinates(y, i) for i in bodies]
        return jnp.sign(jnp.stack([model.rotation.singularity_function(a) for a in coordinates]))

    start = sides(y0)
    crossed = jnp.cumsum(jax.vmap(lambda y: jnp.any(sides(y) != start))(ys)) > 0
    return jnp.where(crossed, jnp.inf, ts), jnp.where(crossed[:, None], jnp.inf, ys)


def _check_times(t0, t1, dtype):
    t0, t1 = (_as_time(t, f"simulate({name}=...)", dtype) for name, t in (("t0", t0), ("t1", t1)))
    if is_traced((t0, t1)):
        t1 = check(jnp.asarray(t1), lambda t1: t1 > t0, "`simulate` needs t1 > t0.")
    elif not t1 > t0:
        raise ValueError(
            f"`simulate` needs t1 > t0; got t0 = {float(t0)}, t1 = {float(t1)}. To run backwards, "
            "reverse the velocities or use diffrax directly."
        )
    return t0, t1


def _as_time(t, argument, dtype):
    """A checked time in the precision of the run."""
    t = finite(float_array(t, argument, ()), argument)
    return jnp.asarray(t, dtype) if is_traced(t) else t.astype(dtype)


def _save_at(saveat, ts, t0, t1, dtype):
    if saveat is not None:
        if ts is not None:
            raise ValueError("Give `simulate` either `ts=` or `saveat=`, not both.")
        if not isinstance(saveat, diffrax.SaveAt):
            raise TypeError(f"`simulate(saveat=...)` takes a `diffrax.SaveAt`; got {saveat!r}.")
        only_dense = saveat.subs is None and saveat.dense
        if not (only_dense or isinstance(saveat.subs, diffrax.SubSaveAt)):
            raise ValueError(
                "`simulate(saveat=...)` takes one set of times, not `SaveAt(subs=...)`; for "
                "several use `diffrax.diffeqsolve` with `model.vector_field`."
            )
        subs: Any = saveat.subs
        if only_dense or subs.ts is None:
            return saveat
        return eqx.tree_at(lambda s: s.subs.ts, saveat, jnp.asarray(subs.ts, dtype))
    if ts is None:
        return _SAVE_END
    ts = float_array(ts, "simulate(ts=...)")
    if ts.ndim != 1 or ts.size == 0:
        raise ValueError(f"`simulate(ts=...)` must have shape (T,); got shape {ts.shape}.")
    if not is_traced(ts):
        # Rounded like t0 and t1 before anything is compared.
        ts = finite(ts, "simulate(ts=...)").astype(dtype)
        if not np.all(np.diff(ts) > 0):
            raise ValueError(f"`simulate(ts=...)` must be strictly increasing in {dtype}.")
        if not is_traced((t0, t1)) and (ts[0] < t0 or ts[-1] > t1):
            raise ValueError(
                f"`simulate(ts=...)` must lie between t0 = {float(t0)} and t1 = {float(t1)}; got "
                f"times from {ts[0]} to {ts[-1]}."
            )
    return diffrax.SaveAt(ts=jnp.asarray(ts, dtype))


def _controller(solver, controller, rtol, atol, dt, dtype):
    if controller is not None:
        if not isinstance(controller, diffrax.AbstractStepSizeController):
            raise TypeError(
                "`simulate(stepsize_controller=...)` takes a diffrax controller such as "
                f"`diffrax.PIDController(rtol=..., atol=...)`; got {controller!r}."
            )
        return controller, None if dt is None else _step(dt, dtype)
    floor = 10 * float(jnp.finfo(dtype).eps)
    for name, value in (("rtol", rtol), ("atol", atol)):
        known = float_array(value, f"simulate({name}=...)", ())
        if not is_traced(value) and not known >= 0:
            raise ValueError(f"`simulate({name}=...)` must be a number >= 0; got {value!r}.")
    if not is_traced((rtol, atol)) and rtol < floor and atol < floor:
        raise ValueError(
            f"The tolerances rtol = {rtol:g} and atol = {atol:g} are below what {dtype} "
            f"reaches. Give `simulate` at least {floor:.1g}"
            + (
                ", or use double precision: `jax.config.update('jax_enable_x64', True)`."
                if dtype == jnp.float32
                else "."
            )
        )
    if dt is not None:
        return diffrax.ConstantStepSize(), _step(dt, dtype)
    if isinstance(solver, AbstractDAESolver):
        rtol, atol = jnp.asarray(rtol, dtype), jnp.asarray(atol, dtype)
        return solver.controller(rtol, atol, _norm), None
    if is_traced((rtol, atol)):
        return diffrax.PIDController(rtol=rtol, atol=atol, norm=_norm), None
    return _pid(float(rtol), float(atol), dtype), None


def _step(dt, dtype):
    name = "simulate(dt=...)"
    return check(_as_time(dt, name, dtype), lambda h: h > 0, f"`{name}` must be positive.")


@functools.lru_cache(maxsize=64)
def _pid(rtol, atol, dtype):
    # Arrays: numbers would be constants of the compiled program.
    rtol, atol = np.asarray(rtol, dtype), np.asarray(atol, dtype)
    return diffrax.PIDController(rtol=rtol, atol=atol, norm=_norm)


def _norm(y):
    """Root mean square over the unknowns proper; the references of charts have no error."""
    if isinstance(y, Charted):
        y = y.values
    return optx.rms_norm(y)


def _check_index(model, solver):
    """Raise for equations of an index that the solver does not integrate."""
    if not isinstance(model, Absolute) or model.index == 0:
        return
    name = f"`{type(model).__name__}(index={model.index})`"
    if not isinstance(solver, AbstractDAESolver) or solver.max_index == 0:
        raise ValueError(
            f"{name} is a differential-algebraic equation, which `{type(solver).__name__}` does "
            "not integrate. Use `solver=rj.solvers.Radau5()` or `rj.solvers.BDF()`, or an ordinary "
            "differential equation: `Absolute(..., index=0)` or `NullSpace`."
        )
    if max(model.indices) > solver.max_index:
        raise ValueError(
            f"`{type(solver).__name__}` integrates equations of index up to {solver.max_index}; "
            f"got {name}. Use `solver=rj.solvers.Radau5()` or a lower index."
        )


def _solver(solver):
    if solver is None:
        return _DOPRI8
    if not isinstance(solver, diffrax.AbstractSolver):
        raise TypeError(
            "`simulate(solver=...)` takes a diffrax solver such as `diffrax.Dopri5()`, an instance "
            f"and not a class; got {solver!r}."
        )
    if is_after_step(solver):
        raise TypeError(
            "`simulate` wraps the solver itself: give it the solver inside "
            f"{type(solver).__name__} and `projection=`."
        )
    return solver


def _projection(projection):
    if projection is True:
        return _EXPLICIT
    if projection is False or isinstance(projection, AbstractProjection):
        return projection or None
    raise TypeError(
        "`simulate(projection=...)` takes True, False or a projection such as "
        f"`rj.projection.MassMetric()`; got {projection!r}."
    )


def _wrapped(solver, model, projection):
    """The solver with what follows each of its steps."""
    constrained = model.rotation.num_constraints > 0 or model.jointed is not None
    if projection is not None and constrained:
        solver = Projected(solver, model, projection)
    return Recharted(solver, model) if model.recharting else solver


def _with_tolerances(solver, controller, rtol, atol):
    """An implicit solver whose root finder knows its tolerances, also at a fixed step.

    In the place of diffrax's default, `VeryChord`, comes optimistix's `Chord`. The former reports
    divergence whenever two iterations do not suffice, which makes fixed steps fail and adaptive
    steps ten times shorter than the error allows (heavy top, Kvaerno5 at 1e-8: 1733 steps for 187).
    """
    if not isinstance(solver, diffrax.AbstractImplicitSolver):
        return solver
    if isinstance(controller, diffrax.AbstractAdaptiveStepSizeController):
        rtol, atol = controller.rtol, controller.atol
    finder = solver.root_finder
    norm = _norm if isinstance(solver, AbstractDAESolver) else optx.rms_norm
    values = {"rtol": rtol, "atol": atol, "norm": norm}
    placeholder = diffrax.with_stepsize_controller_tols(optx.Newton)().rtol
    missing = [name for name in values if getattr(finder, name, None) is placeholder]
    if not missing:
        return solver
    if type(finder) is diffrax.VeryChord and len(missing) == len(values):
        return eqx.tree_at(lambda s: s.root_finder, solver, optx.Chord(**values))
    return eqx.tree_at(
        lambda s: tuple(getattr(s.root_finder, name) for name in missing),
        solver,
        tuple(values[name] for name in missing),
    )


def _throw(solution: Solution, okay: Any, traced: bool) -> Solution:
    result = solution.result
    if traced:
        parts = lambda s: (s.ts, s.ys, s.interpolation)  # noqa: E731
        checked = result.error_if(parts(solution), ~okay)
        return eqx.tree_at(parts, solution, checked, is_leaf=lambda x: x is None)
    if not np.asarray(okay).all():
        raise SimulationError(RESULTS[result])
    return solution
