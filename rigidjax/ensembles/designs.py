"""Parameters of the members of an ensemble: grids, quasi-random and random samples."""

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import scipy.special
from jaxtyping import Float

from ..checks import ArrayInput

Parameters = dict[str, Float[np.ndarray, "N ..."]]
Pair: TypeAlias = tuple[np.ndarray, np.ndarray]


def grid(**axes: ArrayInput) -> Parameters:
    """Return all combinations of values; the last parameter varies fastest.

    **Arguments:** for every parameter its values, shape (n,) or (n, ...).
    **Returns:** the parameters by name; the leading axis has the product of all n.
    **Raises:** `ValueError` for parameters without a value.
    """
    _check_names(axes)
    values = {name: np.atleast_1d(value) for name, value in axes.items()}
    for name, value in values.items():
        if len(value) == 0:
            raise ValueError(f"`grid({name}=...)` has no values; give at least one.")
    counts = [len(value) for value in values.values()]
    indices = np.indices(counts).reshape(len(counts), -1)
    return {name: value[i] for (name, value), i in zip(values.items(), indices, strict=True)}


def sobol(count: int, *, seed: int = 0, **bounds: tuple[ArrayInput, ArrayInput]) -> Parameters:
    """Return scrambled Sobol points between bounds.

    **Arguments:** `count`, the number of members, best a power of two; `seed`, of the scrambling;
    `bounds`, for every parameter its lower and upper bound, scalars or arrays of one shape.
    **Raises:** `ValueError` for bounds of different shapes, not finite, or in the wrong order.
    """
    return _scale_to_bounds("sobol", count, seed, bounds)


def latin_hypercube(
    count: int, *, seed: int = 0, **bounds: tuple[ArrayInput, ArrayInput]
) -> Parameters:
    """Return a Latin hypercube: every component has one member in each of `count` intervals.

    **Arguments, raises:** as `sobol`.
    """
    return _scale_to_bounds("latin_hypercube", count, seed, bounds)


def uniform(count: int, *, seed: int = 0, **bounds: tuple[ArrayInput, ArrayInput]) -> Parameters:
    """Return independent random members, uniformly distributed between bounds.

    **Arguments, raises:** as `sobol`.
    """
    return _scale_to_bounds("uniform", count, seed, bounds)


def normal(
    count: int,
    *,
    seed: int = 0,
    quasi_random: bool = False,
    **moments: tuple[ArrayInput, ArrayInput],
) -> Parameters:
    """Return normally distributed members.

    **Arguments:** `count`, the number of members; `seed`, of the deviates; `quasi_random`, whether
    to use Sobol points, with which means converge faster; `moments`, for every parameter its mean
    and standard deviation, scalars or arrays of one shape, or for a mean of shape (k,) the
    covariance (k, k).
    **Raises:** `ValueError` for other shapes, negative deviations, and a covariance that is not
    positive semidefinite.
    """
    pairs = _check_pairs("mean and standard deviation", moments)
    factored = {name: _factor(name, *pair) for name, pair in pairs.items()}
    method = "sobol" if quasi_random else "uniform"
    deviates = _draw(method, count, seed, factored, is_normal=True)
    return {
        name: mean + (deviates[name] @ factor.T).reshape(count, *mean.shape)
        for name, (mean, factor) in factored.items()
    }


def _factor(name: str, mean: np.ndarray, spread: np.ndarray) -> Pair:
    """Return the mean, and a matrix F whose product F F^T is the covariance."""
    if spread.shape == mean.shape or spread.ndim == 0:
        if np.any(spread < 0):
            raise ValueError(f"`normal({name}=...)`: standard deviations must not be negative.")
        return mean, np.diag(np.broadcast_to(spread, mean.shape).reshape(-1))
    if mean.ndim != 1 or spread.shape != (mean.size, mean.size):
        raise ValueError(
            f"`normal({name}=...)` takes a mean and standard deviations of its shape {mean.shape}, "
            f"or a covariance; got shape {spread.shape}."
        )
    values, vectors = np.linalg.eigh(spread)
    scale = np.abs(spread).max()
    if not np.allclose(spread, spread.T, rtol=0, atol=1e-12 * scale) or values[0] < -1e-12 * scale:
        raise ValueError(
            f"`normal({name}=...)`: the covariance must be symmetric and without negative "
            f"eigenvalues; the smallest is {values[0]:.3g}."
        )
    return mean, vectors * np.sqrt(np.maximum(values, 0.0))


def _scale_to_bounds(method: str, count: int, seed: int, bounds: Mapping[str, Any]) -> Parameters:
    pairs = _check_pairs("bounds", bounds)
    for name, (low, high) in pairs.items():
        if low.shape != high.shape or not np.all(low <= high):
            raise ValueError(
                f"The bounds of {name!r} must be a lower and an upper bound of the same shape; got "
                f"{low} and {high}."
            )
    points = _draw(method, count, seed, pairs)
    return {
        name: low + points[name].reshape(count, *low.shape) * (high - low)
        for name, (low, high) in pairs.items()
    }


def _draw(
    method: str, count: int, seed: int, pairs: Mapping[str, Pair], is_normal: bool = False
) -> dict[str, np.ndarray]:
    """Return points with as many components as the first arrays of `pairs`, shape (N, components).

    They are uniformly distributed between 0 and 1, or normally with mean 0 and deviation 1.
    """
    from scipy.stats import qmc

    if count < 1:
        raise ValueError(f"An ensemble has at least one member; got count={count}.")
    ends = np.cumsum([first.size for first, _ in pairs.values()])
    dimension = int(ends[-1])
    if method == "uniform":
        points = np.random.default_rng(seed).random((count, dimension))
    elif method == "latin_hypercube":
        points = qmc.LatinHypercube(dimension, rng=seed).random(count)
    else:
        # SciPy warns if the number is not a power of two, although the points are the same.
        points = qmc.Sobol(dimension, rng=seed).random_base2(math.ceil(math.log2(count)))[:count]
    if is_normal:
        # Scrambled Sobol points may be rounded to zero, where the quantile is infinite.
        tiny = np.finfo(float).eps
        points = scipy.special.ndtri(np.clip(points, tiny, 1 - tiny))
    return dict(zip(pairs, np.split(points, ends[:-1], axis=1), strict=True))


def _check_pairs(meaning: str, arguments: Mapping[str, Any]) -> dict[str, Pair]:
    _check_names(arguments)
    pairs = {}
    for name, pair in arguments.items():
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(f"`{name}` takes two values ({meaning}); got {pair!r}.")
        first, second = (np.asarray(part, float) for part in pair)
        if not (np.all(np.isfinite(first)) and np.all(np.isfinite(second))):
            raise ValueError(f"The {meaning} of {name!r} must be finite; got {pair!r}.")
        pairs[name] = first, second
    return pairs


def _check_names(arguments: Mapping[str, Any]) -> None:
    if not arguments:
        raise ValueError("Pass at least one parameter, such as `spin=(90.0, 110.0)`.")
