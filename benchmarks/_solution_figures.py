"""Figures and table of the solutions of Examples A and B."""

import _common as common
import matplotlib.pyplot as plt
from _tables import provenance, table
from matplotlib.figure import Figure


def solution_figure(name: str) -> Figure:
    """Draw Lang, Figures 11 and 12: components of the directors, and body rates, over time."""
    row = next(row for row in common.read("solutions") if row["figure"] == name)
    drawn, (top, bottom) = plt.subplots(2, 1, figsize=(8, 5.5), sharex=True)
    for i, values in enumerate(row["directors"]):
        n, m = divmod(i, 3)
        style = ("-", "--", ":")[m]
        top.plot(row["ts"], values, style, color=f"C{n}", lw=0.9, label=f"d{n + 1}, {'xyz'[m]}")
    for i, values in enumerate(row["rates"]):
        bottom.plot(row["ts"], values, color=f"C{i}", lw=0.9, label=f"Ω{i + 1}")
    top.set(ylabel="directors", ylim=(-1.05, 1.05), title=f"Example {row['case']}")
    bottom.set(xlabel="t / s", ylabel="rates / (rad/s)", xlim=(0.0, row["ts"][-1]))
    top.legend(fontsize=6, ncols=3)
    bottom.legend(fontsize=6)
    drawn.tight_layout()
    return drawn


def solutions_table() -> str:
    """Return the table of features of the figures, next to the statements of the paper."""
    rows = common.read("solutions")
    top = next(row for row in rows if row["case"] == "A")
    racket = next(row for row in rows if row["case"] != "A")
    low, high = top["inclination"]
    flips = ", ".join(f"{t:.3f}" for t in racket["flips"])
    body = [
        ["A", "time axis", "none given", f"0 to {top['ts'][-1]:g} s"],
        ["A", "nutation", "becomes visible", f"{top['counts']['nutations']} times, the axis "
         f"between {low:.4f} and {high:.4f} rad from the vertical"],
        ["A", "precession", "becomes visible",
         f"{top['counts']['turns of the precession']:.3f} turns"],
        ["B", "time axis", "up to beyond 1.2 s", f"0 to {racket['ts'][-1]:g} s"],
        ["B", "turns over", "at about 0.4 s and 1.2 s, on and on",
         f"{racket['counts']['flips']} times: {flips} s"],
        ["B", "d1", "to its antipode",
         f"cosine of the angle between rests {max(racket['cosines']):.4f} or less"],
    ]  # fmt: skip
    return table(["example", "", "the paper", "here"], body) + "\n\n" + provenance(rows)


SOLUTIONS = {
    "figure_11_solution_A": ("solutions", lambda: solution_figure("Lang 11")),
    "figure_12_solution_B": ("solutions", lambda: solution_figure("Lang 12")),
}
