"""Intervals of a fit by the methods that a case or the command line requests."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from rich.console import Console
from rich.markup import escape

from ..identification import (
    Bootstrap,
    Fit,
    IntervalTable,
    Posterior,
    Profile,
    bootstrap,
    interval_table,
)
from ..identification.intervals.side_by_side import rejects_whiteness
from .case.intervals import IntervalMethods
from .progress import show_spinner


class Intervals(NamedTuple):
    """Intervals by all methods, and why the failed ones failed."""

    table: IntervalTable
    profiles: list[Profile]
    bootstrap: Bootstrap | None
    posterior: Posterior | None
    failures: list[str]


def compute_intervals(fit: Fit, methods: IntervalMethods) -> Intervals:
    """Compute the intervals of a fit; a method that fails is reported and left out."""
    failures: list[str] = []

    def attempt(name: str, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        try:
            with show_spinner(name):
                return [function(*arguments)]
        except (ValueError, RuntimeError, ImportError) as error:
            failures.append(f"{name}: {error}")
            return []

    names = fit.labels if methods.profile is None else tuple(dict.fromkeys(methods.profile))
    profiles = [p for name in names for p in attempt(f"profile of {name}", fit.profile, name)]
    key, (resampled, sampled) = jax.random.key(methods.seed), ([], [])
    if methods.bootstrap:
        kind = methods.kind or ("block" if rejects_whiteness(fit) else "residual")
        arguments = fit, methods.bootstrap, key, kind
        resampled = attempt(f"bootstrap ({kind})", bootstrap, *arguments)
    if methods.posterior:
        sampled = attempt("posterior", fit.posterior, key, methods.posterior)
    spread, posterior = (found[0] if found else None for found in (resampled, sampled))
    table = interval_table(fit, profiles=profiles, bootstrap=spread, posterior=posterior)
    return Intervals(table, profiles, spread, posterior, failures)


def print_intervals(target: Console, computed: Intervals) -> None:
    """Print the intervals by all methods side by side, and the results of each method."""
    results = [*computed.profiles, computed.bootstrap, computed.posterior]
    results = [result for result in results if result is not None]
    if results:
        target.print(escape(repr(computed.table)), soft_wrap=True)
    for result in results:
        target.print(escape(repr(result)), soft_wrap=True)
