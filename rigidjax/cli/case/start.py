"""The state at the first sample: `[state]`, or what sensors of joints say first."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import numpy as np

from ...forces import Gravity, Motor, PointForce, Torque, TorsionSpring
from ...formulations import AbstractFormulation, NullSpace
from ...identification import (
    Accelerometer,
    Attitude,
    Delayed,
    Experiment,
    Gyroscope,
    JointCoordinate,
    JointRate,
    JointTorque,
    Measurements,
    Parameter,
)
from ...identification.start_change import StartSelector
from ...initial import jointed_state
from ...mechanics import System, has_joints
from ...sensors.joint import num_coordinates
from ...state import State
from .paths import LeafPath
from .table import Table

# A start that is not fitted may be off the first samples by so many standard deviations,
# and by a part of all that is measured,
_FAR, _PART = 10.0, 0.01
# as so many first samples say.
_FIRST = 3

# What neither acts on a body by its place or velocity nor reads them; nothing is said of others.
_PLACELESS_FORCES = (Gravity, Motor, PointForce, Torque, TorsionSpring)
_PLACELESS_SENSORS = (Accelerometer, Attitude, Gyroscope, JointCoordinate, JointRate, JointTorque)


def read_state(formulation: AbstractFormulation, table: Table) -> State:
    """The table `[state]`; what it leaves out is as in the reference configuration.

    **Errors:** `ValueError` naming the table.
    """
    if table.has("joints") or table.has("joint_rates"):
        if not has_joints(formulation.system):
            table.fail("`joints` are given, and this model has none.")
        values = [_by_joint(table, key) for key in ("joints", "joint_rates")]
        table.asked -= {*_ROWS, "angles"}
        table.done()
        return table.checked(jointed_state, formulation.system, *values)
    reference = formulation.multibody.reference_state()
    parts = {}
    for key in _ROWS:
        parts[key] = table.numbers(key, None)
        if parts[key] is None:
            parts[key] = getattr(reference, key)
    parts["angles"] = _by_joint(table, "angles")
    table.done()
    return table.checked(lambda: formulation.check_state(State(**parts)))


_ROWS = ("position", "orientation", "velocity", "angular_velocity")


def _by_joint(table, key):
    part = table.table(key, {})
    return {name: part.numbers(name) for name in list(part.values)}


def start_of_runs(
    top: Table,
    formulation: AbstractFormulation,
    runs: Sequence[Measurements],
    parameters: Sequence[Parameter],
    given: State | None,
) -> State | list[State] | None:
    """Start states of a case, as `rj.identify` takes them.

    Where the start of a system with joints is fitted and not given, the fit starts from the first
    samples of the joints. Where it is not fitted, it has to agree with them.

    **Errors:** `ValueError` for a start that is not fitted and that first samples contradict, and
    for first samples that the joints do not allow.
    """
    if not has_joints(formulation.system):
        return given
    fitted = {kind for parameter in parameters for kind in _fitted(parameter)}
    state = formulation.multibody.reference_state() if given is None else given
    for run in runs:
        top.checked(_check_first, formulation, run, state, fitted, parameters)
    if given is not None or not fitted:
        return state
    return [top.checked(_first_state, formulation, run, fitted) for run in runs]


def _fitted(parameter: Parameter) -> tuple[type, ...]:
    """Of which sensors the readings at the start are fitted with a parameter."""
    where: Any = parameter.where
    if isinstance(where, StartSelector):
        return (JointCoordinate,) * where.positions + (JointRate,) * where.rates
    if isinstance(where, LeafPath) and where.steps[0] == "state0":
        return (JointCoordinate, JointRate)
    return ()


def _of_joints(formulation, run) -> list[tuple[Any, int, Any, int]]:
    """Sensors of joints whose reading is one of the numbers that place them.

    Each with its number, the joint, and which of its numbers it is.
    """
    out = []
    for k, outer in enumerate(run.sensors):
        sensor = outer.sensor if isinstance(outer, Delayed) else outer
        if isinstance(sensor, JointCoordinate | JointRate):
            joint, part = sensor.coordinate(formulation)
            if num_coordinates(joint) == joint.num_rates:
                out.append((sensor, k, joint, part))
    return out


def _first_state(formulation: Any, run: Measurements, fitted: set[type]) -> State:
    """What is fitted, from the first samples; the rest as in the reference configuration."""
    found: dict[type, dict[str, np.ndarray]] = {JointCoordinate: {}, JointRate: {}}
    for sensor, k, joint, part in _of_joints(formulation, run):
        # Of a loop one joint determines the others, and noise would contradict it.
        others = {name for values in found.values() for name in values} - {joint.name}
        if type(sensor) not in fitted or (formulation.system.closes and others):
            continue
        values = found[type(sensor)].setdefault(joint.name, np.zeros(joint.num_rates))
        first = np.flatnonzero(run.mask[k][:, 0])[0]
        values[part] = sensor.ideal_value(run.values[k][first])
    if not any(found.values()):
        return formulation.system.reference_state()
    return jointed_state(formulation.system, found[JointCoordinate], found[JointRate])


def _is_calibrated(sensor: Any, parameters: Sequence[Parameter], experiment: Experiment) -> bool:
    """Whether the bias or the scale of a sensor is fitted, so that its first sample tells less."""
    for where in (where for p in parameters for where in (p.where, *p.tied)):
        try:
            leaf = where(experiment)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            continue  # Not of a sensor; reported by name where parameters are checked.
        if leaf is sensor.bias or leaf is sensor.scale:
            return True
    return False


def _check_first(
    formulation: Any,
    run: Measurements,
    state: State,
    fitted: set[type],
    parameters: Sequence[Parameter],
) -> None:
    """Raise `ValueError` if a sensor of a joint first reads something else than the start."""
    experiment = Experiment(formulation, state, run.sensors)
    sensors = [
        found
        for found in _of_joints(formulation, run)
        if type(found[0]) not in fitted and not _is_calibrated(found[0], parameters, experiment)
    ]
    if not sensors:
        return
    model = NullSpace(formulation.system)
    y, t = model.encode(state), run.ts[0]

    @eqx.filter_jit
    def read(model, y, t):
        return [sensor.predict(model, t, y) for sensor, *_ in sensors]

    for (sensor, k, joint, _), start in zip(sensors, read(model, y, t), strict=True):
        rows = np.flatnonzero(run.mask[k][:, 0])
        if rows[0] >= _FIRST:
            continue  # It begins later and tells nothing of the start.
        values = np.asarray(run.values[k])[rows]
        noise = np.asarray(run.noise[k])[0, 0] if run.noise[k] is not None else _noise(values)
        off = values[:_FIRST] - float(start)
        if isinstance(sensor, JointCoordinate) and sensor.unit_in(model) == "rad":
            off -= 2 * np.pi * np.round(off / (2 * np.pi))
        off = np.abs(off)
        if np.all(off > _FAR * noise + _PART * np.ptp(values)):
            key = "joints" if isinstance(sensor, JointCoordinate) else "joint_rates"
            first = float(sensor.ideal_value(values[0]))
            of_run = f" in the run {run.name!r}" if run.name else ""
            raise ValueError(
                f"the start is not fitted; the {sensor.name}{of_run} first reads "
                f"{values[0]:.4g} where the start has {float(start):.4g}. Give it, as "
                f"`[state] {key} = {{ {joint.name} = {first:.4g} }}`, or fit it, with a "
                '[[parameter]] whose `path` is "start_state".'
            )


def _noise(values: np.ndarray) -> float:
    """Standard deviation of noise that is not known, from what is left of a smooth motion."""
    return float(np.std(np.diff(values, n=2)) / np.sqrt(6)) if len(values) > _FIRST else np.inf


def check_seen(
    top: Table, formulation: AbstractFormulation, sensors: Any, parameters: Sequence[Parameter]
) -> None:
    """Raise `ValueError` for a fitted start of a free body whose place acts on nothing."""
    system = formulation.system
    starts = [p for p in parameters if isinstance(p.where, StartSelector) and p.prior is None]
    if not (starts and isinstance(system, System)) or system.closes:
        return
    free = [
        body.name
        for body, joint in zip(system.bodies, system.topology.joints, strict=True)
        if joint is None
    ]
    inner = [s.sensor if isinstance(s, Delayed) else s for s in sensors]
    blind = all(type(s) in _PLACELESS_SENSORS for s in inner)
    if free and blind and all(type(force) in _PLACELESS_FORCES for force in system.forces):
        top.fail(
            f"the start of {free[0]!r} cannot be fitted as a whole: nothing that is measured "
            "depends on the place and the velocity of this free body. Add a sensor of type "
            "Position; or, in place of start_state, fit `state0.angular_velocity` and "
            '`state0.orientation` (with `transform = "orientation"`).'
        )
