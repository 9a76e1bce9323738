"""Figures of the conserving schemes."""

from typing import Any

import _common as common
import matplotlib.pyplot as plt
from matplotlib.figure import Figure


def _rows(figure: str) -> list[dict[str, Any]]:
    return [row for row in common.read("conservation") if row["figure"] == figure]


def conservation_figure(figure: str) -> Figure:
    """Draw Betsch-Siebert, Figures 1 and 3: invariants of QUAT.EM, and errors against the step."""
    rows = _rows(figure)
    kept = next(row for row in rows if "momentum" in row)
    drawn, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
    left.plot(kept["ts"], kept["energy"], label="energy / J")
    for i, values in enumerate(kept["momentum"]):
        name = "J3" if len(kept["momentum"]) == 1 else f"J{i + 1}"
        left.plot(kept["ts"], values, label=f"{name} / (kg m²/s)")
    left.set(xlabel="t / s", title=f"QUAT.EM, step {kept['dt']:g} s")
    left.legend(fontsize=7)
    for row in rows:
        if "errors" in row:
            right.loglog(row["dts"], row["errors"], "o-", ms=3, lw=1, label=row["scheme"])
    right.set(xlabel="step / s", title="error at 1 s")
    right.legend(fontsize=7)
    drawn.tight_layout()
    return drawn


def center_figure(figure: str) -> Figure:
    """Draw Betsch-Siebert, Figures 4 and 5: the centre of mass of the steady top."""
    rows = _rows(figure)
    drawn, grid = plt.subplots(1, 2, figsize=(9, 3.6))
    for axes, key in zip(grid, ("x", "z"), strict=True):
        axes.plot(rows[0]["ts"], rows[0][f"exact_{key}"], "k-", lw=1, label="exact")
        for row, style in zip(rows, ("o", "x"), strict=True):
            axes.plot(row["ts"], row[key], style, ms=3, label=f"{row['scheme']}, {row['dt']:g} s")
        axes.set(xlabel="t / s", title=f"{key} / m")
    grid[1].legend(fontsize=7)
    drawn.tight_layout()
    return drawn


def top_figure(case: int) -> Figure:
    """Draw the eight panels of Geradin-Rixen, Figures 6 and 7."""
    drawn = plt.figure(figsize=(12, 6))
    names = ["height / m", "path of the centre of mass", "theta / rad", "phi / rad"]
    names += ["constraint / m", "theta' against theta", "E/E0 - 1", "Omega_1 / (rad/s)"]
    places = [
        drawn.add_subplot(2, 4, i + 1, projection="3d" if i == 1 else None)
        for i in range(len(names))
    ]
    for row in _rows(f"GR {5 + case}"):
        ts, label = row["ts"], row["scheme"]
        places[0].plot(ts, row["x"][2], lw=0.8)
        places[1].plot(*row["x"], lw=0.8)
        places[2].plot(ts, row["theta"], lw=0.8)
        places[3].plot(ts, row["phi"], lw=0.8)
        places[4].plot(ts, row["drift"], lw=0.8)
        places[5].plot(row["theta"], row["theta_dot"], lw=0.8)
        places[6].plot(ts, row["energy_change"], lw=0.8, label=label)
        places[7].plot(ts, row["omega_1"], lw=0.8)
    for axes, name, letter in zip(places, names, "abcdefgh", strict=True):
        axes.set_title(f"({letter}) {name}", fontsize=8)
        axes.tick_params(labelsize=6)
    places[6].legend(fontsize=5)
    drawn.tight_layout()
    return drawn


CONSERVATION = {
    "conservation_betsch_siebert_1": ("conservation", lambda: conservation_figure("BS 1")),
    "conservation_betsch_siebert_3": ("conservation", lambda: conservation_figure("BS 3")),
    "conservation_betsch_siebert_4": ("conservation", lambda: center_figure("BS 4")),
    "conservation_betsch_siebert_5": ("conservation", lambda: center_figure("BS 5")),
    "conservation_geradin_rixen_6": ("conservation", lambda: top_figure(1)),
    "conservation_geradin_rixen_7": ("conservation", lambda: top_figure(2)),
}
