"""Estimates of refits to resampled data, and their intervals."""

import dataclasses

import numpy as np
from jaxtyping import Float

from ..statistics.digits import std_text


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Bootstrap:
    """Estimates from resampled data.

    **Attributes:**

    - `kind`, see `bootstrap`; `labels`, `units`, `estimates` (k,), as in the `Fit`.
    - `values` (N, k): estimates of the refits that converged; `num_failed` refits did not.
    - `block_lengths`: number of samples in a block, by sensor, for `kind="block"`.
    """

    kind: str
    labels: tuple[str, ...]
    units: tuple[str, ...]
    estimates: Float[np.ndarray, " k"]
    values: Float[np.ndarray, "N k"]
    num_failed: int
    block_lengths: dict[str, int]

    @property
    def covariance(self) -> Float[np.ndarray, "k k"]:
        """Covariance of the estimates."""
        return np.atleast_2d(np.cov(self.values.T))

    @property
    def std(self) -> dict[str, float]:
        """Standard deviations of the estimates by label."""
        return dict(zip(self.labels, self.values.std(axis=0, ddof=1).tolist(), strict=True))

    @property
    def bias(self) -> dict[str, float]:
        """Mean of the refits minus the estimate, by label."""
        bias = self.values.mean(axis=0) - self.estimates
        return dict(zip(self.labels, bias.tolist(), strict=True))

    def intervals(self, level: float = 0.95) -> dict[str, tuple[float, float]]:
        """Return percentile intervals by label.

        **Arguments:** `level`, the coverage probability, in (0, 1).
        **Errors:** `ValueError` for another level.
        """
        if not 0 < level < 1:
            raise ValueError(
                "`Bootstrap.intervals(level=...)` lies between 0 and 1, such as 0.95 for 95 %; got "
                f"{level!r}."
            )
        ends = np.quantile(self.values, [0.5 * (1 - level), 0.5 * (1 + level)], axis=0)
        return dict(zip(self.labels, map(tuple, ends.T.tolist()), strict=True))

    def __repr__(self) -> str:
        entries = ", ".join(f"{k} {std_text(v)}" for k, v in list(self.std.items())[:6])
        failed = f", {self.num_failed} refits did not converge" if self.num_failed else ""
        return f"Bootstrap({self.kind}, {len(self.values)} refits{failed}; std: {entries})"
