"""Derivatives of a trajectory by parameters."""

from collections.abc import Sequence
from typing import Any, Literal, Unpack

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from ..adjoints.any_mode import AnyMode
from ..checks import common_dtype, is_traced, is_tracing
from ..formulations import AbstractFormulation
from ..results import RESULTS, SimulationError
from ..sensors import AbstractSensor, unwrap_measured_angles
from ..simulate.arguments import check_start_and_end, make_saveat
from ..state import State
from .checked_arguments import check_model, check_precision, check_sensors, checked_parameters
from .linearised_runs import Motion, Varied, observed
from .parameters import Experiment, Parameter, components_of, started
from .prior_rows import check_no_prior
from .simulation import Settings, Simulation, simulation_of

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
    simulation: Simulation | None = None,
    throw: bool = True,
    **settings: Unpack[Settings],
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

    - `model`, `state0`, `t1`, `t0`, `ts`, `throw`: as in `rj.simulate`.
    - `parameters`: one `Parameter` or several, of one run: `per_run` makes no difference here.
      A `start` replaces what the model holds. Without priors: these change no trajectory.
    - `sensors`: whose readings are differentiated; none for the physical states.
    - `mode`: `"forward"`, `"reverse"`, or `None` to choose by the counts.
    - `simulation`: an `rj.Simulation`, or its arguments one by one as `settings`: `rtol` and so on.
      Its `adjoint` has to serve the mode; `None` for `rj.AnyMode()`, by XLA in
      forward mode with Radau methods, diffrax's implicit ones and, with joints,
      structure-preserving steps but those on groups.

    **Returns:** a `Sensitivity`.
    **Raises:** `ValueError` and `TypeError` for arguments that do not fit; `SimulationError`.
    """
    check_model("sensitivity", model)
    if mode not in (None, "forward", "reverse"):
        raise ValueError(
            f'`sensitivity(mode=...)` must be "forward", "reverse" or None; got {mode!r}.'
        )
    given = (sensors,) if isinstance(sensors, AbstractSensor) else sensors
    sensors = check_sensors("`sensitivity(sensors=...)` takes", given, model)
    parameters = checked_parameters("sensitivity", parameters)
    check_no_prior("sensitivity", parameters)
    check_precision("sensitivity", model, sensors, parameters)
    how = simulation_of("sensitivity", simulation, settings)
    model = unwrap_measured_angles(model, sensors)
    dtype = common_dtype(model, state0)
    start, end = check_start_and_end(t0, t1, dtype)
    subs: Any = make_saveat(None, [end] if ts is None else ts, start, end, dtype).subs
    readers: Any = sensors or (Motion(),)
    experiment = Experiment(model, model.check_state(state0, start), readers)
    experiment = started(parameters, experiment)
    varied = Varied(experiment, parameters)
    table = components_of([(p, p.leaf(experiment).shape, "") for p in parameters])
    part = table.part(table.chosen)
    if mode is None:
        count = _num_values(varied.experiment) * subs.ts.shape[0]
        mode = "reverse" if len(part.labels) > _REVERSE_COST * count else "forward"
    traced = is_traced((varied, start, end, subs.ts)) or is_tracing()
    if mode == "reverse" or traced:
        how = how.prepared(dtype, adjoint=AnyMode())
    else:
        how = how.prepared(dtype).forward(model)
    chosen = tuple(table.chosen.tolist())
    values, result, derivatives = _differentiate(varied, (start, end), subs.ts, how, chosen, mode)
    okay = result == RESULTS.successful
    if throw and traced:
        derivatives = result.error_if(derivatives, ~okay)
    elif throw and not np.asarray(okay).all():
        raise SimulationError(RESULTS[result])
    described = part.labels, part.units, mode, result
    if not sensors:
        return Sensitivity(subs.ts, values[0], {}, derivatives[0], {}, *described)
    readings, jacobian = (
        {s.name: v for s, v in zip(sensors, part, strict=True)} for part in (values, derivatives)
    )
    return Sensitivity(subs.ts, None, readings, None, jacobian, *described)


@eqx.filter_jit
def _differentiate(varied, span, ts, simulation, chosen, mode):
    zero = jnp.zeros_like(varied.values())
    chosen = np.array(chosen)

    def function(change):
        experiment = varied(zero.at[chosen].set(change))
        # Read after the solve, for derivatives in either mode.
        values, result = observed(experiment, ts, simulation, span, within=False)
        return values, (values, result)

    jacobian = jax.jacfwd if mode == "forward" else jax.jacrev
    derivatives, (values, result) = jacobian(function, has_aux=True)(zero[chosen])
    return values, result, derivatives


def _num_values(experiment):
    """Number of scalars that are read at a time."""
    if isinstance(experiment.sensors[0], Motion):
        return sum(leaf.size for leaf in jax.tree.leaves(experiment.state0))
    return sum(int(np.prod(s.value_shape)) for s in experiment.sensors)
