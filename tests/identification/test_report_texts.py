"""Sentences of reports against other fits and finite differences."""

import re

import _studies as studies
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.identification import InertiaTensor
from rigidjax.identification.result.report import next_experiment, principal_axes_texts
from rigidjax.io.document import std_text


@pytest.fixture(scope="module")
def fits():
    """Fits of an inertia tensor and a bias; the second one to half of the noise."""
    study, rng = studies.free_body(), np.random.default_rng(5)
    model = rj.NullSpace(rj.FixedPointBody(np.diag([0.9, 1.2, 1.6]), moment=studies.torque))
    data = study.measure(study.readings(), lambda sensor, shape: rng.normal(size=shape))
    parameters = [
        rj.Parameter("body.inertia", transform=InertiaTensor()),
        rj.Parameter("gyroscope.bias"),
    ]
    halved = rj.Measurements(
        data.ts, dict(zip(data.sensors, data.values, strict=True)), {data.sensors[0]: 0.005}
    )
    return [rj.identify(model, d, parameters, state0=study.state0) for d in (data, halved)]


def test_next_experiment_is_that_of_another_fit(fits):
    text = next_experiment(fits[0])
    label, percent = re.match(
        r"Least known is (\S+), .*by (\d+) % with half of the noise", text
    ).groups()
    assert 100 * (1 - fits[1].std[label] / fits[0].std[label]) == pytest.approx(
        float(percent), abs=0.6
    )


def test_principal_moments_have_the_deviations_of_finite_differences(fits):
    numbers = re.findall(r"([\d.]+) \+- ([\d.e-]+) about", principal_axes_texts(fits[0])[0])
    inertia = np.asarray(fits[0].model.system.inertia)
    np.testing.assert_allclose(
        [float(m) for m, _ in numbers], np.linalg.eigvalsh(inertia), rtol=1e-3
    )
    places = [(0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1)]
    slopes = []
    for i, j in places:
        step = np.zeros((3, 3))
        step[i, j] = step[j, i] = 1e-6
        slopes.append(
            (np.linalg.eigvalsh(inertia + step) - np.linalg.eigvalsh(inertia - step)) / 2e-6
        )
    std = np.sqrt(np.diag(np.array(slopes).T @ fits[0].covariance[:6, :6] @ np.array(slopes)))
    assert [s for _, s in numbers] == [std_text(s) for s in std.tolist()]
