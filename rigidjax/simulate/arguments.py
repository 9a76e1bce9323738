"""Checks of the arguments of `simulate`, and their conversion to arguments of diffrax."""

import functools
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jaxtyping import Array, ArrayLike, PyTree

from ..annotations import Scalar, Time
from ..checks import (
    BUILD_AFTER_X64,
    ArrayInput,
    as_leaf,
    check,
    check_finite,
    explain_lost_precision,
    explain_lost_steps,
    float_array,
    is_traced,
    raise_or_collect,
)
from ..formulations import AbstractAbsolute, AbstractFormulation, Charted
from ..mechanics import check_constant_masses
from ..projection import AbstractProjection, Explicit
from ..signals.controllers import sampled_sources
from ..signals.shared_tables import table_signals
from ..solvers.base.hooked import hooks_of
from ..solvers.conserving.base import AbstractStructureSolver
from ..solvers.dae.base import AbstractDAESolver
from ..solvers.explicit.continuous import continuous


def check_save_times(ts: ArrayInput, t0: Any, t1: Any, dtype: jnp.dtype, argument: str) -> Array:
    """Return the checked times (T,), s, in the precision of the run.

    **Errors:** `ValueError` for a wrong shape, times that do not increase, or times outside
    `[t0, t1]`.
    """
    times = float_array(ts, argument)
    if times.ndim != 1 or times.size == 0:
        raise ValueError(f"`{argument}` must have shape (T,); got shape {times.shape}.")
    known = not is_traced(times)
    text = explain_lost_steps(np.asarray(times), dtype) if known else ""
    # Rounded like t0 and t1 before any comparison.
    times = check_finite(times, argument).astype(dtype) if known else jnp.asarray(times, dtype)
    if known and not np.all(np.diff(times) > 0):
        raise ValueError(f"`{argument}` must be strictly increasing in {dtype}. {text}".rstrip())
    if text:
        raise ValueError(f"`{argument}`: {text}")
    if not is_traced((times, t0, t1)):
        if times[0] < t0 or times[-1] > t1:
            raise ValueError(
                f"`{argument}` must lie between t0 = {float(t0)} and t1 = {float(t1)}; got times "
                f"from {times[0]} to {times[-1]}."
            )
        return as_leaf(times)
    # A run that was padded to the length of others repeats its last time. Samples at infinite times
    # are not taken.
    inside = (times <= t1) | jnp.isposinf(times)
    wrong = [jnp.any(~(times[1:] >= times[:-1])), ~((times[0] >= t0) & jnp.all(inside))]
    messages = [f"`{argument}` must be increasing.", f"`{argument}` must lie between t0 and t1."]
    return raise_or_collect(jnp.asarray(times), jnp.stack(wrong), messages)


# Module constants, because building modules costs more than a short run.
_DOPRI8 = diffrax.Dopri8()
_EXPLICIT = Explicit()
# Fraction of the duration of a run to which the precision must resolve times.
_RESOLUTION = 2.5e-4
# Relative deviation of a multiple of a period that is round-off.
_SAMPLE_TOLERANCE = 1e-6
_SAVE_END = diffrax.SaveAt(t1=True)
# Default of `rtol` and `atol`. It is a separate object, so that an explicit 1e-8 is recognised.
DEFAULT_TOLERANCE = float("1e-8")


def check_start_and_end(t0: Any, t1: Any, dtype: jnp.dtype) -> tuple[Any, Any]:
    """Return start and end in the precision of the run.

    **Errors:** `ValueError` unless `t1 > t0` and the precision resolves both.
    """
    text = _explain_lost_ends(t0, t1, dtype)
    pairs = (("t0", t0), ("t1", t1))
    t0, t1 = (_convert_time(t, f"simulate({name}=...)", dtype) for name, t in pairs)
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


def _explain_lost_ends(t0: ArrayLike, t1: ArrayLike, dtype: jnp.dtype) -> str:
    """Return an error message if the precision does not resolve start and end, else `""`."""
    if is_traced((t0, t1)):
        return ""
    for name, t in (("t0", t0), ("t1", t1)):
        float_array(t, f"simulate({name}=...)", ())
    # Python floats have double precision, whatever the precision of the run.
    ends = [np.asarray(t, float) for t in (t0, t1)]
    span = float(ends[1] - ends[0])
    if not (np.isfinite(span) and span > 0):
        return ""
    reason = f"the run takes {span:.3g} s"
    return explain_lost_precision(np.stack(ends), _RESOLUTION * span, reason, dtype)


def _convert_time(t: Any, argument: str, dtype: jnp.dtype) -> Any:
    """Return a finite time in the precision of the run."""
    t = check_finite(float_array(t, argument, ()), argument)
    return jnp.asarray(t, dtype) if is_traced(t) else t.astype(dtype)


def make_saveat(
    saveat: diffrax.SaveAt | None, ts: ArrayInput | None, t0: Time, t1: Time, dtype: jnp.dtype
) -> diffrax.SaveAt:
    """Return the `SaveAt` that `saveat`, `ts` or their defaults describe, its times checked."""
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


class Tolerances(NamedTuple):
    """Relative and absolute tolerance of adaptive steps and of Newton's iterations."""

    rtol: Any
    atol: Any

    def check_used(
        self,
        solver: diffrax.AbstractSolver,
        controller: diffrax.AbstractStepSizeController | None,
        dt: ArrayLike | None,
        caller: str = "simulate",
    ) -> None:
        """Raise `ValueError` for a tolerance that is passed but would have no effect.

        **Arguments:** `caller`, the name of the function in messages, as in the functions below.
        """
        passed = [x for x in self._fields if getattr(self, x) is not DEFAULT_TOLERANCE]
        if passed and not takes_tolerances(solver, controller, dt):
            other, remedy = (
                ("dt", "Omit the tolerance, or omit `dt` for adaptive steps.")
                if controller is None
                else ("stepsize_controller", "Set the tolerances of the controller instead.")
            )
            raise ValueError(
                f"`{caller}({passed[0]}=...)` has no effect with `{other}=`: "
                f"`{type(solver).__name__}` has no iteration that would use it. {remedy}"
            )

    def as_arrays(self, dtype: jnp.dtype) -> tuple[Any, Any]:
        """Return both in the precision of a run, concrete ones as NumPy arrays."""
        convert = [jnp.asarray if is_traced(x) else np.asarray for x in self]
        return convert[0](self.rtol, dtype), convert[1](self.atol, dtype)


class Method(NamedTuple):
    """Method by which a run is integrated.

    **Attributes:** `solver`, without hooks; `controller`; `dt`, s, the first or the fixed step,
    `None` for a first step that the controller chooses; `projection` after each step, or `None`;
    `adjoint`; `max_steps`, accepted and rejected; `meter`.
    """

    solver: diffrax.AbstractSolver
    controller: diffrax.AbstractStepSizeController
    dt: Any
    projection: AbstractProjection | None
    adjoint: Any = None
    max_steps: int = 0
    meter: Any = None


def choose_method(
    model: AbstractFormulation,
    solver: diffrax.AbstractSolver,
    tolerances: Tolerances,
    controller: diffrax.AbstractStepSizeController | None,
    dt: ArrayLike | None,
    projection: Any,
    dtype: jnp.dtype,
    caller: str = "simulate",
) -> Method:
    """Return the method by which a run is integrated, from checked arguments.

    **Errors:** `TypeError` and `ValueError` for arguments that do not fit each other.
    """
    check_structure(model, solver, projection, controller, dt, caller)
    tolerances.check_used(solver, controller, dt, caller)
    controller, step = make_controller(solver, controller, tolerances, dt, dtype, caller)
    solver = set_root_finder_tolerances(solver, controller, tolerances)
    return Method(solver, controller, step, choose_projection(projection, solver, caller))


def takes_tolerances(
    solver: diffrax.AbstractSolver,
    controller: diffrax.AbstractStepSizeController | None,
    dt: ArrayLike | None,
) -> bool:
    """Return whether the tolerances of `simulate` have an effect.

    They control adaptive steps, or Newton's iteration of an implicit solver with fixed steps.
    """
    if controller is None and dt is None:
        return True
    adaptive = isinstance(controller, diffrax.AbstractAdaptiveStepSizeController)
    return not adaptive and bool({"rtol", "atol"} & set(_unset_fields(solver)))


def make_controller(
    solver: diffrax.AbstractSolver,
    controller: diffrax.AbstractStepSizeController | None,
    tolerances: Tolerances,
    dt: ArrayLike | None,
    dtype: jnp.dtype,
    caller: str = "simulate",
) -> tuple[diffrax.AbstractStepSizeController, Any]:
    """Return the controller, and the first or fixed step in s, `None` without `dt`."""
    if controller is not None:
        if not isinstance(controller, diffrax.AbstractStepSizeController):
            raise TypeError(
                f"`{caller}(stepsize_controller=...)` takes a diffrax controller such as "
                f"`diffrax.PIDController(rtol=..., atol=...)`; got {controller!r}."
            )
        return controller, None if dt is None else _check_step(dt, dtype, caller)
    floor = float(f"{10 * jnp.finfo(dtype).eps:.1g}")  # rounded as in the message
    for name, value in tolerances._asdict().items():
        known = float_array(value, f"{caller}({name}=...)", ())
        if not is_traced(value) and not known >= 0:
            raise ValueError(f"`{caller}({name}=...)` must be a number >= 0; got {value!r}.")
    has_effect = takes_tolerances(solver, controller, dt)
    if has_effect and not is_traced(tolerances) and max(tolerances) < floor:
        raise ValueError(
            f"The tolerances rtol = {tolerances.rtol:g} and atol = {tolerances.atol:g} are below "
            f"what {dtype} reaches. Use tolerances of at least {floor:g}"
            + (f", or use double precision. {BUILD_AFTER_X64}" if dtype == jnp.float32 else ".")
        )
    if dt is not None:
        return diffrax.ConstantStepSize(), _check_step(dt, dtype, caller)
    if isinstance(solver, AbstractDAESolver):
        rtol, atol = (x if is_traced(x) else as_leaf(x) for x in tolerances.as_arrays(dtype))
        return solver.controller(rtol, atol, _norm), None
    if is_traced(tolerances):
        return _pid(tolerances, dtype), None
    return _cached_pid(Tolerances(*map(float, tolerances)), dtype), None


def check_event(event: Any) -> None:
    """Raise `TypeError` unless `event` is a diffrax event or `None`."""
    if not isinstance(event, diffrax.Event | None):
        raise TypeError(
            f"`simulate(event=...)` takes a `diffrax.Event(cond_fn, root_finder)`; got {event!r}."
        )


def check_combination(
    is_hybrid: bool, event: diffrax.Event | None, saveat: diffrax.SaveAt | None
) -> None:
    """Raise `ValueError` for arguments that a run with transitions does not take."""
    if not is_hybrid:
        return
    if event is not None and event.root_finder is None:
        raise ValueError(
            "`simulate(event=...)` needs a root finder in a run with transitions, or with joints "
            "that stick, which ends exactly at the zero: "
            "`diffrax.Event(cond_fn, optimistix.Newton(1e-8, 1e-8))`."
        )
    if saveat is None:
        return
    subs: Any = saveat.subs
    others = ("dense", "solver_state", "controller_state", "made_jump")
    wrong = [name for name in others if getattr(saveat, name)]
    wrong += ["steps"] if subs is None or subs.steps else []
    if wrong:
        raise ValueError(
            f"`simulate(saveat=SaveAt({wrong[0]}=...))` is not possible with `transitions=`: each "
            "of `max_transitions` segments has a solver and `max_steps` steps of its own, which "
            "would all be stored; use `ts=`, `SaveAt(ts=..., fn=...)`, `t0=True` or `t1=True`."
        )


def check_signals(
    model: AbstractFormulation,
    solver: diffrax.AbstractSolver,
    controller: diffrax.AbstractStepSizeController,
    t0: Any,
    t1: Any,
    event: diffrax.Event | None,
    caller: str = "simulate",
) -> None:
    """Raise `ValueError` for signals that the solver, its steps or the duration do not permit.

    **Arguments:** `t0`, `t1`, start and end, `None` if they are not known.
    """
    fixed = not isinstance(controller, diffrax.AbstractAdaptiveStepSizeController)
    smooth = isinstance(solver, AbstractStructureSolver) and not solver.forces_may_jump
    for signal in table_signals(model):
        if smooth and signal.jumps:
            raise ValueError(
                f"`{type(solver).__name__}` carries accelerations from step to step, but "
                f"{signal.label} makes them jump, which would reduce the order to one. Use "
                "`rj.solvers.EnergyMomentum()` or a Runge-Kutta method."
            )
        if fixed and signal.jumps and signal.delay is not None:
            raise ValueError(
                f"`{caller}`: {signal.label} jumps and has a delay; steps of a fixed length cannot "
                "end at its delayed samples. Use an adaptive step size, or `delay=None`."
            )
        # An event may end the run before the end of the table.
        is_known = signal.is_law and not is_traced((signal.ts, signal.delay, t0, t1))
        if event is None and t0 is not None and t1 is not None and is_known:
            signal.check_reach("`simulate`", float(t0), float(t1))


def count_samples(model: AbstractFormulation, t0: Any, t1: Any, dt: Any) -> dict[str, int]:
    """Return the number of samples of each sampled controller in a run, by input.

    **Errors:** `ValueError` for times that are not known, and for a duration or a period that is
    not a multiple of the period or of the step.
    """
    counts = {}
    for name, (_, source) in sampled_sources(model.multibody.sources).items():
        if is_traced((t0, t1, dt)):
            raise ValueError(
                f"The sampled controller of the input {name!r} needs known `t0`, `t1` and `dt`, "
                "because they determine the number of samples; got traced ones."
            )
        spans = [("the duration", float(t1) - float(t0), "period", source.period)]
        if dt is not None:
            spans.append(("the period", source.period, "step `dt`", float(dt)))
        for what, length, of, unit in spans:
            count = length / unit
            if abs(count - round(count)) > _SAMPLE_TOLERANCE * max(count, 1.0):
                raise ValueError(
                    f"The sampled controller of the input {name!r} needs {what} to be a multiple "
                    f"of its {of}, {unit:g} s; got {length:g} s."
                )
        counts[name] = round((float(t1) - float(t0)) / source.period)
    return counts


def _check_step(dt: ArrayLike, dtype: jnp.dtype, caller: str) -> Any:
    name = f"{caller}(dt=...)"
    return check(_convert_time(dt, name, dtype), lambda h: h > 0, f"`{name}` must be positive.")


def _pid(tolerances: Tolerances, dtype: jnp.dtype) -> diffrax.PIDController:
    # As arrays, because Python floats would be constants of the compiled function.
    rtol, atol = tolerances.as_arrays(dtype)
    return diffrax.PIDController(rtol=rtol, atol=atol, norm=_norm)


_cached_pid = functools.lru_cache(maxsize=64)(_pid)


def _norm(y: PyTree[Array]) -> Scalar:
    """Return the root mean square of the unknowns; the references of charts have no error."""
    if isinstance(y, Charted):
        y = y.values
    return optx.rms_norm(y)


def check_index(model: AbstractFormulation, solver: diffrax.AbstractSolver) -> None:
    """Raise `ValueError` for equations of an index that the solver does not integrate."""
    if not isinstance(model, AbstractAbsolute) or model.index == 0:
        return
    if isinstance(solver, AbstractStructureSolver):
        return  # its `check_model` checks the index
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


def check_structure(
    model: AbstractFormulation,
    solver: diffrax.AbstractSolver,
    projection: Any,
    controller: diffrax.AbstractStepSizeController | None,
    dt: ArrayLike | None,
    caller: str = "simulate",
) -> None:
    """Raise `ValueError` for arguments that a structure-preserving solver does not support."""
    if not isinstance(solver, AbstractStructureSolver):
        return
    name = f"`{type(solver).__name__}`"
    if model.multibody.is_controlled:
        raise ValueError(
            f"{name} does not integrate policies, sampled controllers or actuators with states. "
            "Use a Runge-Kutta method, or `rj.solvers.Radau5()` or `BDF()`."
        )
    check_constant_masses(name, model.multibody)
    solver.check_model(model)
    if isinstance(projection, AbstractProjection):
        raise ValueError(
            f"{name} conserves energy and momentum itself; a projection after its steps would "
            f"change them. Omit `{caller}(projection=...)`."
        )
    adaptive = isinstance(controller, diffrax.AbstractAdaptiveStepSizeController) or (
        controller is None and dt is None
    )
    if adaptive and not solver.is_adaptive:
        raise ValueError(f"{name} has steps of a fixed length: pass `{caller}(dt=...)`, in s.")


def check_solver(solver: Any, caller: str = "simulate") -> diffrax.AbstractSolver:
    """Return the solver, `Dopri8` for `None`; raise `TypeError` for other objects."""
    if solver is None:
        return _DOPRI8
    if not isinstance(solver, diffrax.AbstractSolver):
        raise TypeError(
            f"`{caller}(solver=...)` takes a diffrax solver such as `diffrax.Dopri5()`, an "
            f"instance and not a class; got {solver!r}."
        )
    if hooks_of(solver):
        raise TypeError(
            f"`{caller}` wraps the solver itself: pass the solver inside "
            f"{type(solver).__name__} and `projection=`."
        )
    return solver


def choose_projection(
    projection: Any, solver: diffrax.AbstractSolver, caller: str = "simulate"
) -> AbstractProjection | None:
    """Return the projection after each step, or `None`; raise `TypeError` for other objects."""
    if projection is True:
        return None if isinstance(solver, AbstractStructureSolver) else _EXPLICIT
    if projection is False or isinstance(projection, AbstractProjection):
        return projection or None
    raise TypeError(
        f"`{caller}(projection=...)` takes True, False or a projection such as "
        f"`rj.projection.MassMetric()`; got {projection!r}."
    )


def set_root_finder_tolerances(
    solver: diffrax.AbstractSolver,
    controller: diffrax.AbstractStepSizeController,
    tolerances: Tolerances,
) -> diffrax.AbstractSolver:
    """Return an implicit solver with the tolerances of its root finder set, also for fixed steps.

    Other solvers are returned unchanged. Diffrax's default root finder `VeryChord` is replaced by
    optimistix's `Chord`: it reports divergence whenever two iterations do not suffice, which makes
    fixed steps fail and adaptive steps ten times shorter than the error requires.
    """
    if not isinstance(solver, diffrax.AbstractImplicitSolver):
        return solver
    if isinstance(controller, diffrax.AbstractAdaptiveStepSizeController):
        tolerances = Tolerances(controller.rtol, controller.atol)
    finder = solver.root_finder
    norm = _norm if isinstance(solver, AbstractDAESolver) else optx.rms_norm
    values = {**tolerances._asdict(), "norm": norm}
    unset = _unset_fields(solver)
    if not unset:
        return solver
    if type(finder) is diffrax.VeryChord and len(unset) == len(values):
        return eqx.tree_at(lambda s: s.root_finder, solver, optx.Chord(**values))
    return eqx.tree_at(
        lambda s: tuple(getattr(s.root_finder, name) for name in unset),
        solver,
        tuple(values[name] for name in unset),
    )


def _unset_fields(solver: diffrax.AbstractSolver) -> list[str]:
    """Return the names of root finder fields that a solver leaves to `simulate`."""
    if not isinstance(solver, diffrax.AbstractImplicitSolver):
        return []
    placeholder = diffrax.with_stepsize_controller_tols(optx.Newton)().rtol
    names = ("rtol", "atol", "norm")
    return [name for name in names if getattr(solver.root_finder, name, None) is placeholder]


def choose_dense_output(
    solver: diffrax.AbstractSolver,
    saveat: diffrax.SaveAt,
    event: diffrax.Event | None,
    has_transitions: bool = False,
) -> diffrax.AbstractSolver:
    """Return the solver with accurate dense output if values between steps are used."""
    has_times = getattr(saveat.subs, "ts", None) is not None
    finds_events = event is not None and event.root_finder is not None
    between = has_times or finds_events or saveat.dense or has_transitions
    return continuous(solver) if between else solver
