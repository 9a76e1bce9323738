"""State at the first sample, from the first samples of joint sensors."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...formulations import AbstractFormulation, NullSpace
from ...formulations.leaves import LeafPath
from ...identification import (
    Delayed,
    Experiment,
    JointCoordinate,
    JointRate,
    Measurements,
    Parameter,
    Position,
)
from ...identification.experiment.start_change import StartSelector
from ...identification.starts.estimates import estimate_start, joint_sensors
from ...mechanics import System, has_joints
from ...persistent_jit import persistent_jit
from ...state import State
from .schema import CaseTable

# A start that is not fitted may differ from the first samples by this number of standard deviations
# of the noise plus this fraction of the range of the measurements. It is rejected if all of the
# first `_NUM_FIRST` samples differ by more.
_MAX_DEVIATIONS, _MAX_FRACTION = 10.0, 0.01
_NUM_FIRST = 3


def start_of_runs(
    top: CaseTable,
    formulation: AbstractFormulation,
    runs: Sequence[Measurements],
    parameters: Sequence[Parameter],
    state0: State | None,
) -> State | list[State] | None:
    """Return the start states of a case for `rj.identify`.

    If the start of a system with joints is fitted and the case has no `[state]`, the fit starts
    from the first samples of the sensors, see `estimate_starts`. A start that is not fitted must
    agree with them.

    **Errors:** `ValueError` for a start that is not fitted and contradicts the first samples, and
    for first samples that violate the joints.
    """
    fitted = {kind for parameter in parameters for kind in _fitted_sensor_types(parameter)}
    if not has_joints(formulation.system):
        positions = [s for s in runs[0].sensors if isinstance(_inner_sensor(s), Position)]
        if state0 is not None or not (fitted and positions):
            return state0
        return [top.call(estimate_start, formulation, run) for run in runs]
    state = formulation.multibody.reference_state() if state0 is None else state0
    for run in runs:
        top.call(_check_first_samples, formulation, run, state, fitted, parameters)
    if state0 is not None or not fitted:
        return state
    kinds = (JointCoordinate in fitted, JointRate in fitted)
    return [top.call(estimate_start, formulation, run, *kinds) for run in runs]


def _inner_sensor(sensor: Any) -> Any:
    return sensor.sensor if isinstance(sensor, Delayed) else sensor


def _fitted_sensor_types(parameter: Parameter) -> tuple[type, ...]:
    """Return the types of joint sensors whose readings at the start a parameter determines."""
    where: Any = parameter.where
    if isinstance(where, StartSelector):
        return (JointCoordinate,) * where.positions + (JointRate,) * where.rates
    if isinstance(where, LeafPath) and where.steps[0] == "state0":
        return (JointCoordinate, JointRate)
    return ()


def _is_calibrated(sensor: Any, parameters: Sequence[Parameter], experiment: Experiment) -> bool:
    """Return whether bias or scale of a sensor is fitted: its first sample then proves nothing."""
    for where in (where for p in parameters for where in (p.where, *p.tied)):
        try:
            leaf = where(experiment)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            continue  # not a parameter of a sensor; `read_parameters` reports wrong paths
        if leaf is sensor.bias or leaf is sensor.scale:
            return True
    return False


def _check_first_samples(
    formulation: Any,
    run: Measurements,
    state: State,
    fitted: set[type],
    parameters: Sequence[Parameter],
) -> None:
    """Raise `ValueError` if the first samples of a joint sensor contradict the start."""
    experiment = Experiment(formulation, state, run.sensors)
    sensors = [
        entry
        for entry in joint_sensors(formulation, run)
        if type(entry[0]) not in fitted and not _is_calibrated(entry[0], parameters, experiment)
    ]
    if not sensors:
        return
    model = NullSpace(formulation.system)
    y, t = model.encode(state), run.ts[0]

    @persistent_jit
    def read(model, y, t):
        return [sensor.predict(model, t, y) for sensor, *_ in sensors]

    for (sensor, k, joint, _), start in zip(sensors, read(model, y, t), strict=True):
        rows = np.flatnonzero(run.mask[k][:, 0])
        if rows[0] >= _NUM_FIRST:
            continue  # the sensor starts later
        values = np.asarray(run.values[k])[rows]
        if run.noise[k] is not None:
            noise = np.asarray(run.noise[k])[0, 0]
        else:  # from second differences of a smooth motion
            is_long = len(values) > _NUM_FIRST
            noise = np.std(np.diff(values, n=2)) / np.sqrt(6) if is_long else np.inf
        off = values[:_NUM_FIRST] - float(start)
        if isinstance(sensor, JointCoordinate) and sensor.unit_in(model) == "rad":
            off -= 2 * np.pi * np.round(off / (2 * np.pi))
        off = np.abs(off)
        if np.all(off > _MAX_DEVIATIONS * noise + _MAX_FRACTION * np.ptp(values)):
            key = "joints" if isinstance(sensor, JointCoordinate) else "joint_rates"
            first = float(sensor.ideal_value(values[0]))
            run_text = f" in the run {run.name!r}" if run.name else ""
            raise ValueError(
                f"the start is not fitted; the {sensor.name}{run_text} first reads "
                f"{values[0]:.4g} where the start has {float(start):.4g}. Set the start, as in "
                f"`[state] {key} = {{ {joint.name} = {first:.4g} }}`, or fit it, with a "
                '[[parameter]] whose `path` is "start_state".'
            )


def check_start_is_observable(
    top: CaseTable, formulation: AbstractFormulation, sensors: Any, parameters: Sequence[Parameter]
) -> None:
    """Raise `ValueError` if a fitted start contains the unobservable position of a free body."""
    system = formulation.system
    starts = [p for p in parameters if isinstance(p.where, StartSelector) and p.prior is None]
    if not (starts and isinstance(system, System)) or system.has_loops:
        return
    free = [
        body.name
        for body, joint in zip(system.bodies, system.topology.joints, strict=True)
        if joint is None
    ]
    inner = [_inner_sensor(s) for s in sensors]
    parts = (*inner, *system.forces)
    if free and not any(part.depends_on_translation for part in parts):
        top.fail(
            f"the start of {free[0]!r} cannot be fitted completely: no measurement depends on the "
            "position and the velocity of this free body. Add a sensor of type Position; or, "
            "instead of start_state, fit `state0.angular_velocity` and `state0.orientation` (with "
            '`transform = "orientation"`).'
        )
