"""Figures from the rows of the benchmarks."""

from collections.abc import Callable
from typing import Any

import _common as common
import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
from _conservation_figures import CONSERVATION
from _form_figures import sherif_figure
from _solution_figures import SOLUTIONS
from matplotlib.figure import Figure
from work_precision import SIX


def work() -> list[dict[str, Any]]:
    """Return the rows of explicit and implicit solvers."""
    names = ("work_precision", "work_precision_implicit")
    measured = [name for name in names if (common.RESULTS / f"{name}.json").exists()]
    return [row for name in measured for row in common.read(name)]


def throughputs() -> list[str]:
    return sorted(path.stem for path in common.RESULTS.glob("throughput*.json"))


def step_figure(case: str) -> Figure:
    """Draw step sizes over time."""
    figure, axes = plt.subplots(figsize=(7, 3.5))
    for row in common.read("step_sizes"):
        if row["case"] == case:
            name = row["formulation"]
            axes.semilogy(row["ts"], row["steps"], color=common.COLORS[name], lw=0.9, label=name)
    axes.set(xlabel="t / s", ylabel="step / s", title=f"Example {case}, Dopri5 at 1e-6")
    axes.legend(fontsize=7, ncols=2)
    return figure


def energy_figure() -> Figure:
    """Draw the relative change of the energy over time, with and without projection."""
    rows = common.read("energy")
    tolerances = sorted({r["tolerance"] for r in rows}, reverse=True)
    figure, grid = plt.subplots(2, len(tolerances), figsize=(9, 5.5), sharex=True, squeeze=False)
    for row in rows:
        name = row["formulation"]
        # Euler angles satisfy no constraint, so that both rows show one curve.
        for line in (0, 1) if name == "Euler angles" else (int(not row["projection"]),):
            axes = grid[line, tolerances.index(row["tolerance"])]
            change = [abs(e) for e in row["energy_change"]]
            axes.semilogy(row["ts"][1:], change[1:], color=common.COLORS[name], lw=1, label=name)
    for line, setting in enumerate(("projected", "not projected")):
        for column, tolerance in enumerate(tolerances):
            grid[line, column].set_title(f"Dopri5 at {tolerance:.0e}, {setting}", fontsize=9)
        grid[line, 0].set_ylabel("relative energy change")
    for axes in grid[1]:
        axes.set_xlabel("t / s")
    grid[0, 0].legend(fontsize=7)
    return figure


def work_figure(panels: list[tuple[str, str]], rows: list[dict[str, Any]]) -> Figure:
    """Draw error against evaluations, one panel per case and solver."""
    figure, grid = plt.subplots(1, len(panels), figsize=(3.6 * len(panels), 3.6), squeeze=False)
    for axes, (case, solver) in zip(grid[0], panels, strict=True):
        for name in common.FORMULATIONS:
            for projection, style in ((True, "o-"), (False, "x--")):
                line = [
                    r
                    for r in rows
                    if (r["case"], r["solver"], r["formulation"], r["projection"])
                    == (case, solver, name, projection)
                ]
                if line:
                    axes.loglog(
                        [r["num_rhs"] for r in line],
                        [r["error"] for r in line],
                        style,
                        color=common.COLORS[name],
                        lw=1,
                        ms=3.5,
                        label=name if projection else None,
                    )
        axes.set(xlabel="evaluations", title=f"{case}: {solver}")
    grid[0, 0].set_ylabel("error at the end (dashed: not projected)")
    grid[0, 0].legend(fontsize=6)
    figure.tight_layout()
    return figure


def _implicit_panels() -> list[tuple[str, str]]:
    return list(
        dict.fromkeys((r["case"], r["solver"]) for r in common.read("work_precision_implicit"))
    )


def throughput_figure() -> Figure:
    """Draw steps per second against batch size."""
    figure, axes = plt.subplots(figsize=(6, 3.6))
    rows = [r for name in throughputs() for r in common.read(name)]
    for device, dtype in dict.fromkeys((r["device"], r["dtype"]) for r in rows):
        line = [r for r in rows if (r["device"], r["dtype"]) == (device, dtype)]
        axes.loglog(
            [r["batch"] for r in line],
            [r["steps_per_second"] for r in line],
            "o-",
            ms=4,
            label=f"{device}, {dtype}",
        )
    axes.set(xlabel="tops at once", ylabel="steps per second")
    axes.legend(fontsize=8)
    return figure


def drift_figure() -> Figure:
    """Draw the drift of position and velocity over time."""
    figure, grid = plt.subplots(1, 2, figsize=(9, 3.8))
    for axes, name, unit in zip(grid, ("position", "velocity"), ("g", "dg/dt"), strict=True):
        for row in common.read("drift"):
            drift = [max(x, 1e-16) for x in row[f"{name}_drift"]]
            axes.semilogy(row["ts"], drift, lw=1, label=row["formulation"])
        axes.set(xlabel="t / s", title=f"largest {unit} so far")
    grid[1].legend(fontsize=6)
    figure.tight_layout()
    return figure


def six_figure(case: str) -> Figure:
    """Draw error against evaluations of one example, one panel per solver."""
    return work_figure([(case, solver) for solver in SIX], common.read("six_solvers"))


def lie_group_figure() -> Figure:
    """Draw the error of the attitude against the step, and against the run time."""
    rows = common.read("lie_group")
    cases = list(dict.fromkeys(r["case"] for r in rows))
    styles = dict(zip(dict.fromkeys(r["method"] for r in rows), (":", "-", "--"), strict=False))
    colors = {form: f"C{i}" for i, form in enumerate(dict.fromkeys(r["form"] for r in rows))}
    figure, grid = plt.subplots(2, len(cases), figsize=(9, 6), sharey=True, squeeze=False)
    for column, case in enumerate(cases):
        for method, style in styles.items():
            for form, color in colors.items():
                points = [
                    (r["step"], r["step_seconds"] / r["step"], r["error"])
                    for r in rows
                    if (r["case"], r["method"], r["form"]) == (case, method, form)
                ]
                steps, cost, errors = zip(*points, strict=True)
                label = f"{method}, {form}"
                grid[0, column].loglog(steps, errors, style, color=color, lw=0.9, label=label)
                grid[1, column].loglog(cost, errors, style, color=color, lw=0.9)
        grid[0, column].set(title=case, xlabel="step / s")
        grid[1, column].set(xlabel="run time / simulated time")
    for line in grid:
        line[0].set(ylabel="error of the rotation matrix")
    grid[0, 0].legend(fontsize=5)
    figure.tight_layout()
    return figure


def peers_figure() -> Figure:
    """Draw error against time of every program, one panel per case."""
    rows = [r for r in common.read("peers") if r["successful"]]
    cases = list(dict.fromkeys(r["case"] for r in rows))
    figure, grid = plt.subplots(2, -(-len(cases) // 2), figsize=(15, 6.5), squeeze=False)
    names = list(dict.fromkeys((r["program"], r["method"]) for r in rows))
    for axes, case in zip(grid.flat, cases, strict=False):
        for i, (program, method) in enumerate(names):
            key = (case, program, method)
            line = [r for r in rows if (r["case"], r["program"], r["method"]) == key]
            if line:
                style = "o-" if program == "rigidjax" else "x--"
                axes.loglog(
                    [1e3 * r["run_seconds"] for r in line],
                    [r["error"] for r in line],
                    style, color=f"C{i}", lw=1, ms=3.5, label=f"{program} {method}",
                )  # fmt: skip
        axes.set(title=case)
        axes.legend(fontsize=5)
    for axes in list(grid.flat)[len(cases) :]:
        axes.remove()
    for axes in grid[-1]:
        axes.set(xlabel="ms")
    for line in grid:
        line[0].set(ylabel="error at the end")
    figure.tight_layout()
    return figure


FIGURES: dict[str, tuple[str, Callable[[], Figure]]] = {
    "lie_group": ("lie_group", lie_group_figure),
    "figure_08_step_sizes_A": ("step_sizes", lambda: step_figure("A")),
    "figure_09_step_sizes_B": ("step_sizes", lambda: step_figure("B, 0.1")),
    "figure_10_energy": ("energy", energy_figure),
    "figure_13_explicit_A": (
        "work_precision",
        lambda: work_figure([("A", s) for s in ("Dopri5", "Dopri8", "Tsit5")], work()),
    ),
    "figure_14_implicit_A": (
        "work_precision_implicit",
        lambda: work_figure(_implicit_panels(), work()),
    ),
    "figure_15_B": (
        "work_precision",
        lambda: work_figure([("B, 0.1", "Dopri5"), ("B, 1e-5", "Dopri5")], work()),
    ),
    "figure_16_C": (
        "two_bodies",
        lambda: work_figure(
            [
                (case, solver)
                for case in ("C, 1 s", "C slow, 4 s")
                for solver in ("Dopri5", "Dopri8")
            ],
            common.read("two_bodies"),
        ),
    ),
    "figure_06_drift": ("drift", drift_figure),
    "six_solvers_A": ("six_solvers", lambda: six_figure("A")),
    "six_solvers_B": ("six_solvers", lambda: six_figure("B, 0.1")),
    "six_solvers_C": ("six_solvers", lambda: six_figure("C slow, 4 s")),
    "throughput": ("throughput", throughput_figure),
    "peers": ("peers", peers_figure),
    **CONSERVATION,
    **SOLUTIONS,
    "sherif": ("sherif", sherif_figure),
}
