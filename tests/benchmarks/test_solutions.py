"""Features of Lang's Figures 11 and 12, against independent computations."""

import importlib
import pathlib
import sys

import numpy as np
import pytest
import scipy.integrate
import scipy.special

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def solutions():
    sys.path.insert(0, str(FOLDER))
    yield importlib.import_module("solutions")
    sys.path.remove(str(FOLDER))


def test_racket_flips_every_half_period(solutions):
    """Landau-Lifshitz' elliptic function of the rate about the middle axis."""
    row = solutions.racket(801)
    a, b, c = 11.6, 41.6, 50.0  # the smallest moment, that of axis 1, the largest
    twice = a * 1e-6 + b * 2500.0 + c * 1e-6
    square = a**2 * 1e-6 + b**2 * 2500.0 + c**2 * 1e-6
    rate = np.sqrt((c - b) * (square - twice * a) / (a * b * c))
    modulus = (b - a) * (twice * c - square) / ((c - b) * (square - twice * a))
    quarter = float(scipy.special.ellipk(modulus)) / rate
    gaps = np.diff(row["flips"])
    np.testing.assert_allclose(gaps, 2.0 * quarter, rtol=1e-5)
    assert row["counts"]["flips"] == 1 + int((4.0 - row["flips"][0]) / (2.0 * quarter)) == 5
    assert np.all(np.abs(np.array(row["flips"][:2]) - [0.4, 1.2]) < 0.1)  # read off a figure
    assert max(row["cosines"]) < -0.999


def test_top_nutates_and_precesses(solutions):
    """Euler's equations by SciPy, written with the rotation matrix."""
    row = solutions.heavy_top(1001)
    inertia, weight = np.array([50.0, 42.0, 10.0]), 11.09 * 9.81
    s = np.sqrt(3) / 2

    def field(t, y):
        R, w = y[:9].reshape(3, 3), y[9:]
        spin = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
        moment = np.cross([0.0, 0.0, 1.0], R.T @ [0.0, 0.0, -weight])
        return np.concatenate([(R @ spin).ravel(), (moment - np.cross(w, inertia * w)) / inertia])

    start = np.concatenate([[1, 0, 0, 0, 0.5, -s, 0, s, 0.5], [0, 0, 20.0]])
    ts = np.linspace(0.0, 10.0, 1001)
    run = scipy.integrate.solve_ivp(field, (0.0, 10.0), start, "DOP853", ts, rtol=1e-9, atol=1e-9)
    axis = run.y[:9].reshape(3, 3, -1)[:, 2]
    lowest = (axis[2, 1:-1] <= axis[2, :-2]) & (axis[2, 1:-1] < axis[2, 2:])
    assert row["counts"]["nutations"] == lowest.sum() == 8
    turns = np.diff(np.unwrap(np.arctan2(axis[1], axis[0]))[[0, -1]])[0] / (2 * np.pi)
    assert row["counts"]["turns of the precession"] == pytest.approx(turns, abs=1e-6)
    np.testing.assert_allclose(row["directors"][8], axis[2], atol=2e-5)
    # It falls from where it starts, and comes back to it.
    assert row["inclination"][0] == pytest.approx(np.pi / 3, abs=1e-6)
