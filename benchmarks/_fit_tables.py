"""Tables about fits: coverage of their intervals, and their time."""

from collections.abc import Callable

import _common as common
from _tables import provenance, table


def statistics_table() -> str:
    """Return the table of coverage and errors of many fits."""
    rows = [r for r in common.read("fits") if "coverage" in r]
    body = []
    for r in rows:
        low, high = min(r["coverage"]), max(r["coverage"])
        errors = r["error_over_bound"]
        body.append(
            [
                r["case"].removeprefix("statistics, "),
                str(r["fits"]),
                str(r["converged"]),
                f"{100 * low:.1f} to {100 * high:.1f}",
                f"{min(errors):.3f} to {max(errors):.3f}",
                str(r["iterations_max"]),
                f"{r['seconds_with_compilation']:.0f}",
            ]
        )
    header = ["data", "fits", "converged", "coverage, %", "error / bound", "iterations", "s"]
    return table(header, body) + "\n\n" + provenance(rows)


def fit_speed_table() -> str:
    """Return the table of times of single fits by rigidjax and SciPy."""
    rows = [r for r in common.read("fits") if "run_seconds" in r]
    body = []
    for r in rows:
        theirs = "scipy_seconds" in r
        body.append(
            [
                r["case"],
                str(r["iterations"]),
                f"{r['first_seconds']:.1f}",
                f"{r['run_seconds']:.3f}",
                f"{r['scipy_seconds']:.2f}" if theirs else "",
                f"{r['scipy_over_run']:.1f}" if theirs else "",
                f"{r['iteration_over_forward']:.1f}" if theirs else "",
            ]
        )
    header = [
        "data", "iterations", "first fit, s", "later, s", "SciPy, s", "SciPy / later",
        "iteration / forward run",
    ]  # fmt: skip
    return table(header, body) + "\n\n" + provenance(rows)


FIT_TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "fit_statistics": ("fits", statistics_table),
    "fit_speed": ("fits", fit_speed_table),
}
