"""Arguments of `simulate`: checked, and made into what diffrax takes."""

import functools

import diffrax
import equinox as eqx
import jax.numpy as jnp
import numpy as np
import optimistix as optx

from ..checks import (
    BUILD_AFTER_X64,
    check,
    check_finite,
    explain_lost_precision,
    float_array,
    is_traced,
)
from ..formulations import AbstractAbsolute, Charted
from ..mechanics import check_constant_masses
from ..projection import AbstractProjection, Explicit
from ..signals.signal import signals_of
from ..solvers.conserving.base import AbstractStructureSolver
from ..solvers.continuous import continuous
from ..solvers.dae.base import AbstractDAESolver
from ..solvers.evaluations import is_after_step
from .sample_times import check_save_times

# Made once: building modules costs more than a short run.
_DOPRI8 = diffrax.Dopri8()
_EXPLICIT = Explicit()
# Part of a run to which its times have to be held.
_SHARE = 2.5e-4
_SAVE_END = diffrax.SaveAt(t1=True)
# `rtol` and `atol` if they are left out: an object of its own, so that 1e-8 counts as given.
DEFAULT_TOLERANCE = float("1e-8")


def times(t0, t1, dtype):
    """Start and end in the precision of the run.

    **Errors:** `ValueError` for times that do not increase, or that the precision cannot hold.
    """
    text = _times_text(t0, t1, dtype)
    t0, t1 = (_as_time(t, f"simulate({name}=...)", dtype) for name, t in (("t0", t0), ("t1", t1)))
    if is_traced((t0, t1)):
        t1 = check(jnp.asarray(t1), lambda t1: t1 > t0, "`simulate` needs t1 > t0.")
    elif not t1 > t0:
        raise ValueError(
            f"`simulate` needs t1 > t0; got t0 = {float(t0)}, t1 = {float(t1)}. "
            + (text or "To run backwards, reverse the velocities or use diffrax directly.")
        )
    elif text:
        raise ValueError(f"`simulate(t0=..., t1=...)`: {text}")
    return t0, t1


def _times_text(t0, t1, dtype):
    """Say that the precision of a run does not hold its start and end, or `""`."""
    if is_traced((t0, t1)):
        return ""
    for name, t in (("t0", t0), ("t1", t1)):
        float_array(t, f"simulate({name}=...)", ())
    # Numbers of Python are double, whatever the precision of the run.
    ends = [np.asarray(t, float) for t in (t0, t1)]
    span = float(ends[1] - ends[0])
    if not (np.isfinite(span) and span > 0):
        return ""
    return explain_lost_precision(
        np.stack(ends), _SHARE * span, f"the run takes {span:.3g} s", dtype
    )


def _as_time(t, argument, dtype):
    """A checked time in the precision of the run."""
    t = check_finite(float_array(t, argument, ()), argument)
    return jnp.asarray(t, dtype) if is_traced(t) else t.astype(dtype)


def save_at(saveat, ts, t0, t1, dtype):
    """What to save, from `ts` or `saveat`."""
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
        subs = saveat.subs
        if subs is None or subs.ts is None:
            return saveat
        ts = check_save_times(subs.ts, t0, t1, dtype, "simulate(saveat=SaveAt(ts=...))")
        return eqx.tree_at(lambda s: s.subs.ts, saveat, ts)
    if ts is None:
        return _SAVE_END
    return diffrax.SaveAt(ts=check_save_times(ts, t0, t1, dtype, "simulate(ts=...)"))


def tolerances(solver, controller, rtol, atol, dt):
    """Return both tolerances.

    **Errors:** `ValueError` for a tolerance that is given and would be of no effect.
    """
    both = (("rtol", rtol), ("atol", atol))
    given = [name for name, value in both if value is not DEFAULT_TOLERANCE]
    if given and not takes_tolerances(solver, controller, dt):
        other, remedy = (
            ("dt", "Leave out the tolerance, or `dt` for steps that the error chooses.")
            if controller is None
            else ("stepsize_controller", "Give tolerances to the controller.")
        )
        raise ValueError(
            f"`simulate({given[0]}=...)` has no effect with `{other}=`: `{type(solver).__name__}` "
            f"solves no equations that a tolerance of its own would end. {remedy}"
        )
    return rtol, atol


def takes_tolerances(solver, controller, dt):
    """Whether tolerances of `simulate` have an effect: on steps, or on Newton's iteration of an
    implicit solver with steps of a given length."""
    if controller is None and dt is None:
        return True
    adaptive = isinstance(controller, diffrax.AbstractAdaptiveStepSizeController)
    return not adaptive and bool({"rtol", "atol"} & set(_missing(solver)))


def step_control(solver, controller, rtol, atol, dt, dtype):
    """The controller, and the step that was given, if any."""
    if controller is not None:
        if not isinstance(controller, diffrax.AbstractStepSizeController):
            raise TypeError(
                "`simulate(stepsize_controller=...)` takes a diffrax controller such as "
                f"`diffrax.PIDController(rtol=..., atol=...)`; got {controller!r}."
            )
        return controller, None if dt is None else _step(dt, dtype)
    floor = float(f"{10 * jnp.finfo(dtype).eps:.1g}")  # as the error says
    for name, value in (("rtol", rtol), ("atol", atol)):
        known = float_array(value, f"simulate({name}=...)", ())
        if not is_traced(value) and not known >= 0:
            raise ValueError(f"`simulate({name}=...)` must be a number >= 0; got {value!r}.")
    has_effect = takes_tolerances(solver, controller, dt)
    if has_effect and not is_traced((rtol, atol)) and rtol < floor and atol < floor:
        raise ValueError(
            f"The tolerances rtol = {rtol:g} and atol = {atol:g} are below what {dtype} "
            f"reaches. Give `simulate` at least {floor:g}"
            + (f", or use double precision. {BUILD_AFTER_X64}" if dtype == jnp.float32 else ".")
        )
    if dt is not None:
        return diffrax.ConstantStepSize(), _step(dt, dtype)
    if isinstance(solver, AbstractDAESolver):
        rtol, atol = jnp.asarray(rtol, dtype), jnp.asarray(atol, dtype)
        return solver.controller(rtol, atol, _norm), None
    if is_traced((rtol, atol)):
        rtol, atol = jnp.asarray(rtol, dtype), jnp.asarray(atol, dtype)
        return diffrax.PIDController(rtol=rtol, atol=atol, norm=_norm), None
    return _pid(float(rtol), float(atol), dtype), None


def check_event(event):
    """Raise for what is no event."""
    if not isinstance(event, diffrax.Event | None):
        raise TypeError(
            f"`simulate(event=...)` takes a `diffrax.Event(cond_fn, root_finder)`; got {event!r}."
        )


def check_signals(model, solver, controller, t0, t1, event):
    """Raise for signals that do not go with the run, its solver or its steps."""
    fixed = not isinstance(controller, diffrax.AbstractAdaptiveStepSizeController)
    smooth = isinstance(solver, AbstractStructureSolver) and not solver.forces_may_jump
    for signal in signals_of(model):
        if smooth and signal.jumps:
            raise ValueError(
                f"`{type(solver).__name__}` carries accelerations from step to step, which "
                f"{signal.label} lets jump: errors would be of the first order. Take "
                "`rj.solvers.EnergyMomentum()` or a Runge-Kutta method."
            )
        if fixed and signal.jumps and signal.delay is not None:
            raise ValueError(
                f"`simulate`: {signal.label} jumps and has a delay; steps of a fixed length cannot "
                "end where it moves its samples. Take an adaptive step size, or `delay=None`."
            )
        # An event may end the run before the table.
        if event is None and not is_traced((signal.ts, signal.delay, t0, t1)):
            signal.check_reach("`simulate`", float(t0), float(t1))


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


def check_index(model, solver):
    """Raise for equations of an index that the solver does not integrate."""
    if not isinstance(model, AbstractAbsolute) or model.index == 0:
        return
    if isinstance(solver, AbstractStructureSolver):
        return  # It says by itself which ones it takes.
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
            f"got {name}, whose multipliers count as index {max(model.indices)}. Use "
            "`solver=rj.solvers.Radau5()`, or `index=0`."
        )


def check_structure(model, solver, projection, controller, dt):
    """Raise for what a structure-preserving solver does not take."""
    if not isinstance(solver, AbstractStructureSolver):
        return
    name = f"`{type(solver).__name__}`"
    check_constant_masses(name, model.multibody)
    solver.check_model(model)
    if isinstance(projection, AbstractProjection):
        raise ValueError(
            f"{name} keeps by itself what it keeps; a projection after its steps would change the "
            "energy and the momentum. Leave `simulate(projection=...)` out."
        )
    adaptive = isinstance(controller, diffrax.AbstractAdaptiveStepSizeController) or (
        controller is None and dt is None
    )
    if adaptive and not solver.is_adaptive:
        raise ValueError(f"{name} has steps of a fixed length: give `simulate(dt=...)`, in s.")


def checked_solver(solver):
    """The solver, `Dopri8` for `None`."""
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


def after_step(projection, solver):
    """The projection, or `None`."""
    if projection is True:
        return None if isinstance(solver, AbstractStructureSolver) else _EXPLICIT
    if projection is False or isinstance(projection, AbstractProjection):
        return projection or None
    raise TypeError(
        "`simulate(projection=...)` takes True, False or a projection such as "
        f"`rj.projection.MassMetric()`; got {projection!r}."
    )


def with_tolerances(solver, controller, rtol, atol):
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
    missing = _missing(solver)
    if not missing:
        return solver
    if type(finder) is diffrax.VeryChord and len(missing) == len(values):
        return eqx.tree_at(lambda s: s.root_finder, solver, optx.Chord(**values))
    return eqx.tree_at(
        lambda s: tuple(getattr(s.root_finder, name) for name in missing),
        solver,
        tuple(values[name] for name in missing),
    )


def _missing(solver):
    """What the root finder of a solver is to get from `simulate`: names of its fields."""
    if not isinstance(solver, diffrax.AbstractImplicitSolver):
        return []
    placeholder = diffrax.with_stepsize_controller_tols(optx.Newton)().rtol
    names = ("rtol", "atol", "norm")
    return [name for name in names if getattr(solver.root_finder, name, None) is placeholder]


def accurate_between(solver, saveat, event):
    """The solver, as accurate between its steps as at their ends where such values are shown."""
    at_times = getattr(saveat.subs, "ts", None) is not None
    finds_events = event is not None and event.root_finder is not None
    return continuous(solver) if at_times or finds_events or saveat.dense else solver
