"""First lines of reports: a right model is not doubted, one that lacks a drag is."""

import _studies as studies
import numpy as np

import rigidjax as rj


def share_of_warnings(study, drag, count):
    """Return in which share of this many fits the first line of the report is a warning."""
    exact = studies.double_pendulum(drag=drag).readings()
    rng, warned = np.random.default_rng(7), 0
    for _ in range(count):
        data = study.measure(exact, lambda sensor, shape: rng.normal(size=shape))
        fit = rj.identify(study.model, data, study.parameters, state0=study.state0, horizons=(1.0,))
        warned += str(fit.verdict).startswith("Warning: the intervals may")
    assert fit.report().split("\n")[0] == f"**{fit.verdict}**"
    return warned / count


def test_warnings_are_for_unmodelled_drag(exhaustive):
    """About 1 % of the fits of a right model are doubted wrongly; drag of 2 % of the torque of the
    dampers biases one damper by 50 standard deviations.
    """
    study = studies.double_pendulum()
    count = 100 if exhaustive else 25
    assert share_of_warnings(study, 0.0, count) < 0.05
    assert share_of_warnings(study, 0.02, count) > 0.95
