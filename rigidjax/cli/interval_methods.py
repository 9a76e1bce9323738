"""Intervals of a fit by the methods that a case or the command line requests."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from rich.console import Console
from rich.markup import escape

from ..identification import Fit, IntervalTable, Posterior, Profile, interval_table
from .case.intervals import IntervalMethods
from .progress import show_spinner


class Intervals(NamedTuple):
    """Intervals by all methods, and why the failed ones failed."""

    table: IntervalTable
    profiles: list[Profile]
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
    posterior = None
    if methods.posterior:
        key = jax.random.key(methods.seed)
        sampled = attempt("posterior", fit.posterior, key, methods.posterior)
        posterior = sampled[0] if sampled else None
    table = interval_table(fit, profiles=profiles, posterior=posterior)
    return Intervals(table, profiles, posterior, failures)


def print_intervals(target: Console, computed: Intervals) -> None:
    """Print the intervals by all methods side by side, and the results of each method."""
    found = (*computed.profiles, computed.posterior)
    results = [result for result in found if result is not None]
    if results:
        target.print(escape(repr(computed.table)), soft_wrap=True)
    for result in results:
        target.print(escape(repr(result)), soft_wrap=True)
