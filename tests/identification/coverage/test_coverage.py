"""95 % intervals cover the truth for every kind of noise; a benchmark has 1,000 fits of each."""

import numpy as np
import pytest
from interval_coverage import KINDS, STUDIES, find_covered

CASES = [(kind, name) for kind in KINDS for name in STUDIES]
# One case for each kind of interval: of the model, of dependent noise, of a filter, at a bound.
DEFAULT = {
    "white": "double pendulum", "AR(1)": "free body",
    "process": "double pendulum", "active bound": "free body",
}  # fmt: skip


@pytest.mark.exhaustive(but=[f"{kind}-{name}" for kind, name in DEFAULT.items()])
@pytest.mark.parametrize(("kind", "name"), CASES, ids=[f"{kind}-{name}" for kind, name in CASES])
def test_intervals_cover_the_truth(kind, name, exhaustive):
    """The bounds are 92 to 98 %, wider by three standard deviations of the count."""
    count = 200 if exhaustive else 100
    covered, fits = find_covered(kind, name, count)
    assert np.all(fits.converged)
    share, spread = covered.mean(axis=0), 3 * np.sqrt(0.95 * 0.05 / count)
    assert np.all((share > 0.92 - spread) & (share < 0.98 + spread)), share
    assert 0.92 - spread / 2 < share.mean() < 0.98 + spread / 2
