"""Intervals of the same estimates by several methods, and which one to trust."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...io.document import Paragraph, Table, estimate_text, interval_text, to_markdown, to_plain
from ..intervals.posterior import Posterior
from ..intervals.profile import Profile
from ..statistics.verdict import METHOD_NAMES, rejected_channels
from .result import LEVEL, Fit

# Smallest difference of the ends of two intervals, relative to the width, that counts.
_DIFFERENT = 0.1

Intervals = dict[str, tuple[float, float]]


@dataclasses.dataclass(frozen=True, repr=False)
class IntervalTable:
    """Intervals of all estimates by several methods.

    **Attributes:** `labels`, `units`, `estimates`, of the parameters, with standard deviations in
    the text; `level`, the probability of the intervals; `intervals`: by method, then by label;
    `trusted`: for each label the method to use; `reason` for the choice.
    """

    labels: tuple[str, ...]
    units: tuple[str, ...]
    estimates: tuple[str, ...]
    level: float
    intervals: dict[str, Intervals]
    trusted: dict[str, str]
    reason: str

    @property
    def trusted_intervals(self) -> Intervals:
        """The interval to use, by label."""
        return {label: self.intervals[self.trusted[label]][label] for label in self.labels}

    @property
    def table(self) -> Table:
        """A row for each estimate; the interval to trust has a star."""
        rows = []
        for label, estimate, unit in zip(self.labels, self.estimates, self.units, strict=True):
            cells = []
            for method, intervals in self.intervals.items():
                interval = intervals.get(label)
                star = "*" if self.trusted[label] == method else ""
                cells.append("-" if interval is None else interval_text(interval) + star)
            rows.append((label, estimate, *cells, unit))
        return Table(("parameter", "estimate", *self.intervals, "unit"), rows)

    def to_record(self) -> dict[str, Any]:
        """Return the intervals by method and parameter as plain values for JSON.

        Ends that are not finite become strings.
        """
        names = ("level", "intervals", "trusted", "reason")
        return to_plain({name: getattr(self, name) for name in names})

    def to_markdown(self) -> str:
        """Return the table and the reason for the choice as Markdown."""
        return to_markdown([self.table, Paragraph(self.legend)])

    @property
    def legend(self) -> str:
        """Which intervals to use, and why, in a sentence."""
        return f"{100 * self.level:g} % intervals; use those with a star: {self.reason}."

    def __repr__(self) -> str:
        return f"{self.table}\n{self.legend}"


def interval_table(
    fit: Fit,
    *,
    profiles: Iterable[Profile] = (),
    posterior: Posterior | None = None,
    level: float = LEVEL,
) -> IntervalTable:
    """Return the intervals of a fit by all methods side by side, and which one to trust.

    If tests reject that the residuals are white, the sandwich covariance is trusted. Otherwise the
    profile, or the posterior without warnings, is trusted for a parameter where it differs from
    the linearised interval by a tenth of the width.

    ```python
    table = rj.identification.interval_table(
        fit,
        profiles=[fit.profile(name) for name in fit.labels],
        posterior=fit.posterior(jax.random.key(1)),
    )
    print(table)
    ```

    **Arguments:** `fit`, with the estimates; `profiles`, of any of its estimates, at this level;
    `posterior`, of the same fit; `level`, the probability, in (0, 1).
    **Errors:** `ValueError` for results of another fit or level.
    """
    profiles = tuple(profiles)
    _check_same_fit(fit, profiles, posterior, level)
    intervals = _linearised_intervals(fit, level)
    exact = []
    if profiles:
        exact.append("profile")
        intervals["profile"] = {p.label: p.interval for p in profiles}
    if posterior is not None:
        exact += [] if posterior.warnings else ["posterior"]
        intervals["posterior"] = posterior.intervals(level)
    tests = {f"{s} {c}": test for s, tests in fit.whiteness.items() for c, test in tests.items()}
    if rejected_channels(tests):
        method, reason = _choose_under_dependence(fit)
        trusted = dict.fromkeys(fit.labels, method)
    else:
        trusted, reason = _choose_for_white(fit, intervals, exact)
    return IntervalTable(
        labels=fit.labels,
        units=fit.units,
        estimates=tuple(estimate_text(v, fit.std[k]) for k, v in fit.estimates.items()),
        level=level,
        intervals=intervals,
        trusted=trusted,
        reason=reason,
    )


def _check_same_fit(
    fit: Fit, profiles: Sequence[Profile], posterior: Posterior | None, level: float
) -> None:
    """Raise `ValueError` for results of another fit or level."""
    if posterior is not None and posterior.labels != fit.labels:
        raise ValueError(
            "`interval_table(posterior=...)` must be of the same fit, with the estimates "
            f"{fit.labels}; got {posterior.labels}."
        )
    for profile in profiles:
        if profile.label not in fit.labels or profile.level != level:
            raise ValueError(
                f"`interval_table(profiles=...)` accepts profiles of {fit.labels} at the level "
                f"{level:g}; got one of {profile.label!r} at {profile.level:g}."
            )


def _linearised_intervals(fit: Fit, level: float) -> dict[str, Intervals]:
    """Return the intervals by each covariance of the fit; those that it uses respect bounds."""
    intervals: dict[str, Intervals] = {}
    for method, covariance in fit.covariances.items():
        half = covariance.quantile(level) * covariance.std
        ends = zip((fit.values - half).tolist(), (fit.values + half).tolist(), strict=True)
        intervals[METHOD_NAMES[method]] = dict(zip(fit.labels, ends, strict=True))
    return intervals | {METHOD_NAMES[fit.method]: fit.confidence_intervals(level)}


def _choose_under_dependence(fit: Fit) -> tuple[str, str]:
    """Return the method to trust where residuals are not white, and why."""
    sandwiches = [m for m in (fit.method, *fit.covariances) if m != "model"]
    if not sandwiches:
        return METHOD_NAMES[fit.method], (
            "the residuals are not white, and none of these allows for their dependence; fit with "
            'covariance="sandwich"'
        )
    return METHOD_NAMES[sandwiches[0]], (
        "the residuals are not white, and it allows for their dependence"
    )


def _choose_for_white(
    fit: Fit, intervals: Mapping[str, Intervals], exact: Sequence[str]
) -> tuple[dict[str, str], str]:
    """Return for each label the method to trust where residuals are white, and why.

    **Arguments:** `exact`, methods without linearisation, the preferred one first.
    """
    linearised = METHOD_NAMES[fit.method]
    trusted = {label: _choose(label, intervals, linearised, exact) for label in fit.labels}
    if set(trusted.values()) != {linearised}:
        return trusted, (
            "the residuals are white, and it follows curvature and bounds where they matter"
        )
    reason = "the residuals are white"
    return trusted, reason + (
        ", and the model is nearly linear over the intervals" if exact else ""
    )


def _choose(
    label: str, intervals: Mapping[str, Intervals], linearised: str, exact: Sequence[str]
) -> str:
    """Return the first exact method whose interval of a parameter differs from the linearised."""
    low, high = intervals[linearised][label]
    for method in exact:
        if label not in intervals[method]:
            continue
        other = intervals[method][label]
        if not max(abs(other[0] - low), abs(other[1] - high)) <= _DIFFERENT * (high - low):
            return method
    return linearised
