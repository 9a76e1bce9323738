"""Start states of runs from their first samples, and the revolutions of measured angles."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...formulations import AbstractFormulation
from ...initial import JointStart
from ...mechanics.kinematics.poses import joint_frames_at, poses_of_state, with_joint_angles
from ...mechanics.stacked.system import PreparedSystem
from ...persistent_jit import persistent_jit
from ...sensors import AbstractSensor, JointCoordinate, improve_states
from ...state import State
from ..data.measurements import Runs
from ..experiment.start_change import place_prescribed_joints

# Number of samples of the line fit that estimates the rate of a reading.
_WINDOW = 10
# Extrapolation of the line that is trusted, as a fraction of the time its samples cover.
_TRUSTED = 0.5
# First samples below this angle, rad, are in the same revolution as any start below pi.
_SURE = 0.8 * math.pi


class FirstSample(NamedTuple):
    """The sample of a sensor in one run that is closest in time to the start of the run.

    **Attributes:** `value`, shape value_shape, every channel from its own first sample; `gap`, s,
    the longest time between the start and the sample of a channel; `late`, whether the reading may
    have changed by more than its noise within that time.
    """

    value: np.ndarray
    gap: float
    late: bool


def first_samples(runs: Runs, k: int) -> list[FirstSample]:
    """Return the first valid sample of sensor number `k`, in every run.

    The time of a sample is that of the measured motion, which precedes its time stamp by the delay
    of the sensor.
    """
    sensor = runs.sensors[k]
    _, clock = sensor.on_time()
    samples = []
    for b, length in enumerate(runs.lengths):
        ts = np.asarray(runs.ts[b][:length], float)
        values, weights = (np.asarray(x[k][b][:length]) for x in (runs.values, runs.weights))
        times = (ts if clock is None else np.asarray(clock(ts))) - ts[0]
        samples.append(_first_sample(sensor, times, values, weights, runs.has_noise[k]))
    return samples


def first_valid_values(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the first valid samples (R, *value_shape), separately for each channel.

    A channel without a valid sample has its first value. **Arguments:** `values` (R, T,
    *value_shape); `weights` (R, T, C), zero for invalid samples.
    """
    shape = values.shape
    flat = values.reshape(*shape[:2], -1)
    counts = _valid_elements(weights, flat.shape[2])
    index = counts.argmax(axis=1)[:, None]
    return np.take_along_axis(flat, index, axis=1)[:, 0].reshape(shape[0], *shape[2:])


def _valid_elements(weights: np.ndarray, size: int) -> np.ndarray:
    """Return which elements are valid, (..., size): for an orientation all of a sample, or none."""
    counts = weights > 0
    if counts.shape[-1] == size:
        return counts
    return np.broadcast_to(counts.any(axis=-1, keepdims=True), (*counts.shape[:-1], size))


def _first_sample(
    sensor: AbstractSensor,
    times: np.ndarray,
    values: np.ndarray,
    weights: np.ndarray,
    noise_is_known: bool,
) -> FirstSample:
    flat = values.reshape(len(values), -1)
    counts = _valid_elements(weights, flat.shape[1])
    away = np.where(counts, np.abs(times)[:, None], np.inf)
    closest = away.argmin(axis=0)
    value = flat[closest, np.arange(flat.shape[1])].reshape(values.shape[1:])
    late, gaps = False, []
    for channel, used in enumerate((weights > 0).T):
        rows = np.flatnonzero(used)
        # Sorted by distance from the start.
        rows = rows[np.argsort(np.abs(times[rows]), kind="stable")][:_WINDOW]
        gap = abs(float(times[rows[0]]))
        gaps.append(gap)
        if gap == 0:
            continue
        known = 1 / weights[rows[0], channel] if noise_is_known else None
        late |= not _is_nearly_constant(sensor, channel, gap, times[rows], values[rows], known)
    return FirstSample(value, max(gaps), late)


def _is_nearly_constant(
    sensor: AbstractSensor,
    channel: int,
    gap: float,
    times: np.ndarray,
    values: Any,
    noise: float | None,
) -> bool:
    """Return whether a reading changes by less than its noise between a sample and the start.

    **Arguments:** `times` and `values` of the samples closest to the start, the closest one first.
    """
    if gap > _TRUSTED * np.ptp(times):
        return False
    residuals = jax.vmap(sensor.residual, in_axes=(0, None))(values, values[0])
    changes = np.asarray(residuals)[:, channel]
    slope, _ = np.polyfit(times - times[0], changes, 1)
    if noise is None:
        line = np.polyval(np.polyfit(times, changes, 1), times)
        noise = float(np.sqrt(np.sum((changes - line) ** 2) / max(len(times) - 2, 1)))
    return abs(slope) * gap <= noise


def start_states(model: Any, runs: Runs, state0: Any) -> list[State]:
    """Return the start state of every run, from its first readings if none is given."""
    count = len(runs.names)
    if state0 is None:
        state = _reference_state(model, runs.ts[0, 0])
        # All runs at once: outside `jit`, every operation would be compiled separately.
        repeated = jax.tree.map(lambda x: np.broadcast_to(x, (count, *np.shape(x))), state)
        samples = [
            np.stack([sample.value for sample in first_samples(runs, k)])
            for k in range(len(runs.sensors))
        ]
        improved = improve_states(model, runs.sensors, repeated, samples)
        improved = jax.tree.map(np.asarray, improved)
        states = [jax.tree.map(lambda x, b=b: jnp.asarray(x[b]), improved) for b in range(count)]
    elif isinstance(state0, State):
        states = [state0] * count
    else:
        states = list(state0)
        if len(states) != count:
            raise ValueError(
                f"`identify(state0=...)` takes one state, or one for each of the {count} runs; got "
                f"{len(states)}."
            )
    dtype, first = jnp.result_type(runs.ts), np.asarray(runs.ts)[:, 0]
    try:
        states = [model.check_state(s, t) for s, t in zip(states, first, strict=True)]
    except ValueError as error:
        if state0 is not None:
            raise
        raise ValueError(
            "The first samples of the sensors give a start that the joints do not allow, for which "
            "their noise suffices. Give `state0`, such as `rj.jointed_state(system, {...})`, and "
            f'fit its unknown parts, such as `rj.Parameter("start.hinge")`. {error}'
        ) from error
    states = [_add_all_angles(model, state) for state in states]
    return [jax.tree.map(lambda x: x.astype(dtype), state) for state in states]


def _add_all_angles(model: AbstractFormulation, state: State) -> State:
    """Return the state with the unwrapped angles of all joints, so that states can be stacked."""
    system = model.multibody
    if state.angle_names == system.angle_names:
        return state
    prepared = PreparedSystem(system)
    return with_joint_angles(
        prepared, state, joint_frames_at(prepared, poses_of_state(prepared, state.normalized()))
    )


def _reference_state(model: AbstractFormulation, t: Any) -> State:
    """Return the reference state, with prescribed joints at their motion at time `t`, s."""
    system, state = model.multibody, model.multibody.reference_state()
    if isinstance(model, JointStart) or not any(joint.is_driven for joint in system.joints):
        return state
    return place_prescribed_joints(model, state, t)


def detect_angle_ranges(
    model: AbstractFormulation, all_runs: Sequence[Runs]
) -> tuple[list[Runs], list[str]]:
    """Return the runs with sensors that know their range of angles, and notes on the ranges.

    All runs have the same sensors.
    """
    sensors, notes = [], []
    for k, sensor in enumerate(all_runs[0].sensors):
        samples = []
        for runs in all_runs:
            values, counts = np.array(runs.values[k], float), np.asarray(runs.weights[k]) > 0
            values[~counts.any(axis=2)] = np.nan
            samples += [x[:length] for x, length in zip(values, runs.lengths, strict=True)]
        new, sensor_notes = sensor.in_range(model, samples)
        sensors.append(new)
        notes += sensor_notes
    return [dataclasses.replace(runs, sensors=tuple(sensors)) for runs in all_runs], notes


def align_revolutions(
    model: AbstractFormulation, runs: Runs, states: Sequence[State]
) -> tuple[Runs, list[str]]:
    """Return the runs with revolutions of joints counted from the start states, and notes.

    An encoder may have turned before the run. The whole revolutions by which its first sample
    differs from the start are subtracted from all samples of the run.
    """
    values, notes = list(runs.values), []
    for k, sensor in enumerate(runs.sensors):
        encoder, _ = sensor.on_time()
        if not isinstance(encoder, JointCoordinate):
            continue
        if encoder.period is not None and math.isfinite(encoder.period):
            continue  # Compared modulo a revolution.
        first_samples, weights = (np.asarray(x)[:, 0] for x in (values[k], runs.weights[k]))
        for b, name in enumerate(runs.names):
            first = float(first_samples[b])
            if not (weights[b] > 0).any() or abs(float(encoder.ideal_value(first))) < _SURE:
                continue
            if not encoder.tracked_joints(model):
                break
            predicted = float(_predict_at_start(model, sensor, states[b], runs.ts[b, 0]))
            revolution = 2 * math.pi * float(encoder.scale)
            num_revolutions = round((first - predicted) / revolution)
            if num_revolutions:
                values[k] = values[k].at[b].add(-num_revolutions * revolution)
                notes.append(
                    f"The {sensor.name} starts {num_revolutions:+d} revolutions from the start "
                    f"state in the run {name!r}; they are subtracted from its samples."
                )
    return dataclasses.replace(runs, values=tuple(values)), notes


@persistent_jit
def _predict_at_start(model: Any, sensor: Any, state: State, t: Any) -> Any:
    return sensor.predict(model, jnp.asarray(t), model.start(state.normalized(), t))
