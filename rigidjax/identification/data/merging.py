"""Merging of time series with different sampling times."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...checks import check_increasing

# Times closer than this fraction of the whole span are equal up to round-off.
_SAME = 1e-9


def merge(
    series: Mapping[Any, tuple[Any, Any]],
    noise: Mapping[Any, Any] | None,
    mask: Mapping[Any, Any] | None,
) -> dict[str, Any]:
    """Merge series of sensors on the union of their times, with gaps between their samples.

    **Arguments, errors:** as `Measurements.merged`.
    **Returns:** `ts`, `values`, `noise` and `mask` of `Measurements`.
    """
    if not isinstance(series, Mapping) or not series:
        raise ValueError(
            "`Measurements.merged(series)` takes a dictionary such as {rj.Gyroscope(): (ts, "
            f"samples)}}; got {series!r}."
        )
    no_noise = not noise
    noise, mask = dict(noise or {}), dict(mask or {})
    checked = {sensor: _check_series(sensor, pair) for sensor, pair in series.items()}
    ts = np.unique(np.concatenate([times for times, _ in checked.values()]))
    same = np.diff(ts, prepend=-np.inf) <= _SAME * (ts[-1] - ts[0])
    ts = ts[~same]
    samples, stds, masks = {}, {}, {}
    for sensor, (times, values) in checked.items():
        rows = np.searchsorted(ts, times, side="right") - 1
        samples[sensor] = _scatter_rows(values, rows, len(ts), np.nan)
        is_valid = np.asarray(mask.pop(sensor, np.ones(len(times), bool)))
        masks[sensor] = _scatter_rows(is_valid, rows, len(ts), False)
        deviation = noise.pop(sensor, None)
        if deviation is not None:
            deviation = np.asarray(deviation, float)
            stds[sensor] = (
                _scatter_rows(deviation, rows, len(ts), 1.0) if deviation.ndim == 2 else deviation
            )
    for argument, unused in (("noise", noise), ("mask", mask)):
        if unused:
            names = [getattr(sensor, "name", sensor) for sensor in unused]
            raise ValueError(
                f"`Measurements.merged({argument}=...)` names {names}, which have no values."
            )
    return {"ts": ts, "values": samples, "noise": None if no_noise else stds, "mask": masks}


def _check_series(sensor: Any, pair: Any) -> tuple[np.ndarray, np.ndarray]:
    name = getattr(sensor, "name", sensor)
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise ValueError(
            f"`Measurements.merged(series)` takes a pair (ts, values) for the sensor {name!r}; got "
            f"{type(pair).__name__}."
        )
    times, values = np.asarray(pair[0], float), np.asarray(pair[1], float)
    if times.ndim != 1 or len(times) == 0 or len(values) != len(times):
        raise ValueError(
            f"The sensor {name!r} needs as many times, shape (T,), as values; got {times.shape} "
            f"and {values.shape}."
        )
    if not np.isfinite(times).all():
        raise ValueError(f"The times of the sensor {name!r} must be finite numbers, s.")
    check_increasing(f"The times of the sensor {name!r}", times)
    return times, values


def _scatter_rows(values: np.ndarray, rows: np.ndarray, length: int, fill: Any) -> np.ndarray:
    if len(values) != len(rows):
        raise ValueError(
            f"Noise and mask of a series with {len(rows)} samples must have as many rows; got "
            f"{len(values)}."
        )
    scattered = np.full((length, *values.shape[1:]), fill, values.dtype)
    scattered[rows] = values
    return scattered
