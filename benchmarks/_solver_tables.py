"""Tables about the implicit solvers: peers, linear systems, derivatives."""

from collections.abc import Callable
from typing import Any

import _common as common
from _tables import provenance, table
from peers import ratios


def peers_table() -> str:
    """Return the table of work at equal error over that of the peers, and of the speed-up."""
    rows = common.read("peers")
    found = ratios(rows)
    errors = sorted({f["error"] for f in found}, reverse=True)
    body = []
    for case, against in dict.fromkeys((f["case"], f["against"]) for f in found):
        group = {f["error"]: f for f in found if (f["case"], f["against"]) == (case, against)}
        cells = [
            f"{group[e]['num_rhs']:.2f}; {1 / group[e]['run_seconds']:.0f}" if e in group else ""
            for e in errors
        ]
        body.append([f"{case}; {against}", *cells])
    header = ["case; against", *(f"{e:.0e}" for e in errors)]
    return table(header, body) + "\n\n" + provenance(rows)


def linear_table() -> str:
    """Return the table of run times by linear solver."""
    rows = common.read("linear_solvers")
    body = []
    for case, method in dict.fromkeys((r["case"], r["method"]) for r in rows):
        mine = {r["linear_solver"]: r for r in rows if (r["case"], r["method"]) == (case, method)}
        one = mine["inverse"]
        body.append(
            [f"{case}, {method}", str(one["unknowns"]), str(one["num_steps"])]
            + [f"{1e3 * r['run_seconds_min']:.3g}" for r in mine.values()]
            + [
                f"{one['run_seconds_min'] / r['run_seconds_min']:.2f}"
                for name, r in mine.items()
                if name != "inverse"
            ]
        )
    names = list(dict.fromkeys(r["linear_solver"] for r in rows))
    head = ["case", "unknowns", "steps", *(f"ms: {name}" for name in names)]
    head += [f"inverse / {name}" for name in names if name != "inverse"]
    return table(head, body) + "\n\n" + provenance(rows)


def gradient_cost_table() -> str:
    """Return the table of the cost of derivatives in units of a run."""
    rows = [r for r in common.read("gradient_cost") if "tangent" in r]
    body = [
        [
            row["case"],
            f"{1e3 * row['run_seconds']:.3g}",
            f"{row['tangent']:.2f}",
            f"{row['gradient']:.2f}",
            f"{row['modes_differ_by']:.0e}",
        ]
        for row in rows
    ]
    head = ["case", "run ms", "tangent / run", "gradient / run", "modes differ by"]
    return table(head, body) + "\n\n" + provenance(rows)


def gradient_memory_table() -> str:
    """Return the table of buffers of compiled runs and gradients."""
    rows = [r for r in common.read("gradient_cost") if "gradient_bytes" in r]
    body = [
        [
            f"{row['case'].removeprefix('memory, ')}, {row['steps']:,} steps",
            f"{row['run_bytes'] / 1024:.0f}",
            f"{row['gradient_bytes'] / 1024:.0f}",
            f"{row['gradient']:.2f}",
        ]
        for row in rows
    ]
    return table(["solver", "run KiB", "gradient KiB", "gradient / run"], body)


def solver_gradient_table() -> str:
    """Return the table of errors of gradients through the solvers of this package."""
    rows = common.read("solver_gradients")
    return gradient_errors(rows, lambda r: f"{r['case']}; {r['solver']} at {r['tolerance']:.0e}")


def gradient_errors(rows: list[dict[str, Any]], named: Callable[[dict[str, Any]], str]) -> str:
    """Return the table of errors of both modes, relative to the largest entry and entry by entry,
    and of times.
    """
    modes = ("reverse", "forward")
    timed = all("run_seconds_min" in row for row in rows)
    body = []
    for name in dict.fromkeys(map(named, rows)):
        mine = {r["mode"]: r for r in rows if named(r) == name}
        found = [mine.get(mode) for mode in modes]
        cells = [
            f"{r[key]:.1e}" if r else "" for key in ("relative_error", "worst_entry") for r in found
        ]
        if timed:
            cells += [f"{1e3 * r['run_seconds_min']:.3g}" if r else "" for r in found]
        body.append([name, *cells])
    titles = ["error", "worst entry", *(["run ms"] if timed else [])]
    head = ["case", *(f"{title}, {mode}" for title in titles for mode in modes)]
    return table(head, body) + "\n\n" + provenance(rows)


SOLVER_TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "peers": ("peers", peers_table),
    "linear_solvers": ("linear_solvers", linear_table),
    "gradient_cost": ("gradient_cost", gradient_cost_table),
    "gradient_memory": ("gradient_cost", gradient_memory_table),
    "solver_gradients": ("solver_gradients", solver_gradient_table),
}
