"""Revolutions of measured angles, from the samples and from the start of the run."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from ...formulations import AbstractFormulation
from ...persistent_jit import persistent_jit
from ...sensors import JointCoordinate
from ...state import State
from .measurements import Runs

# First samples below this angle, rad, are in the same revolution as any start below pi.
_SURE = 0.8 * math.pi


def detect_angle_ranges(
    model: AbstractFormulation, all_runs: Sequence[Runs]
) -> tuple[list[Runs], list[str]]:
    """Return the runs with sensors that know their range of angles, and notes on the ranges.

    All runs have the same sensors.
    """
    sensors, notes = [], []
    for k, sensor in enumerate(all_runs[0].sensors):
        new, sensor_notes = sensor.in_range(
            model, [x for runs in all_runs for x in _valid_samples(runs, k)]
        )
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


def _valid_samples(runs: Runs, k: int) -> list[np.ndarray]:
    """Return the samples of sensor number `k` in every run, NaN where they do not count."""
    samples, counts = np.array(runs.values[k], float), np.asarray(runs.weights[k]) > 0
    samples[~counts.any(axis=2)] = np.nan
    return [values[:length] for values, length in zip(samples, runs.lengths, strict=True)]


@persistent_jit
def _predict_at_start(model: Any, sensor: Any, state: State, t: Any) -> Any:
    return sensor.predict(model, jnp.asarray(t), model.start(state.normalized(), t))
