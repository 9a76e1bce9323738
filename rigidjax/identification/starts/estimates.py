"""Start states of runs, estimated from their first samples."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...bodies import FixedPointBody
from ...formulations import AbstractFormulation
from ...initial import jointed_state
from ...joints.base import AbstractJoint
from ...mechanics import System, has_joints
from ...mechanics.declared.topology import GROUND
from ...sensors import Attitude, Delayed, Gyroscope, JointCoordinate, JointRate, Position
from ...sensors.base import locate_mount
from ...sensors.joint import num_coordinates
from ...state import State
from ..data.measurements import Measurements

# Samples in the shortest initial piece that a parabola is fitted to; the next ones double.
_FEWEST = 6
# Residual of a parabola, in standard deviations of the noise, that is not noise any more.
_MISFIT = 1.5


def estimate_starts(
    model: AbstractFormulation, measurements: Measurements | Sequence[Measurements]
) -> list[State]:
    """Return a start state of every run, from its first samples.

    Positions and rates are those of a parabola through the longest beginning of the samples that it
    describes to within their noise. It uses `JointCoordinate` and `JointRate` (rates are slopes
    of coordinates otherwise; in a system with loops those of one joint), and on bodies without a
    joint `Attitude`, `Gyroscope` and `Position`, from which the bodies attached to them follow.
    Everything else stays in the reference configuration, at rest. The result is a first guess, to
    be fitted:

    ```python
    pieces = rj.identification.cut_run(run, length=0.5)
    starts = rj.identification.estimate_starts(model, pieces)
    fit = rj.identify(model, pieces, [..., rj.identification.start_state(model)], state0=starts)
    ```

    **Arguments:** `model`, a formulation; `measurements`, a run or several.
    **Errors:** those of the sensors for a model that they do not fit.
    """
    runs = [measurements] if isinstance(measurements, Measurements) else list(measurements)
    for sensor in runs[0].sensors:
        sensor.check(model)
    return [estimate_start(model, run) for run in runs]


def estimate_start(
    model: AbstractFormulation, run: Measurements, positions: bool = True, rates: bool = True
) -> State:
    """Return the start state of one run; `positions`, `rates`: whether these are estimated."""
    system = model.multibody
    if not has_joints(system):
        state = system.reference_state()
    else:
        coordinates, speeds = joint_values_at_start(model, run, positions, rates)
        if not coordinates and not speeds:
            state = system.reference_state()
        else:
            state = jointed_state(system, coordinates, speeds)
    return _place_free_bodies(model, system, run, state, positions, rates)


def joint_sensors(
    model: AbstractFormulation, run: Measurements
) -> list[tuple[Any, int, AbstractJoint, int]]:
    """Return the sensors that measure one coordinate of a joint, or its rate.

    Every entry has the sensor, its index, the joint, and the index of the coordinate.
    """
    entries = []
    for k, outer in enumerate(run.sensors):
        sensor = outer.sensor if isinstance(outer, Delayed) else outer
        if isinstance(sensor, JointCoordinate | JointRate):
            joint, part = sensor.coordinate(model)
            if num_coordinates(joint) == joint.num_rates:
                entries.append((sensor, k, joint, part))
    return entries


def joint_values_at_start(
    model: AbstractFormulation, run: Measurements, positions: bool, rates: bool
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return coordinates and rates of the measured joints at the start of a run, by joint."""
    coordinates: dict[str, np.ndarray] = {}
    speeds: dict[str, np.ndarray] = {}
    # Measured rates come last, and replace slopes of coordinates.
    entries = sorted(joint_sensors(model, run), key=lambda e: isinstance(e[0], JointRate))
    for sensor, k, joint, part in entries:
        # One joint of a loop determines the others; noisy readings of these would contradict it.
        if model.multibody.has_loops and {*coordinates, *speeds} - {joint.name}:
            continue
        samples = sensor.ideal_value(np.asarray(run.values[k]))[:, None]
        value, slope = _fit_beginning(run, k, samples, float(abs(1 / np.asarray(sensor.scale))))
        if isinstance(sensor, JointCoordinate):
            if positions:
                coordinates.setdefault(joint.name, np.zeros(joint.num_rates))[part] = value[0]
            value = slope
        if rates:
            speeds.setdefault(joint.name, np.zeros(joint.num_rates))[part] = value[0]
    return coordinates, speeds


def _fit_beginning(
    run: Measurements, k: int, samples: np.ndarray, scale: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return values and slopes at the start of a run, (C,), of samples (T, C) of sensor `k`.

    **Arguments:** `scale`, the factor from the noise of the sensor to that of the samples.
    """
    _, clock = run.sensors[k].on_time()
    ts = np.asarray(run.ts if clock is None else clock(run.ts)) - float(run.ts[0])
    rows = np.flatnonzero(np.asarray(run.mask[k]).all(axis=1))
    ts, samples = ts[rows], samples[rows]
    if len(rows) < 3:
        return samples[0], np.zeros(samples.shape[1])
    if run.noise[k] is not None:
        noise = scale * float(np.max(np.asarray(run.noise[k])[rows]))
    elif len(rows) > _FEWEST:
        # Third differences remove a smooth motion; their variance is that of 20 samples.
        noise = float(np.sqrt(np.mean(np.diff(samples, n=3, axis=0) ** 2) / 20))
    else:
        noise = 0.0
    best, length = None, min(_FEWEST, len(rows))
    while True:
        t, x = ts[:length], samples[:length]
        basis = np.vander(t, 3, increasing=True)[:, : min(3, length)]
        found = np.linalg.lstsq(basis / np.abs(basis).max(axis=0), x, rcond=None)[0]
        found = found / np.abs(basis).max(axis=0)[:, None]
        freedom = max(length - basis.shape[1], 1)
        misfit = np.sqrt(np.max(np.sum((basis @ found - x) ** 2, axis=0)) / freedom)
        if best is not None and misfit > _MISFIT * noise:
            return best
        best = found[0], found[1]
        if length == len(rows):
            return best
        length = min(2 * length, len(rows))


def _place_free_bodies(
    model: AbstractFormulation,
    system: System,
    run: Measurements,
    state: State,
    positions: bool,
    rates: bool,
) -> State:
    """Return the state with the measured bodies without a joint, and all that is attached."""
    poses = [np.array(x, float) for x in (state.position, state.orientation)]
    twists = [np.array(x, float) for x in (state.velocity, state.angular_velocity)]
    measured = _free_body_values(model, system, run)
    if not measured:
        return state
    from scipy.spatial.transform import Rotation

    roots = system.topology.roots
    for root, values in measured.items():
        members = np.flatnonzero(roots == root)
        x, R = poses[0], Rotation.from_quat(poses[1], scalar_first=True)
        x0, R0 = x[root].copy(), R[root]
        R1 = values.get("orientation", R0) if positions else R0
        omega = values.get("omega", np.zeros(3)) if rates else np.zeros(3)
        spin = R1.apply(omega)
        point, place, velocity = values.get("point", (np.zeros(3), x0, np.zeros(3)))
        arm = R1.apply(point)
        x1 = place - arm if positions else x0
        v1 = velocity - np.cross(spin, arm) if rates else np.zeros(3)
        turn = R1 * R0.inv()
        arms = turn.apply(x[members] - x0)
        new = turn * Rotation.from_quat(poses[1][members], scalar_first=True)
        twists[0][members] = v1 + np.cross(spin, arms) + turn.apply(twists[0][members])
        twists[1][members] += new.inv().apply(spin)
        poses[0][members] = x1 + arms
        poses[1][members] = new.as_quat(scalar_first=True)
    return State(*poses, *twists, angles=state.angles)


def _free_body_values(
    model: AbstractFormulation, system: System, run: Measurements
) -> dict[int, dict[str, Any]]:
    """Return the measured motion of the bodies without a joint at the start of a run, by body."""
    from scipy.spatial.transform import Rotation

    measured: dict[int, dict[str, Any]] = {}
    for k, outer in enumerate(run.sensors):
        sensor = outer.sensor if isinstance(outer, Delayed) else outer
        if not isinstance(sensor, Attitude | Gyroscope | Position):
            continue
        row, frame = locate_mount(model, sensor.body, type(sensor).__name__)
        topology = system.topology
        is_free = topology.parents[row] == GROUND and topology.joints[row] is None
        if not (is_free or isinstance(model.system, FixedPointBody)):
            continue
        axes = (
            Rotation.identity() if frame is None else Rotation.from_matrix(np.array(frame.rotation))
        )
        origin = np.zeros(3) if frame is None else np.asarray(frame.point)
        values, samples = measured.setdefault(row, {}), np.array(run.values[k])
        if isinstance(sensor, Attitude):
            bias = axes * Rotation.from_rotvec(np.array(sensor.bias))
            first = Rotation.from_quat(samples[0], scalar_first=True)
            turns = first.inv() * Rotation.from_quat(samples, scalar_first=True)
            vector, slope = _fit_beginning(run, k, turns.as_rotvec())
            values["orientation"] = first * Rotation.from_rotvec(vector) * bias.inv()
            values.setdefault("omega", bias.apply(slope))
            continue
        misalignment = Rotation.from_rotvec(np.array(sensor.misalignment))
        ideal = misalignment.apply((samples - np.array(sensor.bias)) / np.array(sensor.scale))
        value, slope = _fit_beginning(run, k, ideal)
        if isinstance(sensor, Gyroscope):
            values["omega"] = axes.apply(value)
        else:
            values["point"] = origin + axes.apply(np.array(sensor.point)), value, slope
    return measured
