"""Tables that rank combinations of formulation and solver."""

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import _common as common
from _tables import provenance, table
from peers import front, work_at

ERRORS = (1e-4, 1e-6, 1e-8)
KEYS = ("cpu_seconds", "num_rhs")
# A combination that does not reach an error is ranked as this multiple of the slowest that does.
PENALTY = 2.0


class Work(NamedTuple):
    """Least work of a combination for an error; `is_bound` if its cheapest run is more accurate."""

    value: float
    is_bound: bool


def find_work(rows: list[dict[str, Any]], key: str, error: float) -> Work | None:
    """Return the least work of several runs for an error, interpolated on logarithmic scales;
    `None` if no run reaches it.
    """
    runs = [r for r in rows if "unsupported" not in r]
    errors, work = front(runs, key)
    if not len(errors) or error < errors[0]:
        return None
    value = work_at(runs, key, error)
    return Work(float(work[-1]), True) if math.isnan(value) else Work(value, False)


class Board(NamedTuple):
    """Work by problem, error, combination and kind, and the pairs that are not supported.

    **Attributes:** `work[key][case, error][combination]`, with entries for the combinations that
    reach the error; `unsupported`, pairs (case, combination); `names` of all combinations; `rows`.
    """

    work: dict[str, dict[tuple[str, float], dict[str, Work]]]
    unsupported: set[tuple[str, str]]
    names: list[str]
    rows: list[dict[str, Any]]


def make_board(rows: list[dict[str, Any]]) -> Board:
    """Return the work of all combinations from the rows of `leaderboard.py`."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["case"], row["combination"]), []).append(row)
    work: dict[str, dict[tuple[str, float], dict[str, Work]]] = {key: {} for key in KEYS}
    for key in KEYS:
        for (case, name), group in groups.items():
            for error in ERRORS:
                least = find_work(group, key, error)
                cell = work[key].setdefault((case, error), {})
                if least is not None:
                    cell[name] = least
    unsupported = {pair for pair, group in groups.items() if "unsupported" in group[0]}
    return Board(work, unsupported, list(dict.fromkeys(r["combination"] for r in rows)), rows)


def mean_ratio(
    cells: Iterable[dict[str, Work]], name: str, penalty: float | None = PENALTY
) -> float:
    """Return the geometric mean of the work of a combination over the least work of each cell.

    **Arguments:** `cells`, one per problem and error, of which empty ones are ignored; `penalty`,
    see `PENALTY`, or `None` to omit the cells that the combination does not reach.
    **Returns:** the mean, NaN without a cell.
    """
    logarithms = []
    for cell in cells:
        values = [work.value for work in cell.values()]
        if name in cell:
            logarithms.append(math.log(cell[name].value / min(values)))
        elif values and penalty is not None:
            logarithms.append(math.log(penalty * max(values) / min(values)))
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else math.nan


def format_ratio(ratio: float) -> str:
    """Return a ratio with three digits, or a dash for NaN."""
    return "-" if math.isnan(ratio) else f"{ratio:.3g}" if ratio < 1000 else f"{ratio:,.0f}"


def ranking_table() -> str:
    """Return the table of all combinations, the best first."""
    board = make_board(common.read("leaderboard"))
    times, evaluations = (board.work[key] for key in KEYS)
    single = {r["case"] for r in board.rows if r["bodies"] == 1}
    reachable = [pair for pair, cell in times.items() if cell]
    parts = {
        "all": list(times.values()),
        "one body": [cell for (case, _), cell in times.items() if case in single],
        "joints": [cell for (case, _), cell in times.items() if case not in single],
    }
    order = sorted(board.names, key=lambda name: mean_ratio(parts["all"], name))
    body = []
    for rank, name in enumerate(order, 1):
        num_unsupported = sum(pair[1] == name for pair in board.unsupported)
        body.append(
            [f"{rank}. {name}"]
            + [format_ratio(mean_ratio(cells, name)) for cells in parts.values()]
            + [
                format_ratio(mean_ratio(cells.values(), name, None))
                for cells in (times, evaluations)
            ]
            + [f"{sum(name in times[pair] for pair in reachable)} of {len(reachable)}"]
            + [str(num_unsupported) if num_unsupported else ""]
        )
    header = [
        "combination", *(f"time, {part}" for part in parts), "time where reached",
        "evaluations where reached", "reached", "problems not supported",
    ]  # fmt: skip
    return table(header, body) + "\n\n" + provenance(board.rows)


def format_cell(board: Board, case: str, error: float, name: str) -> str:
    """Return the evaluations and milliseconds of a combination for an error, or why not."""
    if (case, name) in board.unsupported:
        return "not supported"
    evaluations, seconds = (board.work[k][case, error].get(name) for k in reversed(KEYS))
    if evaluations is None or seconds is None:
        return "not reached"
    sign = "≤ " if evaluations.is_bound else ""
    return f"{sign}{evaluations.value:,.0f}; {1e3 * seconds.value:.3g}"


def cases_table() -> str:
    """Return one table per problem: evaluations and milliseconds for each error."""
    board = make_board(common.read("leaderboard"))
    parts = []
    for case in dict.fromkeys(r["case"] for r in board.rows):
        row = next(r for r in board.rows if r["case"] == case)
        cells = [board.work[KEYS[0]][case, error] for error in ERRORS]
        order = sorted(board.names, key=lambda name: mean_ratio(cells, name))
        body = [[name, *(format_cell(board, case, e, name) for e in ERRORS)] for name in order]
        header = ["combination", *(f"error {error:.0e}" for error in ERRORS)]
        parts.append(f"### `{case}`\n\nReference: {row['reference']}.\n\n{table(header, body)}")
    return "\n\n".join(parts)


LEADERBOARD_TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "leaderboard": ("leaderboard", ranking_table),
    "leaderboard_cases": ("leaderboard", cases_table),
}
