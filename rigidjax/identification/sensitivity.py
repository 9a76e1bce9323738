"""Derivatives of a trajectory with respect to parameters."""

from collections.abc import Sequence
from typing import Any, Literal, Unpack

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from ..adjoints.any_mode import AnyMode
from ..checks import common_dtype, is_traced, is_tracing
from ..formulations.choice import ModelInput, choose_formulation
from ..persistent_jit import persistent_jit
from ..results import RESULTS, SimulationError
from ..sensors import AbstractSensor, unwrap_measured_angles
from ..simulate.arguments import check_start_and_end, make_saveat
from ..state import State
from .experiment.checked_arguments import (
    check_no_prior,
    check_parameters,
    check_precision,
    check_sensors,
)
from .experiment.linearised_runs import ParametrisedExperiment, StateReader, simulate_readings
from .experiment.parameters import Experiment, Parameter, apply_starts, component_table
from .experiment.simulation import Settings, Simulation, resolve_simulation
from .starts.named_parameters import find_named_parameters

# Assumed cost of one reverse sweep, in forward directions.
_REVERSE_COST = 4


class Sensitivity(eqx.Module):
    """A trajectory and its derivatives with respect to parameters.

    **Attributes:**

    - `ts`: times, (T,) s.
    - `states`: the trajectory, a `State` with leading T; `None` if sensors were given.
    - `readings`: readings of each sensor, by its name, (T, *value_shape); empty without sensors.
    - `state_jacobian`: derivatives of `states`, a `State` in which every array has a trailing axis
      P: `position` (T, L, 3, P) and so on, `orientation` of the four quaternion components; `None`
      with sensors.
    - `jacobian`: derivatives of `readings`, by name, (T, *value_shape, P).
    - `labels`, `units`: of the P components of the parameters.
    - `mode`: "forward" or "reverse".
    - `result`: an `rj.RESULTS`.
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
    model: ModelInput,
    state0: State,
    t1: ArrayLike,
    parameters: Parameter | Sequence[Parameter],
    *,
    t0: ArrayLike = 0.0,
    ts: ArrayLike | None = None,
    sensors: AbstractSensor | Sequence[AbstractSensor] = (),
    mode: Literal["forward", "reverse"] | None = None,
    simulation: Simulation | None = None,
    throw: bool = True,
    **settings: Unpack[Settings],
) -> Sensitivity:
    """Return the Jacobian of a trajectory with respect to parameters.

    The accepted steps of the solver are differentiated, implicit ones by the implicit function
    theorem, so that both modes agree to round-off. The derivatives differ from those of the exact
    solution by an amount of the order of the tolerances. They are taken with respect to the
    physical components of a parameter that its transformation leaves free (rotation vectors for
    `Orientation`).

    Cost, for P components and N scalars in the result (T times the values at one time): forward
    mode carries P tangents through one solve and needs P times the memory of the trajectory;
    reverse mode solves once and then sweeps back N times, with checkpoints. Forward mode is chosen
    unless P exceeds 4 N, as for a few readings at the final time only.

    **Arguments:**

    - `model`, `state0`, `t1`, `t0`, `ts`, `throw`: as in `rj.simulate`.
    - `parameters`: one `Parameter` or several, of one run: `per_run` is ignored. A `start` replaces
      the value in the model. They must have no priors, which do not change a trajectory.
    - `sensors`: sensors whose readings are differentiated; if empty, the physical states are.
    - `mode`: `"forward"`, `"reverse"`, or `None` to choose by cost.
    - `simulation`: an `rj.Simulation`. Its `adjoint` must support the mode; `None` selects
      `rj.AnyMode()`, with the backend that is faster for the solver.
    - `solver`, `rtol`, `atol`, `dt`, `projection`, `adjoint`, `max_steps`, `backend`: instead of
      `simulation`, its arguments.

    **Returns:** a `Sensitivity`.
    **Raises:** `ValueError` and `TypeError` for arguments that do not fit; `SimulationError`.
    """
    model = choose_formulation(model, "sensitivity")
    if mode not in (None, "forward", "reverse"):
        raise ValueError(
            f'`sensitivity(mode=...)` must be "forward", "reverse" or None; got {mode!r}.'
        )
    sensor_list = (sensors,) if isinstance(sensors, AbstractSensor) else sensors
    sensors = check_sensors("`sensitivity(sensors=...)` takes", sensor_list, model)
    parameters = check_parameters("sensitivity", parameters)
    parameters = find_named_parameters(parameters, model, sensors)
    check_no_prior("sensitivity", parameters)
    check_precision("sensitivity", model, sensors, parameters)
    run_settings = resolve_simulation("sensitivity", simulation, settings)
    model = unwrap_measured_angles(model, sensors)
    dtype = common_dtype(model, state0)
    start, end = check_start_and_end(t0, t1, dtype)
    subs: Any = make_saveat(None, [end] if ts is None else ts, start, end, dtype).subs
    readers: Any = sensors or (StateReader(),)
    experiment = Experiment(model, model.check_state(state0, start), readers)
    experiment = apply_starts(parameters, experiment)
    parametrised = ParametrisedExperiment(experiment, parameters)
    table = component_table([(p, p.leaf(experiment).shape, "") for p in parameters])
    fitted = table.subset(table.fitted_indices)
    if mode is None:
        count = _num_values(parametrised.experiment) * subs.ts.shape[0]
        mode = "reverse" if len(fitted.labels) > _REVERSE_COST * count else "forward"
    traced = is_traced((parametrised, start, end, subs.ts)) or is_tracing()
    if mode == "reverse" or traced:
        run_settings = run_settings.with_defaults(dtype, adjoint=AnyMode())
    else:
        run_settings = run_settings.with_defaults(dtype).forward(model)
    indices = tuple(table.fitted_indices.tolist())
    values, result, derivatives = _differentiate(
        parametrised, (start, end), subs.ts, run_settings, indices, mode
    )
    okay = result == RESULTS.successful
    if throw and traced:
        derivatives = result.error_if(derivatives, ~okay)
    elif throw and not np.asarray(okay).all():
        raise SimulationError(RESULTS[result])
    description = fitted.labels, fitted.units, mode, result
    if not sensors:
        return Sensitivity(subs.ts, values[0], {}, derivatives[0], {}, *description)
    readings, jacobian = (
        {s.name: v for s, v in zip(sensors, arrays, strict=True)}
        for arrays in (values, derivatives)
    )
    return Sensitivity(subs.ts, None, readings, None, jacobian, *description)


@persistent_jit
def _differentiate(
    parametrised: ParametrisedExperiment,
    span: tuple[Array, Array],
    ts: Float[Array, " T"],
    simulation: Simulation,
    chosen: tuple[int, ...],
    mode: str,
) -> tuple[Any, RESULTS, Any]:
    zero = jnp.zeros_like(parametrised.values())
    fitted = np.array(chosen)

    def function(change):
        experiment = parametrised(zero.at[fitted].set(change))
        # Readings after the solve can be differentiated in both modes.
        values, result = simulate_readings(experiment, ts, simulation, span, during_solve=False)
        return values, (values, result)

    jacobian = jax.jacfwd if mode == "forward" else jax.jacrev
    derivatives, (values, result) = jacobian(function, has_aux=True)(zero[fitted])
    return values, result, derivatives


def _num_values(experiment: Experiment) -> int:
    """Return the number of scalars that are read at one time."""
    if isinstance(experiment.sensors[0], StateReader):
        return sum(leaf.size for leaf in jax.tree.leaves(experiment.state0))
    return sum(int(np.prod(s.value_shape)) for s in experiment.sensors)
