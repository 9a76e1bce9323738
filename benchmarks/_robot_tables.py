"""Tables of the speed of robots and chains against Pinocchio, MuJoCo and Exudyn."""

import math
from collections.abc import Callable
from typing import Any

import _common as common
from _tables import provenance, table
from peers import work_at


def robot_table() -> str:
    """Return the table of forward dynamics of robots against Pinocchio."""
    rows = common.read("robots")
    keys = ("batch_us", "single_us", "inside_us", "pinocchio_us")
    keys += ("batch_ratio", "single_ratio", "inside_ratio")
    body = [[r["case"], str(r["rates"]), *(f"{r[key]:.2f}" for key in keys)] for r in rows]
    header = ["robot", "rates", "in a batch, us", "a call, us", "in a loop, us"]
    header += ["`pinocchio.aba`, us"]
    header += [f"{name} : Pinocchio" for name in ("batch", "call", "loop")]
    return table(header, body) + "\n\n" + provenance(rows)


def robot_runs_table() -> str:
    """Return the table of processor times at equal error against MuJoCo."""
    rows = [r for r in common.read("robot_runs") if "successful" in r]
    body = []
    for case in dict.fromkeys(r["case"] for r in rows):
        mine = [r for r in rows if r["case"] == case]
        groups = {
            "simulate": [r for r in mine if r["method"].startswith("simulate")],
            "kernel": [r for r in mine if r["method"].startswith("a step")],
            "peer": [r for r in mine if r["program"] != "rigidjax"],
        }
        errors = [r["error"] for r in groups["peer"]]
        first, last = (math.floor(math.log10(value)) for value in (max(errors), min(errors)))
        for exponent in range(first, last, -1):
            error = 10.0**exponent
            times = {name: _time_at(group, error) for name, group in groups.items() if group}
            ratios = [
                f"{times[name] / times['peer']:.2f}" if name in times else ""
                for name in ("simulate", "kernel")
            ]
            cells = [f"{1e6 * times[name]:.3g}" if name in times else "" for name in groups]
            body.append([case, f"{error:.0e}", *cells, *ratios])
    header = ["case", "error, rad/s", "`simulate`, us", "a step in a kernel, us", "MuJoCo, us"]
    header += ["`simulate` : MuJoCo", "kernel : MuJoCo"]
    return table(header, body) + "\n\n" + provenance(rows)


def _time_at(rows: list[dict[str, Any]], error: float) -> float:
    """Return the time for an error; for errors above those of all runs, the least time."""
    if error > max(r["error"] for r in rows):
        return min(r["seconds"] for r in rows)
    return work_at(rows, "seconds", error)


def alpha_table() -> str:
    """Return the table of times of a step of the generalised-alpha method against Exudyn."""
    rows = [r for r in common.read("robot_runs") if r["case"].startswith("generalised alpha")]
    body = []
    for case in dict.fromkeys(r["case"] for r in rows):
        mine = [r for r in rows if r["case"] == case]
        ours = next(r for r in mine if r["program"] == "rigidjax")
        for row in mine:
            ratio = "" if row is ours else f"{ours['seconds'] / row['seconds']:.2f}"
            first = f"{row['first_seconds']:.1f}" if row is ours else ""
            cells = [f"{1e3 * row['seconds']:.3g}", f"{row['error']:.1e}", ratio, first]
            body.append([case, row["method"], *cells])
    header = ["case", "program", "a step, ms", "error, m", "rigidjax : Exudyn", "first call, s"]
    return table(header, body) + "\n\n" + provenance(rows)


def first_run_table() -> str:
    """Return the table of processor times of a first simulation in a new process."""
    rows = [r for r in common.read("robot_runs") if r["case"].startswith("first simulation")]
    keys = ("import_seconds", "load_seconds", "simulate_seconds", "wall_seconds")
    body = [
        [r["case"], str(r["bodies"]), r["kernels"], *(f"{r[key]:.1f}" for key in keys)]
        for r in rows
    ]
    header = ["case", "bodies", "kernels", "import, s", "load, s", "simulate, s", "wall time, s"]
    return table(header, body)


ROBOT_TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "robots": ("robots", robot_table),
    "robot_runs": ("robot_runs", robot_runs_table),
    "alpha": ("robot_runs", alpha_table),
    "first_run": ("robot_runs", first_run_table),
}
