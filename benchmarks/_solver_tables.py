"""Tables about the implicit solvers: peers, linear systems, derivatives."""

from collections.abc import Callable

import _common as common
from _tables import measured, table
from peers import ratios, with_seconds


def peers_table() -> str:
    """Implicit solvers: work at equal error over that of the peers, and how much faster."""
    rows = common.read("peers")
    found = ratios(rows)
    errors = sorted({f["error"] for f in found}, reverse=True)
    body = []
    for case, against in dict.fromkeys((f["case"], f["against"]) for f in found):
        group = {f["error"]: f for f in found if (f["case"], f["against"]) == (case, against)}
        cells = [
            f"{group[e]['num_rhs']:.2f}; {1 / group[e]['seconds']:.0f}" if e in group else ""
            for e in errors
        ]
        body.append([f"{case}; {against}", *cells])
    header = ["case; against", *(f"{e:.0e}" for e in errors)]
    return table(header, body) + "\n\n" + measured(rows)


def peer_runs_table() -> str:
    """The runs behind it, at three tolerances."""
    body = []
    for r in common.read("peers"):
        if r["tolerance"] not in (1e-4, 1e-7, 1e-10):
            continue
        steps = "" if r["num_steps"] is None else str(r["num_steps"])
        body.append(
            [
                f"{r['case']}; {r['program']} {r['method']}; {r['tolerance']:.0e}",
                f"{r['error']:.1e}" if r["successful"] else "failed",
                steps,
                str(r["num_rhs"]),
                "" if r["num_jacobians"] is None else str(r["num_jacobians"]),
                f"{1e3 * with_seconds(r)['seconds']:.3g}",
            ]
        )
    return table(["case; solver; tolerance", "error", "steps", "rhs", "Jacobians", "ms"], body)


def linear_table() -> str:
    """Times of the same runs by linear solver."""
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
    return table(head, body) + "\n\n" + measured(rows)


def gradient_cost_table() -> str:
    """Derivatives in units of a run."""
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
    return table(head, body) + "\n\n" + measured(rows)


def gradient_memory_table() -> str:
    """Buffers of compiled runs and gradients."""
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
    """Errors of gradients through the solvers of this package."""
    rows = common.read("solver_gradients")
    body = [
        [
            f"{row['case']}; {row['solver']} at {row['tolerance']:.0e}; {row['mode']}",
            f"{row['relative_error']:.1e}",
            f"{row['worst_entry']:.1e}",
        ]
        for row in rows
    ]
    head = ["case; solver; mode", "relative error", "worst entry"]
    return table(head, body) + "\n\n" + measured(rows)


SOLVER_TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "peers": ("peers", peers_table),
    "peer_runs": ("peers", peer_runs_table),
    "linear_solvers": ("linear_solvers", linear_table),
    "gradient_cost": ("gradient_cost", gradient_cost_table),
    "gradient_memory": ("gradient_cost", gradient_memory_table),
    "solver_gradients": ("solver_gradients", solver_gradient_table),
}
