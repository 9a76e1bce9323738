"""Recorded runs cut into pieces, filtered, resampled, shifted and merged."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import ArrayLike

from ...checks import check_sample_times, find_duplicates
from ...sensors import JointCoordinate
from .filtering import lowpass, lowpass_orientation, resample, resample_orientation
from .measurements import Measurements

# Part of the length of a piece that the last one must have by default.
_LEAST = 0.5


def cut_run(
    run: Measurements,
    *,
    length: float | None = None,
    gap: float | None = None,
    where: ArrayLike | None = None,
    shortest: float | None = None,
) -> list[Measurements]:
    """Cut a run into pieces: at gaps, where a flag is set, and into equal lengths, in this order.

    A piece is a run that starts at its first sample and keeps the clock and the inputs of the
    whole. Its start is a new unknown: fit `start_state(per_run=True)` from `estimate_starts`.

    **Arguments:**

    - `run`: the run to cut.
    - `length`, s, of the pieces.
    - `gap`, s: a longer time between samples ends a piece.
    - `where` (T,), whether each sample belongs to a piece, such as the flights of a thrown body;
      a piece is an unbroken sequence of such samples.
    - `shortest`, s: shorter pieces are left out; by default half of `length`, otherwise 0. Pieces
      of one sample are left out in any case.

    **Returns:** the pieces in order, named `"run/1"`, `"run/2"`, ...
    **Errors:** `ValueError` without any of the first three, for values out of range, if nothing
    is left, and for a piece without a sample of one of the sensors.
    """
    ts = np.asarray(run.ts)
    for name, value in (("length", length), ("gap", gap)):
        if value is not None and not 0 < value < np.inf:
            raise ValueError(f"`cut_run({name}=...)` must be positive, s; got {value}.")
    if length is None and gap is None and where is None:
        raise ValueError("`cut_run` needs `length`, `gap` or `where`; got none of them.")
    is_used = np.ones(len(ts), bool) if where is None else np.asarray(where)
    if is_used.shape != ts.shape or is_used.dtype != bool:
        raise ValueError(
            f"`cut_run(where=...)` must be True or False, shape {ts.shape}; got "
            f"{is_used.dtype} of shape {is_used.shape}. Compare with a threshold first."
        )
    least = (0.0 if length is None else _LEAST * length) if shortest is None else shortest
    rows = np.flatnonzero(is_used)
    ends = np.flatnonzero((np.diff(rows) > 1) | (np.diff(ts[rows]) > (gap or np.inf))) + 1
    pieces = []
    for block in np.split(rows, ends):
        if length is not None and len(block):
            # A sample on the border, to within round-off, begins a piece.
            count = np.floor((ts[block] - ts[block[0]]) / length + 1e-9)
            pieces += np.split(block, np.flatnonzero(np.diff(count)) + 1)
        else:
            pieces.append(block)
    pieces = [p for p in pieces if len(p) > 1 and ts[p[-1]] - ts[p[0]] >= least - 1e-9 * least]
    if not pieces:
        raise ValueError(
            f"`cut_run`: no piece of the run {run.name!r}, {ts[-1] - ts[0]:.4g} s long, is at "
            f"least {least:.4g} s long. Lower `shortest`, or check `where` and `gap`."
        )
    return [_piece(run, rows, f"{run.name or 'run'}/{k}") for k, rows in enumerate(pieces, 1)]


def _piece(run: Measurements, rows: np.ndarray, name: str) -> Measurements:
    for sensor, mask in zip(run.sensors, run.mask, strict=True):
        if not np.asarray(mask)[rows].any(axis=0).all():
            begin, end = np.asarray(run.ts)[rows[[0, -1]]]
            raise ValueError(
                f"`cut_run`: the piece from {begin:.6g} to {end:.6g} s has no sample of the "
                f"{sensor.name}. Cut longer pieces, or leave it out by `where` or `shortest`."
            )
    return _rebuild(
        run,
        np.asarray(run.ts)[rows],
        [np.asarray(x)[rows] for x in run.values],
        [None if x is None else np.asarray(x)[rows] for x in run.noise],
        [np.asarray(x)[rows] for x in run.mask],
        name,
    )


def filter_run(run: Measurements, cutoff: float, *, order: int = 4) -> Measurements:
    """Filter the samples of all sensors of a run by `lowpass`, without delay.

    Orientations stay rotations: their quaternions are filtered and normalised, and a steady
    rotation passes unchanged. Noise stays as it was given, although filtered noise is smaller:
    successive samples now share it, and a fit with the given noise has about the same uncertainty
    as one of the raw samples. If noise is estimated, residuals are correlated.

    **Arguments:** as in `lowpass`; the samples of each sensor must be uniform in time.
    **Errors:** those of `lowpass`, with the sensor; `ValueError` for angles that wrap, and for
    channels of a sensor with gaps of their own.
    """

    values = []
    for k, sensor in enumerate(run.sensors):
        rows = _sampled_rows("filter_run", run, k)
        new = np.array(run.values[k], float)
        method = lowpass_orientation if sensor.value_shape == (4,) else lowpass
        ts = np.asarray(run.ts)[rows]
        new[rows] = _call_for(sensor, method, ts, new[rows], cutoff, order=order)
        values.append(new)
    return _rebuild(run, np.asarray(run.ts), values, run.noise, run.mask, run.name)


def resample_run(run: Measurements, ts: ArrayLike) -> Measurements:
    """Interpolate the samples of all sensors of a run at other times, by cubic splines.

    Orientations rotate at a constant rate between samples. For a lower rate call `filter_run`
    before, with a cutoff below half of it. Times beyond the first or last sample of a sensor, or
    within a gap longer than twice its usual time between samples, have no sample.

    **Arguments:** `run`, to interpolate; `ts`, (S,), strictly increasing, s, within the run.
    **Errors:** those of `resample`, with the sensor; `ValueError` for angles that wrap, for noise
    that differs from sample to sample, and for channels of a sensor with gaps of their own.
    """
    new_ts = check_sample_times(ts, "resample_run(ts=...)")
    begin, end = float(run.ts[0]), float(run.ts[-1])
    if new_ts[0] < begin or new_ts[-1] > end:
        raise ValueError(
            f"`resample_run(ts=...)` must be within the run, {begin:.6g} to {end:.6g} s; got "
            f"{new_ts[0]:.6g} to {new_ts[-1]:.6g} s."
        )
    values, masks, noises = [], [], []
    for k, sensor in enumerate(run.sensors):
        rows = _sampled_rows("resample_run", run, k)
        times, samples = np.asarray(run.ts)[rows], np.asarray(run.values[k])[rows]
        is_valid = _has_samples_around(times, new_ts)
        at = np.clip(new_ts, times[0], times[-1])
        method: Any = resample_orientation if sensor.value_shape == (4,) else resample
        values.append(_call_for(sensor, method, times, samples, at))
        masks.append(np.broadcast_to(is_valid[:, None], (len(new_ts), len(sensor.channels))))
        noises.append(_constant_noise(run, k, rows, len(new_ts)))
    return _rebuild(run, new_ts, values, noises, masks, run.name)


def shift_run(run: Measurements, shift: float) -> Measurements:
    """Return a run with its times, and those of its inputs, later by `shift`, s.

    It corrects the clock of a recording by a known offset, such as one from `find_time_shift`. A
    delay of one sensor against the others can instead be fitted: the argument `delay` of sensors.

    **Errors:** `ValueError` for a shift that is not finite.
    """
    if not np.isfinite(shift):
        raise ValueError(f"`shift_run(shift=...)` must be finite, s; got {shift}.")
    moved = _rebuild(run, np.asarray(run.ts) + shift, run.values, run.noise, run.mask, run.name)
    inputs = {name: (ts + shift, values) for name, (ts, values) in run.inputs.items()}
    return eqx.tree_at(lambda m: m.inputs, moved, inputs, is_leaf=lambda x: x is moved.inputs)


def merge_runs(runs: Sequence[Measurements], order: Sequence[Any] | None = None) -> Measurements:
    """Return recordings of one run by different sensors as one, on the union of their times.

    **Arguments:** `runs`, with clocks that agree and different sensors; `order` of the sensors.
    **Errors:** `ValueError` for a sensor in two of the runs; those of `Measurements.merged`.
    """
    if twice := find_duplicates(sensor.name for run in runs for sensor in run.sensors):
        raise ValueError(f"`merge_runs` takes runs of different sensors; got {twice} twice.")
    if len(runs) == 1 and order is None:
        return runs[0]
    series, noise, mask, inputs = {}, {}, {}, {}
    for run in runs:
        inputs |= run.inputs
        for k, sensor in enumerate(run.sensors):
            series[sensor], mask[sensor] = (run.ts, run.values[k]), run.mask[k]
            if run.noise[k] is not None:
                noise[sensor] = run.noise[k]
    return Measurements.merged(
        {sensor: series[sensor] for sensor in (series if order is None else order)},
        noise or None,
        mask=mask,
        name=runs[0].name,
        inputs=inputs,
        time_zero=runs[0].time_zero,
    )


def _sampled_rows(function: str, run: Measurements, k: int) -> np.ndarray:
    """Return the rows with samples of sensor number `k`.

    **Errors:** `ValueError` for channels with gaps of their own, and for angles that wrap.
    """
    sensor, mask = run.sensors[k], np.asarray(run.mask[k])
    if not (mask == mask[:, :1]).all():
        raise ValueError(
            f"`{function}`: the channels of the {sensor.name} have gaps at different times. Give "
            "each channel a sensor of its own."
        )
    rows = np.flatnonzero(mask[:, 0])
    inner, _ = sensor.on_time()
    if isinstance(inner, JointCoordinate):
        period = inner.period if inner.period is not None else 2 * np.pi
        jumps = np.abs(np.diff(np.asarray(run.values[k])[rows]))
        bad = np.flatnonzero(jumps > 0.75 * period)
        if bad.size:
            raise ValueError(
                f"`{function}`: the {sensor.name} jumps by {jumps[bad[0]]:.4g} at sample "
                f"{rows[bad[0] + 1]}, as an encoder that restarts after a revolution. Unwrap it "
                "first (`numpy.unwrap`)."
            )
    return rows


def _has_samples_around(times: np.ndarray, new_ts: np.ndarray) -> np.ndarray:
    """Return which new times lie between samples that are not far apart, (S,)."""
    steps = np.diff(times)
    after = np.clip(np.searchsorted(times, new_ts), 1, len(times) - 1)
    is_inside = (new_ts >= times[0]) & (new_ts <= times[-1])
    usual = np.median(steps)
    nearest = np.minimum(np.abs(new_ts - times[after - 1]), np.abs(times[after] - new_ts))
    return is_inside & ((steps[after - 1] <= 2 * usual) | (nearest <= 1e-6 * usual))


def _constant_noise(run: Measurements, k: int, rows: np.ndarray, length: int) -> Any:
    """Return the noise of sensor number `k` for other times, (length, C)."""
    if run.noise[k] is None:
        return None
    noise = np.asarray(run.noise[k])[rows]
    if not (noise == noise[0]).all():
        raise ValueError(
            f"`resample_run`: the noise of the {run.sensors[k].name} differs from sample to "
            "sample. Resample first, and state the noise of the new samples."
        )
    return np.broadcast_to(noise[0], (length, noise.shape[1]))


def _call_for(sensor: Any, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a function; its errors name the sensor."""
    try:
        return function(*arguments, **options)
    except ValueError as error:
        raise ValueError(f"The {sensor.name}: {error}") from error


def _rebuild(
    run: Measurements, ts: np.ndarray, values: Any, noise: Any, mask: Any, name: str
) -> Measurements:
    """Return a run with other samples, and the inputs and the clock of the given one."""
    sensors = run.sensors
    return Measurements(
        ts,
        dict(zip(sensors, values, strict=True)),
        {s: x for s, x in zip(sensors, noise, strict=True) if x is not None} or None,
        mask=dict(zip(sensors, mask, strict=True)),
        name=name,
        inputs=run.inputs,
        time_zero=run.time_zero,
    )
