"""Offset between the clocks of two recordings, from a signal that both contain."""

from typing import NamedTuple

import numpy as np
from jaxtyping import ArrayLike

from .filtering import check_series

# Part of the longest common time that two recordings must share at a shift.
_LEAST_OVERLAP = 0.25
# Correlation below which the two signals are not the same motion.
_LEAST_CORRELATION = 0.5


class TimeShift(NamedTuple):
    """Offset of a clock: `shift`, s, and the `correlation` of the two signals after it."""

    shift: float
    correlation: float


def find_time_shift(
    ts: ArrayLike,
    values: ArrayLike,
    reference_ts: ArrayLike,
    reference: ArrayLike,
    *,
    max_shift: float,
) -> TimeShift:
    """Return the shift of a recording that fits it to a reference, to a fraction of a sample.

    The correlation coefficient of the two signals, over the time that they share, is computed for
    shifts by whole samples, and then maximised over all shifts near the best one, with cubic
    splines. It does not depend on gains and offsets.

    ```python
    shift, _ = rj.identification.find_time_shift(ts, rate, ts_camera, rate_camera, max_shift=2.0)
    run = rj.identification.shift_run(run, shift)
    ```

    **Arguments:** `ts`, `values`, (T,) s and (T,), of the recording that is shifted;
    `reference_ts`, `reference`, (S,) s and (S,), of the same quantity; `max_shift`, s, in both
    directions.
    **Returns:** the shift that is added to `ts`, and the correlation there.
    **Errors:** `ValueError` for a shift at the limit, a correlation below 0.5, signals without
    change, recordings that share too little time, and everything that `lowpass` rejects but
    times that are not uniform.
    """
    # Imported here because it takes long.
    from scipy.interpolate import make_interp_spline
    from scipy.optimize import minimize_scalar

    times, samples = check_series("find_time_shift", ts, values)
    reference_times, reference_samples = check_series("find_time_shift", reference_ts, reference)
    if samples.ndim != 1 or reference_samples.ndim != 1:
        raise ValueError(
            "`find_time_shift` takes one signal of each recording, (T,) and (S,); got "
            f"{samples.shape} and {reference_samples.shape}."
        )
    if not 0 < max_shift < np.inf:
        raise ValueError(f"`find_time_shift(max_shift=...)` must be positive, s; got {max_shift}.")
    spline = make_interp_spline(times, samples, min(3, len(times) - 1))
    duration = min(np.ptp(times), np.ptp(reference_times))

    def correlation(shift: float) -> float:
        """Return the correlation at a shift; -1 with too little in common."""
        inside = (reference_times >= times[0] + shift) & (reference_times <= times[-1] + shift)
        kept = reference_times[inside]
        if len(kept) < 3 or kept[-1] - kept[0] < _LEAST_OVERLAP * duration:
            return -1.0
        a, b = spline(kept - shift), reference_samples[inside]
        a, b = a - a.mean(), b - b.mean()
        size = np.linalg.norm(a) * np.linalg.norm(b)
        return float(a @ b / size) if size > 0 else -1.0

    step = float(min(np.median(np.diff(times)), np.median(np.diff(reference_times))))
    shifts, found = _correlate(
        (times, samples), (reference_times, reference_samples), step, _LEAST_OVERLAP * duration
    )
    allowed = np.abs(shifts) <= max_shift
    if not allowed.any():
        raise ValueError(
            f"`find_time_shift`: the recordings, from {times[0]:.6g} to {times[-1]:.6g} s and from "
            f"{reference_times[0]:.6g} to {reference_times[-1]:.6g} s, share too little time at "
            f"every shift within {max_shift:g} s."
        )
    shifts, found = shifts[allowed], found[allowed]
    best = int(np.argmax(found))
    if found[best] < _LEAST_CORRELATION:
        raise ValueError(
            f"`find_time_shift`: the signals do not agree at any shift within {max_shift:g} s (the "
            f"largest correlation is {found[best]:.2f}). Compare the same quantity, with the same "
            "sign, or allow a larger `max_shift`."
        )
    if best in (0, len(shifts) - 1):
        raise ValueError(
            f"`find_time_shift`: the best shift is at the limit, {shifts[best]:.4g} s. Allow a "
            "larger `max_shift`, or give longer recordings."
        )
    refined = minimize_scalar(
        lambda shift: -correlation(shift),
        bounds=(shifts[best] - step, shifts[best] + step),
        method="bounded",
        options={"xatol": 1e-6 * step},
    )
    return TimeShift(float(refined.x), correlation(float(refined.x)))


def _correlate(
    moved: tuple[np.ndarray, np.ndarray],
    fixed: tuple[np.ndarray, np.ndarray],
    step: float,
    least: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return correlation coefficients of two signals for shifts by multiples of `step`.

    **Arguments:** `moved`, `fixed`: times and samples; `least`, s, which the signals must share.
    **Returns:** shifts (K,), s, and the coefficients (K,).
    """
    # Imported here because it takes long.
    from scipy.signal import correlate

    (ts_a, a), (ts_b, b) = moved, fixed
    grid_a = np.arange(ts_a[0], ts_a[-1] + 1e-6 * step, step)
    grid_b = np.arange(ts_b[0], ts_b[-1] + 1e-6 * step, step)
    # Means are removed first: sums of squares lose their digits to large offsets.
    a, b = np.interp(grid_a, ts_a, a - a.mean()), np.interp(grid_b, ts_b, b - b.mean())
    a, b = a / max(a.std(), 1e-300), b / max(b.std(), 1e-300)
    ones_a, ones_b = np.ones_like(a), np.ones_like(b)
    count = np.round(correlate(ones_b, ones_a, method="fft"))
    sum_a, sum_b = correlate(ones_b, a, method="fft"), correlate(b, ones_a, method="fft")
    squares_a = correlate(ones_b, a**2, method="fft") - sum_a**2 / np.maximum(count, 1)
    squares_b = correlate(b**2, ones_a, method="fft") - sum_b**2 / np.maximum(count, 1)
    products = correlate(b, a, method="fft") - sum_a * sum_b / np.maximum(count, 1)
    shifts = ts_b[0] - ts_a[0] + step * np.arange(1 - len(a), len(b))
    enough = (count > 2) & ((count - 1) * step >= least)
    size = np.sqrt(np.maximum(squares_a * squares_b, 0.0))
    # A part without change has no correlation.
    varies = size > 1e-6 * np.sqrt(len(a) * len(b))
    ratio = np.divide(products, size, out=np.full(len(size), -1.0), where=varies)
    return shifts[enough], ratio[enough]
