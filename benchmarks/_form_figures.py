"""Tables and figure of Sherif's forms of the equations, and of the forms of QUAT.EM."""

import _common as common
import matplotlib.pyplot as plt
from _tables import provenance, table
from matplotlib.figure import Figure

LEVELS = {1: "accelerations", 2: "velocities", 3: "positions"}


def sherif_table() -> str:
    """Return the table of evaluations and drift of every form, by the level of the constraint."""
    rows = common.read("sherif")
    body = []
    for key in dict.fromkeys((r["case"], r["solver"], r["form"]) for r in rows):
        at = {r["index"]: r for r in rows if (r["case"], r["solver"], r["form"]) == key}
        body.append(
            ["; ".join(key)]
            + [f"{at[level]['num_rhs']:,}" for level in LEVELS]
            + [f"{at[level]['position_drift']:.0e}" for level in LEVELS]
        )
    head = ["case; solver; form"]
    head += [f"{what}: {name}" for what in ("evaluations", "drift") for name in LEVELS.values()]
    return table(head, body) + "\n\n" + provenance(rows)


def sherif_figure() -> Figure:
    """Draw multipliers over time, and work and drift of positions of every form and level."""
    rows = [r for r in common.read("sherif") if r["case"] == "driven and damped"]
    drawn, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.8))
    forms = list(dict.fromkeys(r["form"] for r in rows))
    for i, form in enumerate(forms):
        mine = [r for r in rows if r["form"] == form]
        for r in mine:
            if r["multipliers"] and (r["index"], r["solver"]) == (2, "Radau5"):
                left.plot(r["ts"], r["multipliers"], color=f"C{i}", lw=1, label=form)
        for solver, mark in (("Radau5", "o-"), ("BDF", "x--")):
            line = [r for r in mine if r["solver"] == solver]
            levels = [r["index"] for r in line]
            middle.plot(levels, [r["num_rhs"] for r in line], mark, color=f"C{i}", lw=1, ms=4)
            drift = [max(r["position_drift"], 1e-16) for r in line]
            right.semilogy(levels, drift, mark, color=f"C{i}", lw=1, ms=4)
    left.set(xlabel="t / s", title="multipliers / J")
    left.legend(fontsize=6)
    for axes, title in ((middle, "evaluations (dashed: BDF)"), (right, "largest drift")):
        axes.set(xticks=list(LEVELS), title=title)
        axes.set_xticklabels(LEVELS.values(), fontsize=7)
        axes.set_xlabel("constraint on")
    drawn.tight_layout()
    return drawn


def quat_em_table() -> str:
    """Return the table of the cost of QUAT.EM by the number of unknowns."""
    rows = common.read("quat_em")
    unknowns = {"reduced": "3", "null-space": "7, (52)-(54)", "saddle-point": "9, (51)"}
    body = [
        [
            f"{r['case']}, {r['dt']:g} s, {r['form']}",
            unknowns[r["form"]],
            f"{1e6 * r['step_seconds']:.2f}",
            f"{r['evaluations']:.1f}",
            f"{r['attitude']:.0e}",
            f"{r['rate']:.0e}",
        ]
        for r in rows
    ]
    head = ["case, step, form", "unknowns", "us a step", "evaluations a step", "off in attitude"]
    return table([*head, "in rates, relative"], body) + "\n\n" + provenance(rows)
