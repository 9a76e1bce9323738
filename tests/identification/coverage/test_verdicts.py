"""First lines of reports: a right model is not doubted, one that lacks a drag is."""

import os

import _studies as studies
import numpy as np

import rigidjax as rj

COUNT = 100 if os.environ.get("RIGIDJAX_TEST_ALL", "0") != "0" else 25


def share_of_warnings(study, drag):
    """Return in which share of the fits the first line of the report is a warning."""
    exact = studies.double_pendulum(drag=drag).readings()
    rng, warned = np.random.default_rng(7), 0
    for _ in range(COUNT):
        data = study.measure(exact, lambda sensor, shape: rng.normal(size=shape))
        fit = rj.identify(study.model, data, study.parameters, state0=study.state0, horizons=(1.0,))
        warned += str(fit.verdict).startswith("Warning: the intervals may")
    assert fit.report().split("\n")[0] == f"**{fit.verdict}**"
    return warned / COUNT


def test_warnings_are_for_unmodelled_drag():
    """About 1 % of the fits of a right model are doubted wrongly; drag of 2 % of the torque of the
    dampers biases one damper by 50 standard deviations.
    """
    study = studies.double_pendulum()
    assert share_of_warnings(study, 0.0) < 0.05
    assert share_of_warnings(study, 0.02) > 0.95
