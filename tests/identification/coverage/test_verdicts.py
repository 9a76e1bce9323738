"""First lines of reports: a right model is not doubted, one that lacks a drag is."""

import _studies as studies
import numpy as np
import pytest

import rigidjax as rj

FEW = pytest.param(100, id="100")
MANY = pytest.param(1000, id="1000", marks=pytest.mark.exhaustive)


def share_of_warnings(study, drag, count):
    """Return in which share of the fits the first line of the report is a warning."""
    exact = studies.double_pendulum(drag=drag).readings()
    rng, warned = np.random.default_rng(7), 0
    for _ in range(count):
        data = study.measure(exact, lambda sensor, shape: rng.normal(size=shape))
        fit = rj.identify(study.model, data, study.parameters, state0=study.state0, horizons=(1.0,))
        warned += str(fit.verdict).startswith("Warning: the intervals may")
    assert fit.report().split("\n")[0] == f"**{fit.verdict}**"
    return warned / count


@pytest.mark.parametrize("count", [FEW, MANY])
def test_warnings_are_for_unmodelled_drag(count):
    """About 1 % of the fits of a right model are doubted wrongly; drag of 2 % of the torque of the
    dampers biases one damper by 50 standard deviations.
    """
    study = studies.double_pendulum()
    assert share_of_warnings(study, 0.0, count) < 0.05
    assert share_of_warnings(study, 0.02, count) > 0.95
