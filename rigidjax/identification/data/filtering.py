"""Filters without delay, derivatives and interpolation of sampled signals."""

from typing import Any, Literal

import numpy as np
from jaxtyping import ArrayLike

from ...checks import check_increasing

# Deviation of the time between samples, relative to its mean, that counts as uniform.
_UNIFORM = 0.01
# Length of a filtered quaternion below which its direction is lost.
_LOST = 0.5


def lowpass(ts: ArrayLike, values: ArrayLike, cutoff: float, *, order: int = 4) -> np.ndarray:
    """Filter signals by a Butterworth filter, forwards and backwards, without delay.

    The two passes square the gain, which is 1/2 at the cutoff frequency.

    **Arguments:** `ts` (T,), uniform, s; `values` (T, ...), any unit; `cutoff`, Hz, below half of
    the sampling rate; `order`, of one pass.
    **Returns:** the shape of `values`.
    **Errors:** `ValueError` for times that are not uniform, values that are not finite, a cutoff
    out of range, and too few samples.
    **Source:** Gustafsson, IEEE Trans. Signal Process. 44 (1996) 988 (forward-backward filters);
    `scipy.signal.sosfiltfilt`.
    """
    # Imported here because it takes long.
    import scipy.signal

    times, samples = check_series("lowpass", ts, values)
    rate = 1 / _sample_period("lowpass", times)
    if not 0 < cutoff < rate / 2:
        raise ValueError(
            f"`lowpass(cutoff=...)` must be positive and below half of the sampling rate, "
            f"{rate / 2:.6g} Hz; got {cutoff}."
        )
    sos: Any = scipy.signal.butter(order, cutoff, fs=rate, output="sos")
    # Odd extension at the ends, long enough for the start of the filter to decay.
    padding = max(6 * len(sos), round(2 * rate / cutoff))
    if len(times) <= 6 * len(sos):
        raise ValueError(
            f"`lowpass` needs more than {6 * len(sos)} samples for order {order}; got {len(times)}."
        )
    return scipy.signal.sosfiltfilt(sos, samples, axis=0, padlen=min(padding, len(times) - 1))


def differentiate(
    ts: ArrayLike, values: ArrayLike, *, window: float, degree: int = 3, derivative: int = 1
) -> np.ndarray:
    """Differentiate signals by local polynomials (Savitzky and Golay), without delay.

    **Arguments:** `ts` (T,), uniform, s; `values` (T, ...), any unit; `window`, the length of time
    over which a polynomial is fitted, s; `degree` of the polynomials; `derivative`, 1 or more, or 0
    to smooth only.
    **Returns:** the shape of `values`, in their unit per s^derivative.
    **Errors:** `ValueError` for times that are not uniform, values that are not finite, a window
    longer than the data or shorter than the polynomial, and a derivative above the degree.
    **Source:** Savitzky, Golay, Anal. Chem. 36 (1964) 1627; `scipy.signal.savgol_filter`.
    """
    # Imported here because it takes long.
    import scipy.signal

    times, samples = check_series("differentiate", ts, values)
    period = _sample_period("differentiate", times)
    length = 2 * round(window / period / 2) + 1
    if not 0 <= derivative <= degree:
        raise ValueError(
            f"`differentiate(derivative=...)` must be from 0 to the degree, {degree}; got "
            f"{derivative}."
        )
    if not degree < length <= len(times):
        raise ValueError(
            f"`differentiate(window=...)` must be from {period * (degree + 1):.4g} to "
            f"{period * (len(times) - 1):.4g} s, for polynomials of degree {degree} and "
            f"{len(times)} samples; got {window:g} s."
        )
    smoothed: Any = scipy.signal.savgol_filter(
        samples, length, degree, deriv=derivative, delta=period, axis=0
    )
    return smoothed


def differentiate_orientation(
    ts: ArrayLike, quaternions: ArrayLike, *, window: float, degree: int = 3
) -> np.ndarray:
    r"""Return angular velocities, body components, from orientations, by local polynomials.

    With polynomials $q(t)$ of the quaternions, of any length, $\Omega = 2\,\mathrm{vec}(\bar q
    \dot q) / |q|^2$.

    **Arguments:** `ts` (T,), uniform, s; `quaternions` (T, 4), scalar first, body to space, in any
    sign; `window`, `degree` as in `differentiate`.
    **Returns:** (T, 3), rad/s.
    **Errors:** those of `differentiate`.
    """
    q = align_signs(_check_quaternions("differentiate_orientation", quaternions))
    options: dict[str, Any] = {"window": window, "degree": degree}
    mean = differentiate(ts, q, **options, derivative=0)
    rate = differentiate(ts, q, **options)
    w, v, dw, dv = mean[:, :1], mean[:, 1:], rate[:, :1], rate[:, 1:]
    return 2 * (w * dv - dw * v - np.cross(v, dv)) / np.sum(mean**2, axis=1, keepdims=True)


def lowpass_orientation(
    ts: ArrayLike, quaternions: ArrayLike, cutoff: float, *, order: int = 4
) -> np.ndarray:
    """Filter orientations without delay: their quaternions, then normalised.

    The result does not depend on the axes of body or space. A steady rotation passes unchanged.

    **Arguments:** as in `lowpass`; `quaternions` (T, 4), in any sign.
    **Returns:** unit quaternions (T, 4).
    **Errors:** those of `lowpass`; `ValueError` for rotations faster than the cutoff.
    """
    q = align_signs(_check_quaternions("lowpass_orientation", quaternions))
    filtered = lowpass(ts, q, cutoff, order=order)
    size = np.linalg.norm(filtered, axis=1, keepdims=True)
    if size.min() < _LOST:
        raise ValueError(
            f"`lowpass_orientation(cutoff={cutoff:g})`: the body rotates as fast as the filter "
            f"removes, near sample {int(size.argmin())}. Use a higher cutoff."
        )
    return filtered / size


def resample(
    ts: ArrayLike,
    values: ArrayLike,
    new_ts: ArrayLike,
    *,
    interpolation: Literal["linear", "cubic"] = "cubic",
) -> np.ndarray:
    """Interpolate signals at other times.

    Apply `lowpass` with a cutoff below half of the new rate first: resampling does not filter.

    **Arguments:** `ts`, (T,), increasing, s; `values`, (T, ...); `new_ts`, (S,), within `ts`;
    `interpolation`, between the samples, by lines or by a cubic spline.
    **Returns:** shape (S, ...).
    **Errors:** `ValueError` for times out of order or beyond the data, values that are not finite,
    another interpolation.
    """
    # Imported here because it takes long.
    from scipy.interpolate import make_interp_spline

    times, samples = check_series("resample", ts, values)
    if interpolation not in ("linear", "cubic"):
        raise ValueError(
            f'`resample(interpolation=...)` must be "linear" or "cubic"; got {interpolation!r}.'
        )
    new = _check_within("resample", times, new_ts)
    degree = min(1 if interpolation == "linear" else 3, len(times) - 1)
    return make_interp_spline(times, samples, degree)(new)


def resample_orientation(ts: ArrayLike, quaternions: ArrayLike, new_ts: ArrayLike) -> np.ndarray:
    """Interpolate orientations at other times, with constant angular velocity between samples.

    **Arguments, errors:** as in `resample`; `quaternions` (T, 4), scalar first, in any sign.
    **Returns:** unit quaternions (S, 4).
    """
    # Imported here because it takes long.
    from scipy.spatial.transform import Rotation, Slerp

    q = _check_quaternions("resample_orientation", quaternions)
    times, _ = check_series("resample_orientation", ts, q)
    new = _check_within("resample_orientation", times, new_ts)
    slerp = Slerp(times, Rotation.from_quat(q, scalar_first=True))
    return align_signs(slerp(new).as_quat(scalar_first=True))


def align_signs(quaternions: np.ndarray) -> np.ndarray:
    """Return the same orientations (T, 4), each quaternion on the side of the previous one."""
    products = np.sum(quaternions[1:] * quaternions[:-1], axis=1)
    signs = np.cumprod(np.concatenate([[1.0], np.where(products < 0, -1.0, 1.0)]))
    return quaternions * signs[:, None]


def _check_within(function: str, times: np.ndarray, new_ts: Any) -> np.ndarray:
    new = np.asarray(new_ts, float)
    if new.ndim != 1 or not new.size or not np.isfinite(new).all():
        raise ValueError(f"`{function}(new_ts=...)` must be times (S,), s; got {new.shape}.")
    if new.min() < times[0] or new.max() > times[-1]:
        raise ValueError(
            f"`{function}(new_ts=...)` must be within the data, {times[0]:.6g} to "
            f"{times[-1]:.6g} s; got {new.min():.6g} to {new.max():.6g} s."
        )
    return new


def check_series(function: str, ts: Any, values: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return finite samples at increasing times, or raise `ValueError`."""
    times, samples = np.asarray(ts, float), np.asarray(values, float)
    if times.ndim != 1 or len(times) < 2 or samples.shape[:1] != times.shape:
        raise ValueError(
            f"`{function}(ts, values)` takes times (T,), at least two, and values (T, ...); got "
            f"{times.shape} and {samples.shape}."
        )
    if not (np.isfinite(times).all() and np.isfinite(samples).all()):
        raise ValueError(f"`{function}(ts, values)` must be finite; leave gaps out.")
    check_increasing(f"`{function}(ts=...)`", times)
    return times, samples


def _check_quaternions(function: str, quaternions: Any) -> np.ndarray:
    q = np.asarray(quaternions, float)
    if q.ndim != 2 or q.shape[1] != 4 or not np.allclose(np.linalg.norm(q, axis=1), 1, atol=1e-3):
        raise ValueError(
            f"`{function}(quaternions=...)` must be unit quaternions (T, 4), scalar first; got "
            f"shape {q.shape}."
        )
    return q


def _sample_period(function: str, times: np.ndarray) -> float:
    """Return the time between samples, s; `ValueError` if it is not uniform."""
    steps = np.diff(times)
    period = float(np.mean(steps))
    wrong = int(np.argmax(np.abs(steps - period)))
    if abs(steps[wrong] - period) > _UNIFORM * period:
        raise ValueError(
            f"`{function}` takes uniform samples; they are {period:.6g} s apart on average, and "
            f"{steps[wrong]:.6g} s at sample {wrong}. Resample first, or cut at the gaps."
        )
    return period
