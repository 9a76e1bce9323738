"""Simulation of a formulation: the entry point `rj.simulate`."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from ..annotations import Args, Flag, Time
from ..checks import collect_faults, common_dtype, is_traced, is_tracing, known
from ..control.held_joints import declare_modes
from ..control.transition import Transition, check_transitions, switched_inputs
from ..formulations import AbstractFormulation
from ..formulations.binding import bind_inputs
from ..formulations.charts import Unknowns
from ..formulations.choice import ModelInput, choose_formulation
from ..formulations.joint_checks import all_have_mass, messages_of, needs_check, raise_faults
from ..joints.replacing import replace_fields
from ..native import check_backend, gc_paused, opaque_call
from ..projection import AbstractProjection
from ..results import RESULTS, SimulationError, failures_as_nan, record_run
from ..signals.inputs import inputs_of
from ..signals.shared_tables import check_shared_times, table_signals
from ..solvers.wrappers.counting import explicit_evaluations, finish_count, start_count
from ..state import State
from .arguments import (
    DEFAULT_TOLERANCE,
    Tolerances,
    check_combination,
    check_event,
    check_index,
    check_signals,
    check_solver,
    check_start_and_end,
    choose_dense_output,
    choose_method,
    count_samples,
    make_saveat,
)
from .backend_policy import choose_adjoint
from .endings import nan_if_failed, raise_if_traced
from .integration import RunArguments, counts_evaluations, integrate, shorten_to_zero
from .solution import Solution


def describe_progress(run: RunArguments) -> str:
    """Return why a run took too many steps, the time that it reached, and its last step.

    The run is repeated, because its last sample may lie long before its end.
    """
    saveat = diffrax.SaveAt(steps=True, fn=_save_nothing)
    repeated, *_ = integrate(run._replace(saveat=saveat, number=None))
    times = np.asarray(known(repeated.ts))
    times = np.concatenate([[float(run.t0)], times[np.isfinite(times)]])
    accepted, rejected = (
        int(known(repeated.stats[f"num_{kind}_steps"])) for kind in ("accepted", "rejected")
    )
    last = f"; the last step took {times[-1] - times[-2]:.3g} s" if len(times) > 1 else ""
    is_stuck = times[-1] - times[-2:][0] < 1e-12 * (1 + abs(times[-1]))
    reason = _find_nonfinite(run, times[-1]) if is_stuck else ""
    return (
        f"{reason or RESULTS[RESULTS.max_steps_reached]} The run reached t = {times[-1]:.6g} s "
        f"of {float(run.t1):.6g} s in {accepted} accepted "
        f"and {rejected} rejected steps{last}."
    )


def _find_nonfinite(run: RunArguments, t: float) -> str:
    """Return a sentence if accelerations are not finite where a run is stuck, or just after."""
    if run.model.num_algebraic:
        return ""
    again = opaque_call(integrate, run._replace(saveat=_SAVE_END, number=None))[0]
    end = jax.tree.map(lambda y: y[-1], known(again.ys))
    ts = t + (1 + abs(t)) * jnp.array([0.0, 1e-9])
    rates = jax.vmap(run.model.vector_field, (0, None, None))(ts, end, run.args)
    if all(np.isfinite(x).all() for x in jax.tree.leaves(known(rates))):
        return ""
    reason = "so that no step succeeds: check the forces and policies there."
    return f"Accelerations are infinite or NaN at t = {t:.6g} s, {reason}"


def _save_nothing(t: Time, y: Unknowns, args: Args) -> Array:
    return jnp.zeros(0)


def simulate(
    model: ModelInput,
    state0: State | None = None,
    t1: ArrayLike | None = None,
    *,
    y0: Unknowns | None = None,
    t0: ArrayLike = 0.0,
    ts: ArrayLike | None = None,
    solver: diffrax.AbstractSolver | None = None,
    rtol: ArrayLike = DEFAULT_TOLERANCE,
    atol: ArrayLike = DEFAULT_TOLERANCE,
    dt: ArrayLike | None = None,
    projection: bool | AbstractProjection = True,
    adjoint: diffrax.AbstractAdjoint | None = None,
    inputs: Mapping[str, Any] | None = None,
    event: diffrax.Event | None = None,
    transitions: Sequence[Transition] = (),
    max_transitions: int = 100,
    progress: bool | diffrax.AbstractProgressMeter = False,
    max_steps: int = 100_000,
    throw: bool = True,
    saveat: diffrax.SaveAt | None = None,
    stepsize_controller: diffrax.AbstractStepSizeController | None = None,
    args: Any = None,
    backend: str = "auto",
) -> Solution:
    r"""Integrate a formulation in time.

    This function assembles the arguments of `diffrax.diffeqsolve`. Everything it does is also
    possible with diffrax directly, with `diffrax.ODETerm(model.vector_field)`,
    `model.encode(state0)` and the solvers in `rj.solvers`. It works under `jax.jit`, `jax.vmap`,
    `jax.jvp`, `jax.grad` and their compositions.

    **Arguments:**

    - `model`: a formulation such as `rj.NullSpace(system)`; or a system, of which the run takes
      `rj.Relative` for trees and `rj.NullSpace` for loops and a `FixedPointBody`.
    - `state0`: the state at `t0`.
    - `y0`: instead of `state0`, the unknowns at `t0`, such as `sol.ys[-1]`. The run continues
      exactly where another run of the same model ended, including revolutions of joints and
      multipliers. With steps of a fixed length it equals the uninterrupted run to round-off, with
      an implicit solver to the tolerance of its Newton iteration. The memory of a solver or a
      step-size controller is not part of the unknowns and is reset: the history of
      `rj.solvers.BDF()`, the accelerations of `GeneralizedAlpha()`, and the velocities of
      `EnergyMomentum()` and similar solvers that violate joints of `NullSpace`.
    - `t1`, `t0`: end and start, s; `t1 > t0`.
    - `ts`: times to save at, increasing, within `[t0, t1]`; `None` saves only the end.
    - `solver`: any diffrax solver of ordinary differential equations; `None` for
      `diffrax.Dopri8()`. Equations of index 1, 2, 3 take `rj.solvers.Radau5()` or `BDF()`.
    - `rtol`, `atol`: tolerances of the adaptive step size, per unknown, by default 1e-8. With `dt`
      they are the tolerances of an implicit solver's Newton iteration; other solvers then reject
      them.
    - `dt`: a fixed step, s. Adaptive steps end at the samples of an `rj.Signal`, fixed ones must
      end where it jumps.
    - `projection`: after every step, `True` for the closed form of the parametrization, `False` for
      none, or a projection such as `rj.projection.MassMetric()`. It also acts on samples between
      steps. A joint that it cannot close ends the run with `RESULTS.joints_open`; without a
      projection see `Solution.warnings`. Structure-preserving solvers use no projection.
    - `adjoint`: a diffrax adjoint; `None` for `rj.AnyMode()`, forward and reverse mode of any
      order.
    - `inputs`: values of the `rj.Input`s of the model by name: a number or an array, an
      `rj.Signal`, a policy `policy(t, view) -> value`, evaluated with the equations, or an
      `rj.SampledController`; `view` is an `rj.SystemView`. Inputs without an entry have their
      defaults. `Solution.inputs` has their values.
    - `event`: a `diffrax.Event`; its functions receive the unknowns `y`, see `model.decode`. With
      `transitions` it has a root finder, and `cond_fn(t, y, args)` gets no other arguments.
    - `transitions`: a list of `rj.Transition`, events at which the state changes and the run goes
      on. See `docs/events.md`; `sol.transitions` records them.
    - `max_transitions`: the number of transitions after which the run ends with a named result.
    - `progress`: `True` for a progress line, or a diffrax progress meter; with `transitions` it
      advances at each of them.
    - `max_steps`: the number of steps, accepted and rejected, after which the run ends with a
      named result; every sample of an `rj.Signal` raises the limit by one.
    - `throw`: raise `SimulationError` for a run that fails; if `False`, see `Solution.result`.
      With `False`, a traced state, time or step that is not admissible, and a model that was built
      from such values in a lane of `jax.vmap`, give their own run the result
      `RESULTS.invalid_input`; the other lanes are not affected.
    - `saveat`: a `diffrax.SaveAt` instead of `ts`, for dense output, steps, solver state.
    - `stepsize_controller`: a diffrax controller instead of `rtol`, `atol`, `dt`.
    - `args`: passed to the vector field and to events.
    - `backend`: `"native"` for one machine-code kernel for the whole run, `"xla"` for XLA's
      kernels, `"auto"` for the native kernel where possible. `sol.stats["backend"]` is the backend
      that was used, its `why_not` the reasons against the native one; see `docs/native.md`.

    **Returns:** a `Solution`.
    **Raises:** `ValueError` and `TypeError` for arguments that do not fit, `SimulationError`.
    """
    to_nan, throw = throw and failures_as_nan.value, throw and not failures_as_nan.value
    if y0 is not None and not isinstance(model, AbstractFormulation):
        raise ValueError(
            "`simulate(system, y0=...)`: unknowns belong to a formulation; give it instead of the "
            "system, such as `sol.model`."
        )
    model = choose_formulation(model, "simulate")
    transitions = check_transitions(transitions, max_transitions, model)
    declared = inputs_of(model) if transitions else {}
    switched: Sequence[str] = ()
    if declared:
        example = model.multibody.reference_state() if state0 is None else state0
        switched = switched_inputs(transitions, jnp.asarray(t0, float), example)
    model = bind_inputs(model, inputs, "simulate(inputs=...)", switched)
    defaults = {name: declared[name].default for name in switched if name in declared}
    model, modes = declare_modes(model, transitions)
    inputs = {**defaults, **(inputs or {}), **modes} or None
    is_hybrid = bool(transitions or modes)
    solver = check_solver(solver)
    check_event(event)
    check_combination(is_hybrid, event, saveat)
    check_index(model, solver)
    _check_start(state0, y0, t1)
    # Time has the precision of the model, because diffrax promotes the unknowns to that of time.
    dtype = common_dtype(model, state0, y0)
    with contextlib.nullcontext([]) if throw else collect_faults() as time_faults:
        start, end = check_start_and_end(t0, t1, dtype)
        saved = make_saveat(saveat, ts, start, end, dtype)
        tolerances = Tolerances(rtol, atol)
        method = choose_method(
            model, solver, tolerances, stepsize_controller, dt, projection, dtype
        )
    with contextlib.nullcontext([]) if throw else collect_faults() as state_faults:
        model = check_shared_times(model)
        if state0 is not None:
            state0 = model.check_rows(state0)
        if y0 is not None:
            _, y0 = model.check_form(y0)
    solver, controller, dt0 = method.solver, method.controller, method.dt
    check_signals(model, solver, controller, start, end, event)
    if isinstance(progress, bool):
        progress = diffrax.TextProgressMeter() if progress else _NO_METER
    num_samples = count_samples(model, start, end, dt)
    max_steps += sum(len(signal.ts) for signal in table_signals(model)) + sum(num_samples.values())
    inputs_of_run = (model, state0, y0, start, end, saved, args, method)
    invalid = _any([*time_faults, *state_faults, *_nan_leaves(model)])
    # Adaptive steps with values that are not finite would be rejected forever. Fixed steps end, and
    # in a batch a common time of all lanes is faster.
    adaptive = isinstance(controller, diffrax.AbstractAdaptiveStepSizeController)
    shortens = adaptive or not is_traced(known(inputs_of_run))
    stopped = None if shortens else _any(time_faults)
    if stopped is not None:
        start, end, dt0, saved = shorten_to_zero(stopped, start, end, dt0, saved)
    # A host counter belongs to a single run: under a transformation it would not be read.
    counted = is_hybrid or counts_evaluations(solver) or explicit_evaluations(solver) is not None
    count = not (counted or is_traced((inputs_of_run, transitions)) or is_tracing())
    # The equations raise where an input has no value.
    has_values = all(target.default is not None for target in inputs_of(model).values())
    is_checked = needs_check(model) and has_values and not (model.places_start and y0 is None)
    massive = all_have_mass(model.multibody.bodies) if is_checked else None
    # Under `jax.grad` outside `jax.jit`, the compiled function stacks the parameters of the model.
    is_grad = is_traced(model) and not is_traced(known(model))
    method = method._replace(
        solver=choose_dense_output(solver, saved, event, is_hybrid),
        dt=dt0,
        adjoint=choose_adjoint(adjoint, check_backend(backend)),
        max_steps=max_steps,
        meter=progress,
    )
    run = RunArguments(
        model if is_grad else model.separate_arrays(), state0, y0, start, end, saved, event, args,
        method, start_count() if count else None, invalid, shortens, massive, num_samples,
        transitions, max_transitions,
    )  # fmt: skip
    with gc_paused():
        solution, okay, faults = opaque_call(integrate, run)
    okay, faults = known((okay, faults))
    # Functions of transitions and laws may close over traced values.
    traced = is_traced(okay)
    if faults is not None and not is_traced(faults):
        raise_faults(model, faults)
    if transitions:
        from ..control.resting import with_contacts

        model = with_contacts(model, transitions)
    solution = replace_fields(solution, model=model, bound_inputs=inputs)
    if run.number is not None:
        stats = {**solution.stats, "num_rhs": jnp.asarray(finish_count(run.number))}
        solution = eqx.tree_at(lambda s: s.stats, solution, stats, is_leaf=lambda x: x is None)
    if solution.ts is not None:
        record_run(solution)
    if to_nan:
        return nan_if_failed(solution, okay)
    if not throw:
        return solution
    if traced:
        return raise_if_traced(solution, okay, faults, messages_of(model) if faults else ())
    if np.asarray(okay).all():
        return solution
    _raise_failure(known(run), known(solution.result), known(model))


def _raise_failure(run: RunArguments, result: Any, model: AbstractFormulation) -> NoReturn:
    """Raise the `SimulationError` of a failed run, with a repeated run's report where it helps."""
    if np.all(result == RESULTS.joints_open):
        # The last sample may lie long before the failure, so that the run is repeated.
        again = run._replace(saveat=_SAVE_END, number=None)
        opened = replace_fields(opaque_call(integrate, again)[0], model=model)
        raise SimulationError(" ".join([RESULTS[result], *opened.warnings]))
    if not run.is_hybrid and np.all(result == RESULTS.max_steps_reached):
        raise SimulationError(describe_progress(run))
    raise SimulationError(RESULTS[result])


def _check_start(state0: State | None, y0: Unknowns | None, t1: ArrayLike | None) -> None:
    """Raise unless there is exactly one start, and an end."""
    if (state0 is None) == (y0 is None):
        got = "neither" if y0 is None else "both"
        raise ValueError(
            "`simulate` starts from a state, `state0`, or from the unknowns of another run, "
            f"`y0=sol.ys[-1]`; got {got}."
        )
    if t1 is None:
        raise TypeError("`simulate(t1=...)` is needed: the end of the run, s.")


# Module constants, because building modules costs more than a short run.
_NO_METER = diffrax.NoProgressMeter()
_SAVE_END = diffrax.SaveAt(t1=True)


def _nan_leaves(model: AbstractFormulation) -> list[Flag]:
    """Return a flag per traced leaf of a model; checks inside `vmap` replace bad values by NaN."""
    leaves = filter(eqx.is_inexact_array, jax.tree.leaves(known(model)))
    return [jnp.any(jnp.isnan(leaf)) for leaf in leaves if is_traced(leaf)]


def _any(flags: list[Flag]) -> Flag | None:
    return jnp.any(jnp.stack(flags)) if flags else None
