"""Derivatives of a trajectory by parameters."""

from collections.abc import Sequence
from typing import Any, Literal

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from ..adjoint import AnyMode
from ..arguments import save_at, times
from ..checks import is_traced, is_tracing
from ..formulations import AbstractFormulation
from ..projection import AbstractProjection
from ..results import RESULTS, SimulationError
from ..simulate import simulate
from ..state import State
from .parameters import Experiment, Parameter, check_leaves, with_leaves
from .priors import check_no_prior
from .sensors import AbstractSensor, tracking
from .start_state import with_start

# A reverse sweep is taken to cost as much as so many forward directions.
_REVERSE_COST = 4


class Sensitivity(eqx.Module):
    """A trajectory and its derivatives by parameters.

    **Attributes:**

    - `ts`: times, (T,) s.
    - `states`: the trajectory, a `State` with leading T; `None` if sensors were asked for.
    - `readings`: what each sensor reads, by its name, (T, *value_shape); empty without sensors.
    - `state_jacobian`: derivatives of `states`, a `State` with P behind every array:
      `position` (T, L, 3, P) and so on, `orientation` of the four quaternion components; `None`
      with sensors.
    - `jacobian`: derivatives of `readings`, by name, (T, *value_shape, P).
    - `labels`, `units`: of the P components of the parameters.
    - `mode`: "forward" or "reverse". `result`: an `rj.RESULTS`.
    """

    ts: Float[Array, " T"]
    states: State | None
    readings: dict[str, Array]
    state_jacobian: Any
    jacobian: dict[str, Array]
    labels: tuple[str, ...] = eqx.field(static=True)
    units: tuple[str, ...] = eqx.field(static=True)
    mode: str = eqx.field(static=True)
    result: RESULTS


def sensitivity(
    model: AbstractFormulation,
    state0: State,
    t1: ArrayLike,
    parameters: Parameter | Sequence[Parameter],
    *,
    t0: ArrayLike = 0.0,
    ts: ArrayLike | None = None,
    sensors: AbstractSensor | Sequence[AbstractSensor] = (),
    mode: Literal["forward", "reverse"] | None = None,
    solver: diffrax.AbstractSolver | None = None,
    rtol: float = 1e-8,
    atol: float = 1e-8,
    dt: ArrayLike | None = None,
    projection: bool | AbstractProjection = True,
    adjoint: diffrax.AbstractAdjoint | None = None,
    max_steps: int = 4096,
    throw: bool = True,
) -> Sensitivity:
    r"""Jacobian of a trajectory with respect to parameters.

    It differentiates the steps that the solver took, implicit ones by the implicit function
    theorem, so that both modes agree to round-off; the distance to the derivatives of the exact
    solution is that of the tolerances. Derivatives are by the physical components of a parameter
    that its transformation does not hold fixed (by rotation vectors for `Orientation`).

    Cost, for P components and N numbers in the result (T times the values at a time): forward
    mode carries P tangents through one solve, in memory P times the trajectory; reverse mode
    solves once and then sweeps back N times, with checkpoints. Forward is chosen unless P is above
    4 N, as for the end alone of few sensors.

    **Arguments:**

    - `model`, `state0`, `t1`, `t0`, `ts`, `solver`, `rtol`, `atol`, `dt`, `projection`,
      `max_steps`, `throw`: as in `rj.simulate`.
    - `parameters`: one `Parameter` or several, of one run: `per_run` makes no difference here.
      A `start` replaces what the model holds. Without priors: these change no trajectory.
    - `sensors`: whose readings are differentiated; none for the physical states.
    - `mode`: `"forward"`, `"reverse"`, or `None` to choose by the counts.
    - `adjoint`: a diffrax adjoint that serves the mode. `None` for `diffrax.ForwardMode()` in
      forward mode (`rj.AnyMode()` under a transformation), `rj.AnyMode()` in reverse mode.

    **Returns:** a `Sensitivity`.
    **Raises:** `ValueError` and `TypeError` for arguments that do not fit; `SimulationError`.
    """
    if not isinstance(model, AbstractFormulation):
        raise TypeError(
            "`sensitivity(model, ...)` takes a formulation such as `rj.NullSpace(system)`; got "
            f"{type(model).__name__}."
        )
    if mode not in (None, "forward", "reverse"):
        raise ValueError(
            f'`sensitivity(mode=...)` must be "forward", "reverse" or None; got {mode!r}.'
        )
    sensors = (sensors,) if isinstance(sensors, AbstractSensor) else tuple(sensors)
    parameters = (parameters,) if isinstance(parameters, Parameter) else tuple(parameters)
    _check(model, sensors, parameters)
    model = tracking(model, sensors)
    dtype = jnp.result_type(*filter(eqx.is_inexact_array, jax.tree.leaves((model, state0))))
    start, end = times(t0, t1, dtype)
    subs: Any = save_at(None, [end] if ts is None else ts, start, end, dtype).subs
    at = subs.ts
    experiment = Experiment(model, model.check_state(state0, start), sensors)
    experiment = with_start(experiment, parameters)
    check_leaves(parameters, experiment)
    leaves = [leaf_of(p, experiment) for p in parameters]
    labels, units, fitted = _components(parameters, leaves)
    count = _num_values(experiment) * at.shape[0]
    if mode is None:
        mode = "reverse" if len(labels) > _REVERSE_COST * count else "forward"
    traced = is_traced((experiment, leaves, start, end, at)) or is_tracing()
    if adjoint is None:
        adjoint = AnyMode() if mode == "reverse" or traced else diffrax.ForwardMode()
    options: dict[str, Any] = {
        "solver": solver, "rtol": rtol, "atol": atol, "dt": dt, "projection": projection,
        "adjoint": adjoint, "max_steps": max_steps,
    }  # fmt: skip
    run = VariedRun(experiment, parameters, tuple(leaves), start, end, at, options)
    (values, result), derivatives = _differentiate(run, fitted, mode)
    okay = result == RESULTS.successful
    if throw and traced:
        derivatives = result.error_if(derivatives, ~okay)
    elif throw and not np.asarray(okay).all():
        raise SimulationError(RESULTS[result])
    if not sensors:
        return Sensitivity(at, values, {}, derivatives, {}, labels, units, mode, result)
    readings, jacobian = (
        {s.name: v for s, v in zip(sensors, part, strict=True)} for part in (values, derivatives)
    )
    return Sensitivity(at, None, readings, None, jacobian, labels, units, mode, result)


class VariedRun(eqx.Module):
    """One run as a function of changes of its parameters."""

    experiment: Experiment
    parameters: tuple[Parameter, ...]
    leaves: tuple[Array, ...]
    t0: Array
    t1: Array
    ts: Float[Array, " T"]
    options: dict[str, Any]

    def __call__(self, change: Float[Array, " E"]) -> tuple[Any, tuple[Any, Any]]:
        """What is differentiated, twice, and the result."""
        changed, begin = [], 0
        for p, leaf in zip(self.parameters, self.leaves, strict=True):
            end = begin + p.transform.estimates(leaf).shape[0]
            changed.append(p.transform.perturbed(leaf, change[begin:end]))
            begin = end
        at = with_leaves(self.parameters, self.experiment, changed)
        state0, _ = at.started(self.t0)
        solution = simulate(
            at.model, state0, self.t1, t0=self.t0, ts=self.ts, throw=False, **self.options
        )
        # Read after the solve, for derivatives in either mode; of projected unknowns, as in fits.
        values = jax.vmap(lambda t, y: _read(at, t, y))(solution.ts, solution.ys)
        return values, (values, solution.result)


@eqx.filter_jit
def _differentiate(run, fitted, mode):
    size = sum(
        p.transform.estimates(leaf).shape[0]
        for p, leaf in zip(run.parameters, run.leaves, strict=True)
    )
    zero = jnp.zeros(size, run.ts.dtype)
    chosen = np.array(fitted)

    def function(change):
        return run(zero.at[chosen].set(change))

    jacobian = jax.jacfwd if mode == "forward" else jax.jacrev
    derivatives, values = jacobian(function, has_aux=True)(zero[chosen])
    return values, derivatives


def _read(experiment, t, y):
    model, sensors = experiment.model, experiment.sensors
    if not sensors:
        return model.decode(t, y)
    return tuple(sensor.predict(model, t, y) for sensor in sensors)


def _num_values(experiment):
    """Number of scalars that are read at a time."""
    if experiment.sensors:
        return sum(int(np.prod(s.value_shape)) for s in experiment.sensors)
    return sum(leaf.size for leaf in jax.tree.leaves(experiment.state0))


def _check(model, sensors, parameters):
    for sensor in sensors:
        if not isinstance(sensor, AbstractSensor):
            raise TypeError(
                "`sensitivity(sensors=...)` takes sensors such as `rj.Gyroscope()`; got "
                f"{sensor!r}."
            )
        sensor.check(model)
    names = [sensor.name for sensor in sensors]
    if len(set(names)) < len(names):
        raise ValueError(f"Every sensor needs a name of its own; got {names}.")
    for parameter in parameters:
        if not isinstance(parameter, Parameter):
            raise TypeError(
                "`sensitivity(parameters=...)` takes `rj.Parameter` objects; got "
                f"{type(parameter).__name__}."
            )
    names = [p.name for p in parameters]
    if not parameters or len(set(names)) < len(names):
        raise ValueError(
            f"`sensitivity(parameters=...)` needs parameters of different names; got {names}."
        )
    check_no_prior("sensitivity", parameters)


def leaf_of(parameter, experiment):
    """Where the derivative is taken: the leaf, or `start` in its place."""
    leaf = parameter.leaf(experiment)
    if parameter.start is None:
        return leaf
    if parameter.start.shape != leaf.shape:
        raise ValueError(
            f"`Parameter({parameter.name!r}, start=...)` must have shape {leaf.shape}; got "
            f"{parameter.start.shape}."
        )
    return parameter.start.astype(leaf.dtype)


def _components(parameters, leaves):
    """Labels, units and places of the components that are not held fixed."""
    labels, units, fitted, begin = [], [], [], 0
    for p, leaf in zip(parameters, leaves, strict=True):
        names = p.component_labels(leaf.shape)
        chosen = p.transform.fitted(leaf.shape)
        labels += [names[i] for i in chosen]
        units += [p.component_units(leaf.shape)[i] for i in chosen]
        fitted += [begin + i for i in chosen]
        begin += len(names)
    return tuple(labels), tuple(units), tuple(fitted)
