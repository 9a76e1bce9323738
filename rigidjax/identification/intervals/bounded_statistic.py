"""Distribution of likelihood ratios of a parameter near its bounds."""

from typing import Any

import numpy as np


def student_cdf(x: float, freedom: float) -> float:
    """Return the distribution function of Student's distribution; normal for infinite freedom."""
    from scipy import special

    return float(special.ndtr(x) if np.isinf(freedom) else special.stdtr(freedom, x))


def acceptance(root: float, below: float, above: float, freedom: float = np.inf) -> float:
    r"""Return the probability that the root of the likelihood ratio is below a value.

    The true value of a parameter has distances to its bounds of `below` and `above` standard
    deviations. An unbounded estimate is normal around it; an estimate beyond a bound is moved
    there. The statistic is the decrease of the deviance from the true value to the estimate,
    $q = z^2$ inside the bounds and $d\,(2|z| - d)$ for an estimate that is moved to the bound at
    the distance $d$. Exact for linear models.

    **Arguments:** `root`, $\sqrt q$; `below`, `above`, not negative; `freedom`, degrees of freedom
    of the estimated noise, infinite for given noise.
    **Source:** Cowan, Cranmer, Gross, Vitells, Eur. Phys. J. C 71 (2011) 1554, section 3.4, for one
    bound.
    """
    probability = 1.0
    for distance in (below, above):
        reach = root if root <= distance else None
        if reach is None and distance > 0:
            reach = 0.5 * (distance + root**2 / distance)
        probability -= 0.0 if reach is None else student_cdf(-reach, freedom)
    return probability


def critical_root(level: float, below: float, above: float, freedom: float = np.inf) -> float:
    """Return the root of the likelihood ratio that is exceeded with probability 1 - `level`.

    **Arguments:** see `acceptance`.
    """
    from scipy import optimize

    if not acceptance(0.0, below, above, freedom) < level:
        return 0.0
    upper = 1.0
    while acceptance(upper, below, above, freedom) < level:
        upper *= 2.0
    root: Any = optimize.brentq(lambda x: acceptance(x, below, above, freedom) - level, 0.0, upper)
    return float(root)
