"""A model that is advanced one period at a time by pure functions."""

import functools
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool

from ..annotations import Count, Scalar
from ..checks import ArrayInput, check_finite, collect_faults, common_dtype, float_array, is_traced
from ..formulations import AbstractFormulation
from ..formulations.binding import bind_inputs
from ..formulations.charts import Unknowns, split_chart
from ..formulations.view import SystemView
from ..native import call_as_kernel, call_as_single_kernel, check_backend, why_too_large_matrices
from ..projection import AbstractProjection
from ..results import RESULTS
from ..signals.call_times import find_call_times
from ..signals.inputs import check_names, inputs_of, with_inputs
from ..signals.shared_tables import check_shared_times
from ..simulate.arguments import (
    DEFAULT_TOLERANCE,
    Tolerances,
    check_index,
    check_signals,
    check_solver,
    choose_method,
    count_samples,
)
from ..simulate.integration import evaluate_equations
from ..solvers.conserving.base import AbstractStructureSolver
from ..solvers.dae.base import AbstractDAESolver
from ..solvers.wrappers.sampled import take_first_samples
from ..state import State
from .advance import Memory, PeriodMethod, advance_adaptive, advance_fixed, start_memory

# Relative deviation of a period from a multiple of the step that is round-off.
_STEP_TOLERANCE = 1e-6


def placeholders(model: AbstractFormulation, bound: Mapping[str, Any]) -> dict[str, Array]:
    """Return the defaults of inputs that are not bound, and zeros of those without a default."""
    dtype = common_dtype(model)
    return {
        name: jnp.zeros(target.shape, dtype)
        if target.default is None
        else jnp.asarray(target.default, dtype)
        for name, target in sorted(inputs_of(model).items())
        if name not in bound
    }


def check_inputs(model: AbstractFormulation, inputs: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the inputs that are bound when a stepper is built, checked."""
    where = "Stepper(inputs=...)"
    inputs = {} if inputs is None else inputs
    if isinstance(inputs, Mapping):
        free = placeholders(model, inputs)
        bind_inputs(with_inputs(model, free), inputs, where)
        return dict(inputs)
    bind_inputs(model, inputs, where)
    raise AssertionError("`bind_inputs` accepts mappings alone")


def known_time(value: float, name: str) -> float:
    """Return a positive number of seconds that is concrete when a stepper is built."""
    if is_traced(value):
        raise ValueError(
            f"`Stepper({name}=...)` must be a known number of seconds; got a traced value."
        )
    found = float(check_finite(float_array(value, f"Stepper({name}=...)", ()), name))
    if not found > 0:
        raise ValueError(f"`Stepper({name}=...)` must be positive, s; got {found:g}.")
    return found


def check_max_steps(max_steps: int) -> int:
    """Return the checked limit of the number of steps of a period."""
    is_count = isinstance(max_steps, int | np.integer) and not isinstance(max_steps, bool)
    if not is_count or max_steps < 1:
        raise ValueError(
            f"`Stepper(max_steps=...)` must be an integer of at least 1; got {max_steps!r}."
        )
    return int(max_steps)


def count_steps(period: float, dt: float) -> int:
    """Return the number of steps of a period; `ValueError` if it is no multiple of the step."""
    step = known_time(dt, "dt")
    count = max(round(period / step), 1)
    if abs(period - count * step) > _STEP_TOLERANCE * period:
        raise ValueError(
            f"`Stepper(period=..., dt=...)`: the period must be a multiple of the step; got "
            f"{period:g} s and {step:g} s. Use `dt={period / count:g}`."
        )
    return count


class StepperState(eqx.Module):
    """A model between two periods of a `Stepper`, a pytree.

    **Attributes:**

    - `t`: time, s.
    - `unknowns`: the unknowns of the formulation, revolutions of joints included.
    - `inputs`: the values of the inputs in the last period, by name.
    - `result`: `RESULTS.successful`, or the reason for which a period failed; all unknowns are NaN
      from then on.
    - `num_steps`: the number of steps of the solver since `init`.
    - `start`, `count`: time of `init`, s, and number of periods since; `memory`, the state of the
      solver and of its step-size controller.
    """

    t: Scalar
    unknowns: Unknowns
    inputs: dict[str, Array]
    result: RESULTS
    num_steps: Count
    start: Scalar
    count: Count  # pyright: ignore[reportIncompatibleMethodOverride]
    memory: Memory | None


class Stepper(eqx.Module):
    r"""A model that is advanced one period at a time, for environments, learning and control.

    ```python
    stepper = rj.Stepper(model, 0.02, solver=diffrax.Tsit5(), dt=0.01)
    y = stepper.init(state)
    y = stepper.step(y, {"u": 3.0})
    stepper.observe(y).coordinates["hinge"]
    ```

    `init`, `step` and `observe` are pure functions, for `jax.lax.scan`, `jax.vmap`, `jax.jit`,
    `jax.jvp` and `jax.grad`. The pytree that they pass on, a `StepperState`, contains everything
    that the next period needs, so that a sequence of periods is one run: revolutions of joints, the
    history of a multistep method, and the length that an adaptive step size had planned when the
    end of the period cut a step. To change the state, start again by `init`. Where a run can be a
    native kernel, a period is one.

    With `dt` and an explicit Runge-Kutta method a period is a loop with a constant number of
    iterations, which costs least. Otherwise steps are adaptive, or those of an implicit or
    structure-preserving solver.

    A period that fails does not raise: `y.result` names the reason for each environment of a
    batch, and its unknowns are NaN.

    **Arguments:**

    - `model`: a formulation such as `rj.Relative(system)`.
    - `period`: s, a concrete number.
    - `solver`, `rtol`, `atol`, `projection`, `backend`: as of `rj.simulate`.
    - `dt`: a fixed step, s, of which the period is a multiple; `None` for adaptive steps.
    - `inputs`: inputs that are the same in all periods, by name: policies, signals, values, or an
      `rj.SampledController`, of whose period that of the stepper is a multiple. All others are
      given to `step`, and have their defaults where they are not.
    - `max_steps`: the number of steps, accepted and rejected, after which an adaptive period fails.

    **Raises:** `TypeError` and `ValueError` for arguments that do not fit.
    """

    model: AbstractFormulation
    inputs: dict[str, Any]
    method: PeriodMethod
    period: float = eqx.field(static=True)

    def __init__(
        self,
        model: AbstractFormulation,
        period: float,
        *,
        solver: diffrax.AbstractSolver | None = None,
        rtol: ArrayLike = DEFAULT_TOLERANCE,
        atol: ArrayLike = DEFAULT_TOLERANCE,
        dt: float | None = None,
        inputs: Mapping[str, Any] | None = None,
        projection: bool | AbstractProjection = True,
        max_steps: int = 4096,
        backend: str = "auto",
    ):
        if not isinstance(model, AbstractFormulation):
            raise TypeError(
                "`Stepper(model, ...)` takes a formulation such as `rj.Relative(system)`; got "
                f"{type(model).__name__}."
            )
        if model.rotation.num_constraints == 0 and not model.recharting:
            # Without rotation coordinates there is no singularity.
            if model.layout.num_rotations:
                raise ValueError(
                    "`Stepper` does not watch the singularities of "
                    f"`{type(model.rotation).__name__}`. Use `recharting=True`, or "
                    "`rj.Quaternion()`."
                )
        self.period = known_time(period, "period")
        self.inputs = check_inputs(model, inputs)
        self.model = check_shared_times(model)
        solver = check_solver(solver, "Stepper")
        check_index(model, solver)
        bound = self._bind(placeholders(model, self.inputs))
        self._check_call_times(bound)
        tolerances, dtype = Tolerances(rtol, atol), common_dtype(model)
        method = choose_method(bound, solver, tolerances, None, dt, projection, dtype, "Stepper")
        check_signals(bound, solver, method.controller, None, None, None, "Stepper")
        samples = count_samples(bound, 0.0, self.period, dt)
        smooth = isinstance(solver, AbstractStructureSolver) and not solver.forces_may_jump
        if smooth and self._step_inputs:
            raise ValueError(
                f"`{type(solver).__name__}` carries accelerations from step to step, but inputs of "
                "`Stepper.step` make them jump, which would reduce the order to one. Use "
                "`rj.solvers.EnergyMomentum()` or a Runge-Kutta method."
            )
        self.method = PeriodMethod(
            solver=method.solver,
            controller=method.controller,
            projection=method.projection,
            num_steps=None if dt is None else count_steps(self.period, dt),
            num_samples=tuple(samples.items()),
            max_steps=check_max_steps(max_steps),
            backend=check_backend(backend),
        )

    def init(self, state: State, t: ArrayInput = 0.0) -> StepperState:
        """Return the start of a sequence of periods.

        **Arguments:** `state`, as of `rj.simulate`; `t`, its time, s.
        **Errors:** those of `model.encode`, for concrete values. Traced values that are not
        admissible give their environment the result `RESULTS.invalid_input` and NaN.
        """
        dtype = common_dtype(self.model, state)
        t = jnp.asarray(check_finite(float_array(t, "Stepper.init(t=...)", ()), "t"), dtype)
        values = placeholders(self.model, self.inputs)
        with collect_faults() as faults:
            state = self._bind(values).check_state(state, t)
        invalid = jnp.any(jnp.stack(faults)) if faults else jnp.array(False)
        return _start(self, state, t, values, invalid)

    def step(self, y: StepperState, inputs: Mapping[str, ArrayInput] | None = None) -> StepperState:
        """Return the model after one period, in which the inputs have constant values.

        **Arguments:** `y`, of `init` or `step`; `inputs`, by name, shape () or (size,).
        **Errors:** `ValueError` for an unknown name, a wrong shape, an input without a value and
        one that was given to `Stepper`; `TypeError` for an object that is not a number.
        """
        values = self._check_values(inputs)
        if is_traced(self):
            return _step(self, y, values)
        return _compiled_step(self)(y, values)

    def observe(self, y: StepperState) -> SystemView:
        """Return a view with coordinates, rates, state, frames and sensor readings of the model.

        Sensors that depend on forces, such as accelerometers, see the inputs of the last period.
        A view contains the model: functions under `jax.vmap` and `jax.lax.scan` should return
        values of the view, not the view itself.
        """
        return SystemView(self._bind(y.inputs), y.t, y.unknowns)

    @property
    def input_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the inputs that `step` takes, by name: () or (size,)."""
        return {name: target.shape for name, target in self._step_inputs.items()}

    @property
    def _step_inputs(self) -> dict[str, Any]:
        """Inputs that `step` takes, by name."""
        known = inputs_of(self.model)
        return {name: known[name] for name in sorted(known) if name not in self.inputs}

    def _check_values(self, inputs: Mapping[str, ArrayInput] | None) -> dict[str, Array]:
        """Return the values of all inputs that `step` takes."""
        where = "Stepper.step(y, inputs)"
        if inputs is not None and not isinstance(inputs, Mapping):
            raise TypeError(f"`{where}` takes a dict of values by name; got {inputs!r}.")
        given, known = inputs or {}, inputs_of(self.model)
        check_names(list(given), known, where)
        for name in given:
            if name in self.inputs:
                raise ValueError(
                    f"`{where}`: the input {name!r} was given to `Stepper(inputs=...)` already. "
                    "Give it to one of the two."
                )
        values, dtype = {}, common_dtype(self.model)
        for name, target in self._step_inputs.items():
            value = given.get(name, target.default)
            if value is None:
                raise ValueError(
                    f"`{where}` has no value for the input {name!r}, which has no default. Add "
                    f"`{{{name!r}: ...}}`."
                )
            label = f"Stepper.step(y, {{{name!r}: ...}})"
            if callable(value):
                raise TypeError(
                    f"`{label}` must be a value; got {value!r}. Policies and signals are given to "
                    "`Stepper(inputs=...)`."
                )
            value = float_array(value, label, target.shape)
            if not is_traced(value):
                check_finite(value, label)
            values[name] = jnp.asarray(value, dtype)
        return values

    def _bind(
        self, values: Mapping[str, Array], model: AbstractFormulation | None = None
    ) -> AbstractFormulation:
        """Return the model with the values of the inputs of `step` and those of `Stepper`."""
        model = with_inputs(self.model if model is None else model, values)
        # Faults of traced values give a state that is not finite, which has its own result.
        with collect_faults():
            return bind_inputs(model, self.inputs, "Stepper(inputs=...)")

    def _check_call_times(self, bound: AbstractFormulation) -> None:
        """Raise `ValueError` for a law that evaluates an input of `step` at another time.

        **Arguments:** `bound`, the model with any values of its inputs.
        """

        def equations(model: AbstractFormulation, t: Scalar, y: Unknowns) -> Any:
            return evaluate_equations(self._bind(values, model), t, y)

        def unknowns() -> Unknowns:
            start = bound.chart if bound.recharting else bound.start
            return eqx.filter_eval_shape(start, bound.multibody.reference_state(), t)

        values = placeholders(self.model, self.inputs)
        t = jnp.zeros((), common_dtype(self.model))
        find_call_times(self.model, equations, t, unknowns, list(self._step_inputs))


@eqx.filter_jit
def _start(
    stepper: Stepper, state: State, t: Scalar, values: dict[str, Array], invalid: Bool[Array, ""]
) -> StepperState:
    """Return the state of a stepper at a checked state, NaN if it is `invalid`."""

    def start(stepper, state, t, values, invalid):
        model, state = stepper._bind(values), state.normalized()
        y = model.chart(state, t) if model.recharting else model.start(state, t)
        memory = None
        if not stepper.method.is_fixed_explicit:
            memory = start_memory(stepper.method, model, y, t, t + stepper.period)
        fine: Any = RESULTS.successful
        result = RESULTS.where(invalid, RESULTS.invalid_input, fine)
        zero = jnp.array(0)
        return StepperState(t, _nan_unless(~invalid, y), values, result, zero, t, zero, memory)

    return call_as_kernel(
        stepper.method.backend, why_too_large_matrices, start, stepper, state, t, values, invalid
    )


def _step(stepper: Stepper, y: StepperState, values: dict[str, Array]) -> StepperState:
    """Return the state of a stepper after a period with checked values of its inputs."""
    # Known parameters are constants of the kernel: zeros and ones of axes cost nothing.
    function: Callable[..., Any] = _advance
    arguments: tuple[Any, ...] = (stepper, y, values)
    if not is_traced(stepper):
        function, arguments = functools.partial(_advance, stepper), (y, values)
    if stepper.method.is_fixed_explicit:
        backend = stepper.method.backend
        return call_as_kernel(backend, why_too_large_matrices, function, *arguments)[0]
    return call_as_single_kernel(_ran_native, function, *arguments)[0]


def _compiled_step(stepper: Stepper) -> Callable[..., StepperState]:
    """Return the compiled function of a period of this stepper, the same one each time."""
    if id(stepper) not in _COMPILED:
        # The function must not keep the stepper alive: it is removed when the stepper is collected.
        leaves, structure = jax.tree.flatten(stepper)
        _COMPILED[id(stepper)] = eqx.filter_jit(
            lambda y, values: _step(jax.tree.unflatten(structure, leaves), y, values)
        )
        weakref.finalize(stepper, _COMPILED.pop, id(stepper)).atexit = False
    return _COMPILED[id(stepper)]


_COMPILED: dict[int, Callable[..., StepperState]] = {}


def _ran_native(results: tuple[StepperState, Any]) -> bool:
    return results[1] == "native"


def _advance(
    stepper: Stepper, y: StepperState, values: dict[str, Array]
) -> tuple[StepperState, Any]:
    """Return the state of a stepper after a period, and the backend of its solve."""
    method, model = stepper.method, stepper._bind(values)
    successful: Any = RESULTS.successful
    runs = y.result == successful
    count = y.count + 1
    t1 = y.start + count.astype(y.t.dtype) * stepper.period
    unknowns = y.unknowns
    if method.num_samples:
        first = take_first_samples(model, y.t, unknowns)
        unknowns = jax.tree.map(lambda a, b: jnp.where(y.count == 0, a, b), first, unknowns)
    if method.is_fixed_explicit:
        done = advance_fixed(method, model, unknowns, y.t, t1, y.start)
    else:
        assert y.memory is not None
        # Adaptive steps of values that are not finite would be rejected until the limit.
        end = jnp.where(runs, t1, y.t)
        reset = None
        if isinstance(method.solver, AbstractDAESolver) and values:
            changes = [jnp.any(values[name] != y.inputs[name]) for name in values]
            reset = jnp.any(jnp.stack(changes))
        done = advance_adaptive(method, model, unknowns, y.memory, y.t, end, reset, y.start)
    finite = jnp.all(jnp.isfinite(split_chart(done.unknowns)[0]))
    result = RESULTS.where(
        finite | (done.result != successful), done.result, RESULTS.nonfinite_state
    )
    result = RESULTS.where(runs, result, y.result)
    new = StepperState(
        t=t1,
        unknowns=_nan_unless(result == successful, done.unknowns),
        inputs=values,
        result=result,
        num_steps=y.num_steps + jnp.asarray(done.num_steps, y.num_steps.dtype),
        start=y.start,
        count=count,
        memory=done.memory,
    )
    return new, done.backend


def _nan_unless(okay: Bool[Array, ""], y: Unknowns) -> Unknowns:
    """Return the unknowns, NaN with derivatives of NaN unless `okay`."""
    factor = jnp.where(okay, 1.0, jnp.nan)
    return jax.tree.map(lambda x: x * factor.astype(x.dtype), y)
