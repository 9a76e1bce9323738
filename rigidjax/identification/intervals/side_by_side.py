"""Intervals of the same estimates by several methods, and which one to trust."""

import dataclasses
from collections.abc import Iterable

from ..fit.result import LEVEL, Fit
from ..statistics.digits import estimate_text, interval_text
from ..statistics.verdict import rejected_channels
from .bootstrap import Bootstrap
from .posterior import Posterior
from .profile import Profile

# Difference of the ends of two intervals, relative to the width, that matters.
_DIFFERENT = 0.1

Intervals = dict[str, tuple[float, float]]


@dataclasses.dataclass(frozen=True, repr=False)
class IntervalTable:
    """Intervals of all estimates by several methods.

    **Attributes:** `labels`, `units`, `estimates`; `level`; `intervals`: by method, then by label;
    `trusted`: for each label the method to use; `reason` for the choice.
    """

    labels: tuple[str, ...]
    units: tuple[str, ...]
    estimates: tuple[str, ...]
    level: float
    intervals: dict[str, Intervals]
    trusted: dict[str, str]
    reason: str

    def rows(self) -> list[tuple[str, ...]]:
        """Return the heading and a row for each estimate; the interval to trust has a star."""
        heading = ("parameter", "estimate", *self.intervals, "unit")
        rows: list[tuple[str, ...]] = [heading]
        for label, estimate, unit in zip(self.labels, self.estimates, self.units, strict=True):
            cells = []
            for method, intervals in self.intervals.items():
                interval = intervals.get(label)
                star = "*" if self.trusted[label] == method else ""
                cells.append("-" if interval is None else interval_text(interval) + star)
            rows.append((label, estimate, *cells, unit))
        return rows

    def to_markdown(self) -> str:
        """Return the table and the reason for the choice as Markdown."""
        heading, *rows = self.rows()
        lines = [f"| {' | '.join(heading)} |", "|---" * len(heading) + "|"]
        lines += [f"| {' | '.join(row)} |" for row in rows]
        return "\n".join([*lines, "", self._legend]) + "\n"

    @property
    def _legend(self) -> str:
        return f"{100 * self.level:g} % intervals; use those with a star: {self.reason}."

    def __repr__(self) -> str:
        rows = self.rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        return "\n".join([*lines, self._legend])


def interval_table(
    fit: Fit,
    *,
    profiles: Iterable[Profile] = (),
    bootstrap: Bootstrap | None = None,
    posterior: Posterior | None = None,
    level: float = LEVEL,
) -> IntervalTable:
    """Return the intervals of a fit by all methods side by side, and which one to trust.

    If tests reject that the residuals are white, the bootstrap of blocks or runs is trusted, else
    the sandwich covariance. Otherwise the profile, or the posterior without warnings, is trusted
    for a parameter where it differs from the linearised interval by a tenth of the width.

    ```python
    table = rj.identification.interval_table(
        fit,
        profiles=[fit.profile(name) for name in fit.labels],
        bootstrap=rj.identification.bootstrap(fit, 500, jax.random.key(0), "block"),
        posterior=fit.posterior(jax.random.key(1)),
    )
    print(table)
    ```

    **Arguments:** `fit`; `profiles` of any of its estimates, at this level; `bootstrap` and
    `posterior` of the same fit; `level`, the probability, in (0, 1).
    **Errors:** `ValueError` for results of another fit or level.
    """
    profiles = tuple(profiles)
    for name, labels in (
        ("bootstrap", fit.labels if bootstrap is None else bootstrap.labels),
        ("posterior", fit.labels if posterior is None else posterior.labels),
    ):
        if labels != fit.labels:
            raise ValueError(
                f"`interval_table({name}=...)` must be of the same fit, with the estimates "
                f"{fit.labels}; got {labels}."
            )
    for profile in profiles:
        if profile.label not in fit.labels or profile.level != level:
            raise ValueError(
                f"`interval_table(profiles=...)` takes profiles of {fit.labels} at the level "
                f"{level:g}; got one of {profile.label!r} at {profile.level:g}."
            )
    intervals: dict[str, Intervals] = {}
    for method, covariance in fit.covariances.items():
        half = covariance.quantile(level) * covariance.std
        ends = zip((fit.values - half).tolist(), (fit.values + half).tolist(), strict=True)
        intervals[_LINEARISED[method]] = dict(zip(fit.labels, ends, strict=True))
    linearised = _LINEARISED[fit.method]
    intervals[linearised] = fit.confidence_intervals(level)
    if profiles:
        intervals["profile"] = {p.label: p.interval for p in profiles}
    resampled = "" if bootstrap is None else f"bootstrap ({bootstrap.kind})"
    if bootstrap is not None:
        intervals[resampled] = bootstrap.intervals(level)
    if posterior is not None:
        intervals["posterior"] = posterior.intervals(level)
    tests = {
        f"{sensor} {c}": test
        for sensor, channels in fit.whiteness.items()
        for c, test in channels.items()
    }
    if rejected_channels(tests):
        keeps_dependence = bootstrap is not None and bootstrap.kind in ("block", "runs")
        sandwiches = [m for m in (fit.method, *fit.covariances) if m != "model"]
        method = _LINEARISED[sandwiches[0]] if sandwiches else linearised
        method = resampled if keeps_dependence else method
        trusted = dict.fromkeys(fit.labels, method)
        reason = "the residuals are not white, and it allows for their dependence"
        if method == "linearised":
            reason = (
                "the residuals are not white, and none of these allows for their dependence; fit "
                'with covariance="sandwich"'
            )
    else:
        exact = ["profile"] if profiles else []
        exact += ["posterior"] if posterior is not None and not posterior.warnings else []
        trusted = {label: _choose(label, intervals, linearised, exact) for label in fit.labels}
        reason = "the residuals are white, and it follows curvature and bounds where they matter"
        if set(trusted.values()) == {linearised}:
            reason = "the residuals are white"
            reason += ", and the model is nearly linear over the intervals" if exact else ""
    return IntervalTable(
        labels=fit.labels,
        units=fit.units,
        estimates=tuple(estimate_text(v, fit.std[k]) for k, v in fit.estimates.items()),
        level=level,
        intervals=intervals,
        trusted=trusted,
        reason=reason,
    )


_LINEARISED = {
    "model": "linearised",
    "hac": "sandwich (hac)",
    "cluster": "sandwich (cluster)",
}


def _choose(label: str, intervals: dict[str, Intervals], linearised: str, exact: list[str]) -> str:
    """Return the first exact method whose interval of a parameter differs from the linearised."""
    low, high = intervals[linearised][label]
    for method in exact:
        if label not in intervals[method]:
            continue
        other = intervals[method][label]
        if not max(abs(other[0] - low), abs(other[1] - high)) <= _DIFFERENT * (high - low):
            return method
    return linearised
