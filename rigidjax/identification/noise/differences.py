"""The noise that successive samples of a sensor show by themselves."""

import numpy as np

# Third differences of white noise of unit variance have the variance 1 + 9 + 9 + 1.
_GAIN = 20.0
_FEWEST = 10


def difference_noise(ts: np.ndarray, values: np.ndarray, weights: np.ndarray) -> float:
    """Return the standard deviation of white noise with the third differences of the samples.

    Motion adds to the differences, so that white noise cannot be much larger than this value. The
    result is infinite if there are few equidistant samples, and for values such as orientations,
    which have no channels.

    **Arguments:** `ts` (B, T); `values` (B, T, ...); `weights` (B, T, C), zero without a sample.
    **Source:** Gasser, Sroka, Jennen-Steinmetz, Biometrika 73 (1986) 625, with third differences.
    """
    flat = values.reshape(*values.shape[:2], -1)
    if flat.shape != weights.shape:
        return np.inf
    total, count = 0.0, 0
    for b in range(len(ts)):
        for c in range(flat.shape[2]):
            used = weights[b, :, c] > 0
            steps, third = np.diff(ts[b][used]), np.diff(flat[b, used, c], 3)
            if len(third) == 0:
                continue
            near = np.lib.stride_tricks.sliding_window_view(steps, 3)
            equidistant = np.ptp(near, axis=1) < 0.1 * near.mean(axis=1)
            total += float(np.sum(third[equidistant] ** 2))
            count += int(equidistant.sum())
    if count < _FEWEST or total == 0:
        return np.inf
    return float(np.sqrt(total / count / _GAIN))
