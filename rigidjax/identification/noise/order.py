"""Selection of the order of autoregressive noise."""

from collections.abc import Sequence

import numpy as np

_LARGEST_ORDER = 8


def select_order(series: Sequence[np.ndarray], num_sets: int = 1) -> int:
    """Return the order from 1 to 8 with the smallest corrected criterion of Akaike.

    **Arguments:** `series`, residuals of equidistant samples; NaN where there is none; `num_sets`,
    of data with numbers of their own, of which the mean criterion decides.
    **Source:** Burg's recursion, as in Kay, *Modern Spectral Estimation* (1988), section 7.6, with
    sums over all series; criterion: Hurvich, Tsai, Biometrika 76 (1989) 297.
    """
    forward = [np.asarray(s, float) for s in series]
    backward = forward
    count = sum(int(np.isfinite(s).sum()) for s in forward)
    variance = sum(np.nansum(s**2) for s in forward) / max(count, 1)
    criteria = []
    for order in range(1, _LARGEST_ORDER + 1):
        pairs = [(f[1:], b[:-1]) for f, b in zip(forward, backward, strict=True)]
        product = sum(np.nansum(f * b) for f, b in pairs)
        squares = sum(np.nansum(np.where(np.isfinite(f * b), f**2 + b**2, 0)) for f, b in pairs)
        reflection = 2 * product / squares if squares > 0 else 0.0
        forward = [f - reflection * b for f, b in pairs]
        backward = [b - reflection * f for f, b in pairs]
        variance *= 1 - reflection**2
        freedom = count / num_sets - order - 2
        if freedom < 1 or not variance > 0:
            break
        criteria.append(count * np.log(variance) + 2 * (order + 1) * count / freedom)
    return int(np.argmin(criteria)) + 1 if criteria else 1
