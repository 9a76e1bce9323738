"""Where fits end: at an optimum, soon, or with a word on what to do."""

import dataclasses
import types

import jax.numpy as jnp
import numpy as np

from rigidjax.identification.result.from_minimum import _describe_ending
from rigidjax.identification.search.options import make_search


def ending(converged, offset, undetermined=(), cost=(9.0, 5.0, 4.0), condition=1.0):
    """Return the message of a search that ended in this way."""
    search = dataclasses.replace(make_search(jnp.float64), tolerance=jnp.asarray(5e-3))
    minimum = types.SimpleNamespace(
        converged=converged, iterations=np.array([2, len(cost)]), cost=np.array([cost, cost])
    )
    verdict = types.SimpleNamespace(
        identifiable=not undetermined,
        condition=condition,
        undetermined=[dict.fromkeys(undetermined, 1)],
    )
    result, warnings = _describe_ending(minimum, offset, search, verdict)
    return result, " ".join(warnings)


def test_fit_reports_only_established_reasons():
    assert ending(True, 0.1) == ("converged", "")
    result, told = ending(True, 0.2)
    assert "stopped 0.2 standard errors from the optimum, as `tolerance` allows" in result
    assert "Lower `tolerance` (here 0.005)" in told
    result, told = ending(True, 1.04)
    assert result == "no step leads closer to the optimum, which is 1 standard errors away"
    assert "rtol" not in told
    result, told = ending(False, 3.0)
    assert result == "no optimum within 200 iterations, 3 standard errors from it"
    assert told == (
        "The sum of squares fell by 56 % in the last 3 iterations; more of them "
        "(`max_iterations`) lead further."
    )
    _, told = ending(False, 3.0, cost=(4.0, 4.0))
    assert told == "The sum of squares fell by 0 % in the last 2 iterations."
    result, told = ending(False, float("nan"), ("k1", "k2"))
    assert result == "no optimum within 200 iterations, far from it"
    assert (
        "The data do not determine k1 and k2: fix some of them at known values, or give priors."
        in told
    )
    assert "hardly determine" in ending(False, 1.0, condition=1e6)[1]
