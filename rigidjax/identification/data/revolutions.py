"""How measured angles count revolutions: seen from the samples, and from where the run starts."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ...formulations import AbstractFormulation
from ...sensors import JointCoordinate
from ...state import State
from .measurements import Runs

# First samples below this angle, rad, are in the same revolution as any start below half a turn.
_SURE = 0.8 * math.pi


def detect_angle_ranges(
    model: AbstractFormulation, all_runs: Sequence[Runs]
) -> tuple[list[Runs], list[str]]:
    """Return the runs with sensors that know how they count revolutions, and notes on that.

    Sensors are the same in all runs.
    """
    sensors, notes = [], []
    for k, sensor in enumerate(all_runs[0].sensors):
        new, told = sensor.in_range(
            model, [x for runs in all_runs for x in _valid_samples(runs, k)]
        )
        sensors.append(new)
        notes += told
    return [dataclasses.replace(runs, sensors=tuple(sensors)) for runs in all_runs], notes


def align_revolutions(
    model: AbstractFormulation, runs: Runs, states: Sequence[State]
) -> tuple[Runs, list[str]]:
    """Return the runs with revolutions of joints counted from the start states, and notes on that.

    An encoder may have turned before the run. Whole turns by which its first sample differs from
    the start are taken off all samples of the run.
    """
    values, notes = list(runs.values), []
    for k, sensor in enumerate(runs.sensors):
        encoder, _ = sensor.on_time()
        if not (isinstance(encoder, JointCoordinate) and encoder.tracked_joints(model)):
            continue
        if encoder.period is not None and math.isfinite(encoder.period):
            continue  # Compared modulo a turn.
        for b, name in enumerate(runs.names):
            first = float(values[k][b, 0])
            if not (np.asarray(runs.weights[k][b, 0]) > 0).any():
                continue
            if abs(float(encoder.ideal_value(first))) < _SURE:
                continue
            predicted = float(_predict_at_start(model, sensor, states[b], runs.ts[b, 0]))
            turn = 2 * math.pi * float(encoder.scale)
            turns = round((first - predicted) / turn)
            if turns:
                values[k] = values[k].at[b].add(-turns * turn)
                notes.append(
                    f"The {sensor.name} starts {turns:+d} revolutions from the start state in the "
                    f"run {name!r}; they are taken off its samples."
                )
    return dataclasses.replace(runs, values=tuple(values)), notes


def _valid_samples(runs: Runs, k: int) -> list[np.ndarray]:
    """Return the samples of the sensor number `k` in every run, NaN where they do not count."""
    out = []
    for b, length in enumerate(runs.lengths):
        values = np.array(runs.values[k][b][:length], float)
        values[~(np.asarray(runs.weights[k][b][:length]) > 0).any(axis=1)] = np.nan
        out.append(values)
    return out


@eqx.filter_jit
def _predict_at_start(model: Any, sensor: Any, state: State, t: Any) -> Any:
    return sensor.predict(model, jnp.asarray(t), model.start(state.normalized(), t))
