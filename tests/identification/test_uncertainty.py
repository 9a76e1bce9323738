"""Covariances of estimates by several methods, and comparison of parts of the data."""

import numpy as np
import pytest
from identification import oscillator
from identification.cases import rates_of

import rigidjax as rj
from rigidjax.identification import Parameter
from rigidjax.identification.data.measurements import stack_runs
from rigidjax.identification.search.uncertainty import contradict
from rigidjax.identification.statistics.covariance import Spectrum
from rigidjax.identification.statistics.estimate_covariance import (
    model_covariance,
    sandwich_covariance,
)
from rigidjax.identification.statistics.stability import Rows, compare_halves, compare_with_rest
from rigidjax.identification.statistics.verdict import (
    Finding,
    make_verdict,
    negative_finding,
    plausibility_notes,
    rejected_channels,
)
from rigidjax.identification.statistics.whiteness import assess_whiteness, reject_jointly


def linear_runs(rng, count=4, samples=50, shared=3):
    """Rows of runs with two channels, shared parameters and one of each run."""
    total = shared + count
    runs, dense = [], []
    for b in range(count):
        columns = np.array([*range(shared), shared + b])
        jacobian = rng.normal(size=(samples, 2, shared + 1)) * [1e3, 1.0, 1e-4, 5.0]
        rows = np.zeros((samples, 2, total))
        rows[:, :, columns] = jacobian
        runs.append((jacobian, columns))
        dense.append(rows)
    J = np.concatenate([rows.reshape(-1, total) for rows in dense])
    r = rng.normal(size=len(J))
    r -= J @ np.linalg.lstsq(J, r, rcond=None)[0]
    r_of_runs = r.reshape(count, samples, 2)
    return [Rows(j, e, c) for (j, c), e in zip(runs, r_of_runs, strict=True)], J, r


def spectrum_of(J):
    return Spectrum(J, 1e-12, np.zeros(J.shape[1]), 1.0)


def test_halves_differ_as_two_separate_fits_do(rng):
    runs, J, r = linear_runs(rng)
    half = np.tile(np.repeat([True, False], 50), 4)
    steps, variances = [], []
    for part in (half, ~half):
        steps.append(-np.linalg.lstsq(J[part], r[part], rcond=None)[0])
        variances.append(np.diag(np.linalg.inv(J[part].T @ J[part])))
    expected = (steps[0] - steps[1]) / np.sqrt(sum(variances))
    spectrum = spectrum_of(J)
    found = compare_halves(runs, spectrum, model_covariance(spectrum, np.inf))
    np.testing.assert_allclose(found.values, expected, rtol=1e-6)


def test_runs_differ_from_the_others_as_separate_fits_do(rng):
    """The parameter of the run itself cannot be compared."""
    runs, J, r = linear_runs(rng)
    spectrum = spectrum_of(J)
    total = np.sum([run.scores(spectrum.basis).sum(axis=0) for run in runs], axis=0)
    used = model_covariance(spectrum, np.inf)
    found = compare_with_rest(runs[1], total, spectrum, used).values
    part = np.repeat(np.arange(4) == 1, 100)
    own, others = [0, 1, 2, 4], [0, 1, 2, 3, 5, 6]
    steps = [
        -np.linalg.lstsq(J[rows][:, k], r[rows], rcond=None)[0][:3]
        for rows, k in ((part, own), (~part, others))
    ]
    variances = [
        np.diag(np.linalg.inv(J[rows][:, k].T @ J[rows][:, k]))[:3]
        for rows, k in ((part, own), (~part, others))
    ]
    expected = (steps[0] - steps[1]) / np.sqrt(sum(variances))
    np.testing.assert_allclose(found[:3], expected, rtol=1e-6)
    np.testing.assert_array_equal(found[3:], 0.0)


def test_clusters_of_fits_are_the_published_sandwich(rng):
    """A^-1 sum s s^T A^-1 with dense matrices, in the units of the parameters."""
    runs, J, r = linear_runs(rng, count=40, shared=3)
    J = J[:, :3]
    runs = [Rows(run.jacobian[:, :, :3], run.residuals, np.arange(3)) for run in runs]
    spectrum = spectrum_of(J)
    scores = [run.scores(spectrum.basis) for run in runs]
    found = sandwich_covariance("cluster", spectrum, scores, float(r @ r))
    sums = np.stack(
        [(J[b * 100 : b * 100 + 100].T @ r[b * 100 : b * 100 + 100]) for b in range(40)]
    )
    sums -= sums.mean(axis=0)
    inverse = np.linalg.inv(J.T @ J)
    middle = 40 / 39 * sums.T @ sums
    factor = 1 + np.trace(inverse @ middle) / (r @ r)
    np.testing.assert_allclose(found.matrix, factor * inverse @ middle @ inverse, rtol=1e-8)
    np.testing.assert_allclose(found.freedom, 39.0)


def test_undetermined_parameters_stay_infinite(rng):
    J = rng.normal(size=(300, 3))
    J[:, 2] = 2 * J[:, 1]
    spectrum = Spectrum(J, 1e-9, np.ones(3), 1.0)
    rows = Rows(J[:, None], rng.normal(size=(300, 1)), np.arange(3))
    found = sandwich_covariance("hac", spectrum, [rows.scores(spectrum.basis)], 300.0)
    np.testing.assert_array_equal(np.isinf(found.std), [False, True, True])
    assert not np.isnan(found.matrix).any() and found.freedom.shape == (3,)
    np.testing.assert_array_equal(compare_halves([rows], spectrum, found).values[1:], 0.0)


def test_rejections_are_joint():
    """Holm's steps by hand: 0.002 < 0.05/4, 0.016 < 0.05/3, 0.03 > 0.05/2."""
    np.testing.assert_array_equal(
        reject_jointly([0.03, 0.002, 0.9, 0.016], 0.05), [False, True, False, True]
    )
    assert reject_jointly([0.01, 0.02], 0.05).all() and not reject_jointly([], 0.05).any()


@pytest.mark.parametrize(
    ("gain", "noise", "expected"),
    [(1.0, 1e-3, False), (1.0, 1.0, False), (0.9, 1e-3, False), (-1.0, 0.1, True)],
    ids=["right", "right but noisy", "nearly right", "wrong sign"],
)
def test_large_smooth_residuals_contradict(rng, gain, noise, expected):
    ts = np.linspace(0.0, 10.0, 200)
    gyroscope = rj.Gyroscope()
    values = np.stack([np.sin(ts), np.cos(ts), np.sin(2 * ts)], axis=-1)
    values += noise * rng.normal(size=values.shape)
    runs = stack_runs(rj.Measurements(ts, {gyroscope: values}, {gyroscope: noise}))
    residuals = (1 - gain) * values + noise * rng.normal(size=values.shape)
    assert contradict(runs, residuals.reshape(1, -1) / noise) == expected


def test_white_series_are_rarely_rejected(rng):
    """In 400 fits with ten channels, two rejections are expected, and rarely more than seven."""
    rejected = 0
    for _ in range(400):
        tests = {str(k): assess_whiteness([x]) for k, x in enumerate(rng.normal(size=(10, 60)))}
        rejected += bool(rejected_channels(tests))
    assert rejected <= 8


def test_first_lines():
    assert str(make_verdict([], ["residuals are white"])) == (
        "The intervals may be used: residuals are white."
    )
    caution, no = Finding("a", "", False), Finding("b", "", True)
    assert str(make_verdict([caution], [])) == (
        "Warning: the intervals may be used with caution only: a."
    )
    assert str(make_verdict([caution, no, caution], [])) == (
        "Warning: the intervals may not be used: b; a."
    )
    assert negative_finding([("b", -0.2, 0.1), ("m", 1.0, 0.1)]) is None
    finding = negative_finding([("b2", -0.0415, 0.0009)])
    assert finding and finding.reason == "b2 is negative by 46 standard deviations"


def test_wrong_covariances_raise():
    data = oscillator.measure()
    with pytest.raises(ValueError, match=r"`identify\(covariance=...\)` must be .* got 'white'"):
        oscillator.fit(data, covariance="white")
    rate = Parameter("rate", rates_of, per_run=True)
    with pytest.raises(ValueError, match=r'covariance="cluster"\)` needs parameters that all runs'):
        oscillator.fit(data, (oscillator.STIFF, rate), covariance="cluster")
    with pytest.raises(ValueError, match=r'covariance="cluster"\)` needs two runs or more; got 1'):
        oscillator.fit(data[:1], rates=oscillator.RATES[:1], covariance="cluster")


# Bodies that cannot exist.


def notes(mass, inertia):
    body = rj.Body("arm", mass, inertia, physical=False)
    return plausibility_notes(rj.NullSpace(rj.System(body)))


@pytest.mark.parametrize(
    ("mass", "inertia"),
    [
        (1.3, (0.02, 0.06, 0.05)),
        (1e-9, (2e-17, 6e-17, 5e-17)),
        (1.0, (0.01, 0.01, 0.02)),
        # A ball of tungsten, of 1 cm; a rod without thickness.
        (0.0808, (3.2e-6, 3.2e-6, 3.2e-6)),
        (1.0, (0.1, 0.1, 0.0)),
    ],
)
def test_plausible_bodies_are_not_noted(mass, inertia):
    assert notes(mass, inertia) == []


def test_implausible_bodies_are_noted():
    (note,) = notes(1e6, (0.02, 0.06, 0.05))
    assert "'arm' would be denser than any material: 1e+06 kg" in note
    assert "need 6.7e+15 kg/m^3 or more" in note
    for inertia in ((1.0, 1.0, 2.1), [[1.0, 0, 0], [0, 1.0, 0], [0, 0, 2.1]]):
        (note,) = notes(1.0, inertia)
        assert "No body has the moments of inertia of 'arm', 1, 1, 2.1 kg m^2" in note


def test_bodies_without_mass_are_not_judged():
    assert plausibility_notes(rj.NullSpace(rj.FixedPointBody((1.0, 2.0, 2.5)))) == []
