"""Statistics of outputs that need no storage of the members.

Each is a state that takes members in (`of`) and that two of which merge into one (`merged`): the
result does not depend on how members were split, exactly for counts (histograms, quantiles), to
round-off for moments. Members whose value is not finite are left out and counted.
"""

import abc
import dataclasses
import math
from typing import Any

import numpy as np


class AbstractStatistic(abc.ABC):
    """What is to be gathered of one output."""

    @abc.abstractmethod
    def of(self, values: np.ndarray) -> Any:
        """The state of some members; `values` has them in front, shape (n, ...)."""

    @abc.abstractmethod
    def merged(self, first: Any, second: Any) -> Any:
        """The state of the members of both."""

    @abc.abstractmethod
    def result(self, state: Any) -> dict[str, np.ndarray]:
        """The statistics by name."""


def _finite(values: np.ndarray) -> np.ndarray:
    """Members all of whose components are finite, a row of components each."""
    rows = values.reshape(len(values), math.prod(values.shape[1:]))
    return rows[np.isfinite(rows).all(axis=1)]


class Moments(AbstractStatistic):
    """Count, mean and covariance of all components, smallest and largest value.

    Groups of members are merged by the formula of Chan, Golub and LeVeque (1979), which loses no
    digits where the mean is large against the spread.
    """

    def of(self, values: np.ndarray) -> Any:
        """Count, mean, sum of products of the deviations, smallest, largest."""
        rows, shape = _finite(values), values.shape[1:]
        if len(rows) == 0:
            size = rows.shape[1]
            nothing = np.zeros(shape), np.zeros((size, size))
            return (0, *nothing, np.full(shape, np.inf), np.full(shape, -np.inf))
        mean = rows.mean(axis=0)
        rest = rows - mean
        low, high = rows.min(axis=0).reshape(shape), rows.max(axis=0).reshape(shape)
        return len(rows), mean.reshape(shape), rest.T @ rest, low, high

    def merged(self, first: Any, second: Any) -> Any:
        """Both groups as one."""
        count = first[0] + second[0]
        if count == 0:
            return first
        between = (second[1] - first[1]).reshape(-1)
        share = second[0] / count
        mean = first[1] + share * (second[1] - first[1])
        products = first[2] + second[2] + first[0] * share * np.outer(between, between)
        low, high = np.minimum(first[3], second[3]), np.maximum(first[4], second[4])
        return count, mean, products, low, high

    def result(self, state: Any) -> dict[str, np.ndarray]:
        """`count`, `mean`, `std`, `covariance` (of all components), `min`, `max`."""
        count, mean, products, low, high = state
        nothing = np.full(mean.shape, np.nan)
        covariance = products / (count - 1) if count > 1 else np.full(products.shape, np.nan)
        return {
            "count": np.asarray(count),
            "mean": mean if count else nothing,
            "std": np.sqrt(np.diagonal(covariance)).reshape(mean.shape),
            "covariance": covariance,
            "min": low if count else nothing,
            "max": high if count else nothing,
        }


@dataclasses.dataclass(frozen=True)
class Histogram(AbstractStatistic):
    """Counts of every component in equal bins between bounds, and of what lies outside.

    **Attributes:** `low`, `high`; `bins`, their number.
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
        """Counts (..., bins + 2): below, in the bins, above."""
        rows, shape = _finite(values), values.shape[1:]
        # The upper bound belongs to the last bin.
        scaled = np.floor((rows - self.low) / (self.high - self.low) * self.bins)
        scaled = np.where(rows == self.high, self.bins - 1, scaled)
        place = np.clip(scaled + 1, 0, self.bins + 1).astype(int)
        counts = [np.bincount(column, minlength=self.bins + 2) for column in place.T]
        return np.stack(counts).reshape(*shape, self.bins + 2)

    def merged(self, first: Any, second: Any) -> Any:
        """Sums of counts."""
        return first + second

    def result(self, state: Any) -> dict[str, np.ndarray]:
        """`counts` (..., bins), `edges` (bins + 1,), `below`, `above`."""
        edges = np.linspace(self.low, self.high, self.bins + 1)
        below, above = state[..., 0], state[..., -1]
        return {"counts": state[..., 1:-1], "edges": edges, "below": below, "above": above}


@dataclasses.dataclass(frozen=True)
class Quantiles(AbstractStatistic):
    """Quantiles of every component by a sketch: counts in bins of equal ratio.

    A quantile differs from the true one by at most `accuracy`, relative to it (the sketch of
    Masson, Rim and Lee, 2019, with as many bins as there are magnitudes).

    **Attributes:** `at`, probabilities; `accuracy`; values below `smallest` count as zero.
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
                "`Quantiles(accuracy=..., smallest=...)`: accuracy is between 0 and 1, smallest "
                f"positive; got {self.accuracy} and {self.smallest}."
            )

    @property
    def _ratio(self) -> float:
        return (1 + self.accuracy) / (1 - self.accuracy)

    def of(self, values: np.ndarray) -> Any:
        """For every component a dictionary from bin to count; and the shape."""
        rows, shape = _finite(values), values.shape[1:]
        size = np.abs(rows)
        # Bins of magnitudes are numbered from 1 up, negative values have the negative numbers.
        steps = np.log(np.maximum(size, self.smallest) / self.smallest) / math.log(self._ratio)
        bins = np.where(size <= self.smallest, 0, np.ceil(steps)) * np.sign(rows)
        found = [np.unique(column.astype(int), return_counts=True) for column in bins.T]
        return shape, [dict(zip(b.tolist(), c.tolist(), strict=True)) for b, c in found]

    def merged(self, first: Any, second: Any) -> Any:
        """Sums of counts."""
        shape, counts = first
        both = []
        for one, other in zip(counts, second[1], strict=True):
            total = dict(one)
            for bin_, count in other.items():
                total[bin_] = total.get(bin_, 0) + count
            both.append(total)
        return shape, both

    def result(self, state: Any) -> dict[str, np.ndarray]:
        """`at` (q,), `quantiles` (..., q); NaN without members."""
        shape, counts = state
        rows = [self._quantiles(count) for count in counts]
        return {"at": np.asarray(self.at), "quantiles": np.reshape(rows, (*shape, len(self.at)))}

    def _quantiles(self, counts: dict[int, int]) -> np.ndarray:
        if not counts:
            return np.full(len(self.at), np.nan)
        bins = np.array(sorted(counts))
        upto = np.cumsum([counts[b] for b in bins.tolist()])
        ranks = np.asarray(self.at) * (upto[-1] - 1)
        chosen = bins[np.searchsorted(upto, ranks, side="right").clip(0, len(bins) - 1)]
        middle = 2 / (1 + self._ratio)
        size = self.smallest * self._ratio ** np.abs(chosen).astype(float) * middle
        return np.where(chosen == 0, 0.0, np.sign(chosen) * size)
