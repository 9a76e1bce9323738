"""Essential parameters: the base parameters that the data distinguish from zero."""

import dataclasses
from typing import Any

import numpy as np

from .regression import Regression, regress


def essential_regression(regression: Regression, *, least: float = 1.0) -> Regression:
    r"""Return the regression of the essential parameters alone.

    Base parameters whose value is below `least` of its standard deviations contribute less to the
    torques than their uncertainty. The least significant one is set to zero and the regression of
    the others is solved again, until all remaining parameters are significant. With the value
    $\theta_j$ removed, the others are $\theta - C e_j \theta_j / C_{jj}$, with the covariance
    $C - C e_j e_j^T C / C_{jj}$.

    The result is a smaller model that predicts about as well. Its standard deviations do not
    contain the choice of parameters, and a removed parameter is not known to be zero.

    **Arguments:** `regression`, from `regress`; `least`, smallest ratio of value and standard
    deviation that remains, positive. A ratio of 1 keeps all that improve predictions on average.
    **Returns:** a `Regression` with fewer base parameters (`base.expressions`) and the same method
    of covariance.
    **Errors:** `ValueError` for `least` that is not positive, and if no parameter remains.
    **Source:** Pham, Gautier, Proc. 30th IEEE Conf. Decision and Control (1991) 2769; Khalil,
    Dombre, Modeling, Identification and Control of Robots (2002), Section 12.3.
    """
    if not 0 < least < np.inf:
        raise ValueError(f"`essential_regression(least=...)` must be positive; got {least}.")
    values, covariance = np.array(regression.values), np.array(regression.covariance)
    remaining = np.arange(len(values))
    while True:
        ratios = np.abs(values) / np.sqrt(np.diag(covariance))
        j = int(np.argmin(ratios))
        if ratios[j] >= least:
            break
        if len(values) == 1:
            raise ValueError(
                f"`essential_regression`: no base parameter is {least:g} standard deviations from "
                "zero. Measure a motion that excites more."
            )
        gain = covariance[:, j] / covariance[j, j]
        values = np.delete(values - gain * values[j], j)
        covariance = covariance - np.outer(gain, covariance[j])
        covariance = np.delete(np.delete(covariance, j, axis=0), j, axis=1)
        remaining = np.delete(remaining, j)
    base = dataclasses.replace(
        regression.base,
        chosen=tuple(regression.base.chosen[k] for k in remaining),
        combinations=regression.base.combinations[remaining],
    )
    noise = regression.noise if regression.noise_is_known else None
    method: Any = regression.method
    return regress(regression.data, noise=noise, base=base, covariance=method)
