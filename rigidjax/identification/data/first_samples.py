"""First samples of runs as start values, and whether they are early enough."""

from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array

from ...sensors import AbstractSensor
from .measurements import Runs

# Number of samples of the line fit that estimates the rate of a reading.
_WINDOW = 10
# Extrapolation of the line that is trusted, as a fraction of the time its samples cover.
_TRUSTED = 0.5


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
    _, delay = sensor.on_time()
    delay = 0.0 if delay is None else float(delay)
    samples = []
    for b, length in enumerate(runs.lengths):
        ts = np.asarray(runs.ts[b][:length], float)
        values, weights = (np.asarray(x[k][b][:length]) for x in (runs.values, runs.weights))
        times = ts - delay - ts[0]
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
    values: np.ndarray,
    noise: float | None,
) -> bool:
    """Return whether a reading changes by less than its noise between a sample and the start.

    **Arguments:** `times` and `values` of the samples closest to the start, the closest one first.
    """
    if gap > _TRUSTED * np.ptp(times):
        return False
    changes = np.asarray(_residuals(sensor, values, values[0]))[:, channel]
    slope, _ = np.polyfit(times - times[0], changes, 1)
    if noise is None:
        line = np.polyval(np.polyfit(times, changes, 1), times)
        noise = float(np.sqrt(np.sum((changes - line) ** 2) / max(len(times) - 2, 1)))
    return abs(slope) * gap <= noise


def _residuals(sensor: AbstractSensor, values: Any, first: Any) -> Array:
    return jax.vmap(sensor.residual, in_axes=(0, None))(values, first)
