"""Statistics of outputs without storing the members, and differentiable means.

A statistic computes a state of a group of members (`of`) and merges two states into one (`merged`).
The result does not depend on the partition into groups, exactly for counts (histograms, quantiles),
to round-off for moments. Members with values that are not finite are left out.
"""

import abc
import collections
import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..results import failures_as_nan


class AbstractStatistic(abc.ABC):
    """Statistic of one output of an ensemble."""

    @abc.abstractmethod
    def of(self, values: np.ndarray) -> Any:
        """Compute the state of a group of members with `values`, shape (n, ...)."""

    @abc.abstractmethod
    def merged(self, first: Any, second: Any) -> Any:
        """Merge the states of two groups."""

    @abc.abstractmethod
    def result(self, state: Any) -> dict[str, np.ndarray]:
        """Compute the statistics by name."""


def _finite_rows(values: np.ndarray) -> np.ndarray:
    """Return the components of members as rows, without rows that are not finite."""
    rows = values.reshape(len(values), math.prod(values.shape[1:]))
    return rows[np.isfinite(rows).all(axis=1)]


class Moments(AbstractStatistic):
    """Count, mean and covariance of all components, smallest and largest value.

    Groups are merged by the formula of Chan, Golub and LeVeque (1979), which avoids cancellation
    if the mean is large compared with the standard deviation.
    """

    def of(self, values: np.ndarray) -> Any:
        """Compute count, mean, sum of products of deviations, smallest and largest value."""
        rows, shape = _finite_rows(values), values.shape[1:]
        if len(rows) == 0:
            size = rows.shape[1]
            zeros = np.zeros(shape), np.zeros((size, size))
            return (0, *zeros, np.full(shape, np.inf), np.full(shape, -np.inf))
        mean = rows.mean(axis=0)
        deviations = rows - mean
        low, high = rows.min(axis=0).reshape(shape), rows.max(axis=0).reshape(shape)
        return len(rows), mean.reshape(shape), deviations.T @ deviations, low, high

    def merged(self, first: Any, second: Any) -> Any:
        """Merge the states of two groups."""
        count = first[0] + second[0]
        if count == 0:
            return first
        difference = (second[1] - first[1]).reshape(-1)
        share = second[0] / count
        mean = first[1] + share * (second[1] - first[1])
        products = first[2] + second[2] + first[0] * share * np.outer(difference, difference)
        low, high = np.minimum(first[3], second[3]), np.maximum(first[4], second[4])
        return count, mean, products, low, high

    def result(self, state: Any) -> dict[str, np.ndarray]:
        """Compute `count`, `mean`, `std`, `covariance` (of all components), `min`, `max`."""
        count, mean, products, low, high = state
        nan = np.full(mean.shape, np.nan)
        covariance = products / (count - 1) if count > 1 else np.full(products.shape, np.nan)
        return {
            "count": np.asarray(count),
            "mean": mean if count else nan,
            "std": np.sqrt(np.diagonal(covariance)).reshape(mean.shape),
            "covariance": covariance,
            "min": low if count else nan,
            "max": high if count else nan,
        }


@dataclasses.dataclass(frozen=True)
class Histogram(AbstractStatistic):
    """Counts of every component in bins of equal width between two bounds, and outside.

    **Attributes:** `low` and `high`, the bounds; `bins`, the number of bins.
    """

    low: float
    high: float
    bins: int = 50

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError(
                f"`Histogram(low, high)` takes finite bounds, low < high; got {self.low} and "
                f"{self.high}."
            )
        if self.bins < 1:
            raise ValueError(f"`Histogram(bins=...)` must be positive; got {self.bins}.")

    def of(self, values: np.ndarray) -> Any:
        """Compute counts (..., bins + 2): below the bounds, in the bins, above."""
        rows, shape = _finite_rows(values), values.shape[1:]
        # The upper bound belongs to the last bin.
        scaled = np.floor((rows - self.low) / (self.high - self.low) * self.bins)
        scaled = np.where(rows == self.high, self.bins - 1, scaled)
        indices = np.clip(scaled + 1, 0, self.bins + 1).astype(int)
        counts = [np.bincount(column, minlength=self.bins + 2) for column in indices.T]
        return np.stack(counts).reshape(*shape, self.bins + 2)

    def merged(self, first: Any, second: Any) -> Any:
        """Add the counts of two groups."""
        return first + second

    def result(self, state: Any) -> dict[str, np.ndarray]:
        """Compute `counts` (..., bins), `edges` (bins + 1,), `below`, `above`."""
        edges = np.linspace(self.low, self.high, self.bins + 1)
        below, above = state[..., 0], state[..., -1]
        return {"counts": state[..., 1:-1], "edges": edges, "below": below, "above": above}


@dataclasses.dataclass(frozen=True)
class Quantiles(AbstractStatistic):
    """Quantiles of every component by a sketch: counts in logarithmic bins.

    The relative error of a quantile is at most `accuracy`. The sketch is that of Masson, Rim and
    Lee (2019), without a limit on the number of bins.

    **Attributes:** `at`, probabilities; `accuracy`, largest relative error; `smallest`, the
    magnitude up to which values count as zero.
    """

    at: tuple[float, ...] = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
    accuracy: float = 1e-3
    smallest: float = 1e-30

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", tuple(float(q) for q in np.atleast_1d(self.at)))
        if not all(0 <= q <= 1 for q in self.at):
            raise ValueError(f"`Quantiles(at=...)` are probabilities; got {self.at}.")
        if not 0 < self.accuracy < 1 or not self.smallest > 0:
            raise ValueError(
                "`Quantiles(accuracy=..., smallest=...)`: accuracy must be between 0 and 1, "
                f"smallest must be positive; got {self.accuracy} and {self.smallest}."
            )

    @property
    def _ratio(self) -> float:
        return (1 + self.accuracy) / (1 - self.accuracy)

    def of(self, values: np.ndarray) -> Any:
        """Compute the shape, and for every component a dictionary from bin to count."""
        rows, shape = _finite_rows(values), values.shape[1:]
        size = np.abs(rows)
        # Bins of positive values have the numbers 1, 2, ..., those of negative values -1, -2, ...
        steps = np.log(np.maximum(size, self.smallest) / self.smallest) / math.log(self._ratio)
        bins = np.where(size <= self.smallest, 0, np.ceil(steps)) * np.sign(rows)
        counts = [np.unique(column.astype(int), return_counts=True) for column in bins.T]
        return shape, [dict(zip(b.tolist(), c.tolist(), strict=True)) for b, c in counts]

    def merged(self, first: Any, second: Any) -> Any:
        """Add the counts of two groups."""
        pairs = zip(first[1], second[1], strict=True)
        return first[0], [collections.Counter(a) + collections.Counter(b) for a, b in pairs]

    def result(self, state: Any) -> dict[str, np.ndarray]:
        """Compute `at` (q,) and `quantiles` (..., q); NaN without members."""
        shape, counts = state
        rows = [self._quantiles(count) for count in counts]
        return {"at": np.asarray(self.at), "quantiles": np.reshape(rows, (*shape, len(self.at)))}

    def _quantiles(self, counts: dict[int, int]) -> np.ndarray:
        if not counts:
            return np.full(len(self.at), np.nan)
        bins = np.array(sorted(counts))
        cumulative = np.cumsum([counts[b] for b in bins.tolist()])
        ranks = np.asarray(self.at) * (cumulative[-1] - 1)
        chosen = bins[np.searchsorted(cumulative, ranks, side="right").clip(0, len(bins) - 1)]
        middle = 2 / (1 + self._ratio)
        size = self.smallest * self._ratio ** np.abs(chosen).astype(float) * middle
        return np.where(chosen == 0, 0.0, np.sign(chosen) * size)


def mean(function: Callable[[Any], Any], parameters: Any, *, batch: int = 256) -> Any:
    """Return the mean of `function(p)` over all members, computed chunk by chunk.

    The mean can be differentiated with `jax.grad` inside `jax.jit`, with respect to values in the
    closure of `function`. Reverse mode recomputes each chunk, so that memory does not grow with the
    number of members. As in `rj.ensemble`, a failed run does not raise; the mean is then NaN.

    **Arguments:** `function`, which maps the parameters of one member to a pytree of arrays;
    `parameters`, a pytree of arrays with a leading axis of N members; `batch`, the number of
    members in a chunk.
    **Returns:** the pytree of means.
    **Raises:** `ValueError` for parameters without members or with different leading axes, and if
    `batch` is not positive.
    """
    parameters = jax.tree.map(jnp.asarray, parameters)
    counts = {leaf.shape[:1] for leaf in jax.tree.leaves(parameters)}
    if len(counts) != 1 or counts <= {(), (0,)}:
        raise ValueError(
            "`mean(parameters=...)` takes arrays with one common leading axis of members; got "
            f"leading axes {sorted(counts)}."
        )
    if batch < 1:
        raise ValueError(f"`mean(batch=...)` must be positive; got {batch}.")
    ((count,),) = counts
    size = min(batch, count)
    in_full_chunks = count // size * size

    @jax.checkpoint
    def total(chunk):
        return jax.tree.map(lambda x: jnp.sum(x, axis=0), jax.vmap(function)(chunk))

    def add(sums, chunk):
        return jax.tree.map(jnp.add, sums, total(chunk)), None

    chunks = jax.tree.map(lambda x: x[:in_full_chunks].reshape(-1, size, *x.shape[1:]), parameters)
    with failures_as_nan(True):
        shapes = jax.eval_shape(total, jax.tree.map(lambda x: x[0], chunks))
        sums = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
        sums, _ = jax.lax.scan(add, sums, chunks)
        if in_full_chunks < count:
            rest = jax.tree.map(lambda x: x[in_full_chunks:], parameters)
            sums = jax.tree.map(jnp.add, sums, total(rest))
    return jax.tree.map(lambda x: x / count, sums)
