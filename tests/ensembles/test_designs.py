"""Designs of ensembles: shapes, moments and bounds of parameters."""

import numpy as np
import pytest

from rigidjax import ensembles


def test_grid_covers_all_combinations():
    found = ensembles.grid(a=[1.0, 2.0], b=[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    assert found["a"].tolist() == [1, 1, 1, 2, 2, 2]
    assert found["b"].tolist() == 2 * [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize(
    "draw",
    [ensembles.sobol, ensembles.uniform, ensembles.latin_hypercube],
    ids=lambda f: f.__name__,
)
def test_samples_are_between_bounds(draw):
    found = draw(1000, seed=3, a=(-1.0, 3.0), b=([0.0, 1.0], [0.0, 3.0]))
    assert found["a"].shape == (1000,) and found["b"].shape == (1000, 2)
    assert np.all((found["a"] >= -1) & (found["a"] <= 3)) and np.all(found["b"][:, 0] == 0)
    assert found["a"].mean() == pytest.approx(1.0, abs=0.15)
    assert np.array_equal(
        draw(1000, seed=3, a=(-1.0, 3.0), b=([0.0, 1.0], [0.0, 3.0]))["b"], found["b"]
    )
    assert not np.array_equal(draw(1000, seed=4, a=(-1.0, 3.0))["a"], found["a"])


def test_samples_are_evenly_spread():
    """In every sixteenth as many Sobol points, and one point in each layer of a Latin hypercube."""
    found = ensembles.sobol(256, a=(0.0, 1.0))["a"]
    assert np.all(np.histogram(found, 16, (0, 1))[0] == 16)
    found = ensembles.latin_hypercube(50, a=(0.0, 1.0))["a"]
    assert np.all(np.histogram(found, 50, (0, 1))[0] == 1)


@pytest.mark.parametrize("quasi_random", [False, True])
def test_normal_samples_have_mean_and_deviation(quasi_random):
    C = np.array([[4.0, 1.0], [1.0, 0.25]])
    found = ensembles.normal(
        4096, quasi_random=quasi_random, a=(2.0, 0.5), b=([1.0, -1.0], C), c=([[0.0]], [[3.0]])
    )
    tolerance = 0.01 if quasi_random else 0.1
    assert found["a"].mean() == pytest.approx(2.0, abs=tolerance)
    assert found["a"].std() == pytest.approx(0.5, rel=tolerance)
    assert np.allclose(np.cov(found["b"].T), C, rtol=0, atol=4 * tolerance)
    assert np.linalg.matrix_rank(np.cov(found["b"].T), tol=1e-10) == 1
    assert found["c"].shape == (4096, 1, 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ensembles.grid(), "at least one parameter"),
        (lambda: ensembles.grid(a=[]), "no values"),
        (lambda: ensembles.sobol(0, a=(0, 1)), "at least one member"),
        (lambda: ensembles.sobol(4, a=(1, 0)), "lower and an upper"),
        (lambda: ensembles.sobol(4, a=(0, np.inf)), "must be finite"),
        (lambda: ensembles.normal(4, a=(0, -1)), "must not be negative"),
        (lambda: ensembles.normal(4, a=([0, 0], [[1, 2], [2, 1]])), "negative eigenvalues"),
        (lambda: ensembles.normal(4, a=([0, 0], [1, 2, 3])), "or a covariance"),
    ],
)
def test_invalid_input_raises(call, message):
    with pytest.raises(ValueError, match=message):
        call()
