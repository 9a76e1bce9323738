"""Tables about fits: coverage of their intervals, named faults, and their time."""

from collections.abc import Callable

import _common as common
import numpy as np
from _tables import provenance, table


def fit_speed_table() -> str:
    """Return the table of times of single fits by rigidjax and SciPy."""
    rows = common.read("fits")
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


def faults_table() -> str:
    """Return the table of planted faults, by system."""
    rows = common.read("planted_faults")
    body = []
    groups: dict[str, list[dict]] = {}
    for r in rows:
        system = "all, held out" if r["held_out"] else r["case"].split(", ")[0]
        groups.setdefault(system, []).append(r)
    for system, own in groups.items():
        body.append(
            [
                system,
                str(len(own)),
                str(sum(r["named"] for r in own)),
                str(sum(r["signed"] for r in own)),
                ", ".join(r["case"].split(", ", 1)[1] for r in own if not r["named"]),
                f"{np.median([r['report_seconds'] for r in own]):.1f}",
            ]
        )
    header = ["system", "faults", "named", "signed wrongly", "not named", "report, s (median)"]
    return table(header, body) + "\n\n" + provenance(rows)


def coverage_table() -> str:
    """Return the table of coverage by kind of noise and system, in per cent."""
    rows = common.read("interval_coverage")
    systems = list(dict.fromkeys(r["case"] for r in rows))
    found = {(r["noise"], r["case"]): r for r in rows}
    body = []
    for noise in dict.fromkeys(r["noise"] for r in rows):
        cells = []
        for system in systems:
            r = found[noise, system]
            low, high = 100 * min(r["coverage"]), 100 * max(r["coverage"])
            cells.append(f"{low:.1f} to {high:.1f}")
        body.append([noise, *cells])
    return table(["noise", *systems], body) + "\n\n" + provenance(rows)


FIT_TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "fit_speed": ("fits", fit_speed_table),
    "fit_coverage": ("interval_coverage", coverage_table),
    "planted_faults": ("planted_faults", faults_table),
}
