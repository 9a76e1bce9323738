"""Figures and the tables in README.md, from the rows in `results/`.

Nothing is measured here. `--smoke` prints the tables and draws the figures without writing a file.
"""

import re
from collections.abc import Callable
from typing import Any

import _common as common
import matplotlib.pyplot as plt
from _figures import FIGURES, throughputs, work
from _fit_tables import FIT_TABLES
from _form_figures import quat_em_table, sherif_table
from _solution_figures import solutions_table
from _solver_tables import SOLVER_TABLES
from _tables import measured, table
from operation_counts import lu_operations
from work_precision import claims

README = common.HERE / "README.md"


def operation_table() -> str:
    """Lang's Table 1 and ours."""
    rows = common.read("operation_counts")
    kinds = ["+", "-", "*", "/", "square", "sin", "cos"]
    body = []
    for row in rows:
        if "lang" not in row:
            continue
        counts, lang = row["counts"], row["lang_counts"]
        other = sum(n for kind, n in counts.items() if kind not in kinds)
        assert other == 0
        for whose, numbers, total in (
            ("ours", counts, row["total"]),
            ("Lang", lang, row["lang"]),
        ):
            lu = f" + {row['lang_lu']} of the LU" if whose == "Lang" and row["lang_lu"] else ""
            body.append(
                [f"{row['case']}, {whose}"]
                + [str(numbers.get(kind, 0)) for kind in kinds]
                + [f"{total}{lu}"]
            )
    rest = [
        [f"{row['case']} ({row['body']})", str(row["total"])] for row in rows if "lang" not in row
    ]
    return (
        table(["free body", *kinds, "total"], body)
        + "\n\n"
        + table(["other right-hand sides", "total"], rest)
        + f"\n\nThe LU decomposition is that of 15 equations: {lu_operations(15)} operations with "
        "its solution."
    )


def claims_table() -> str:
    """Ratios of evaluations at equal error, by tolerance."""
    return _claims_table(work())


def two_bodies_table() -> str:
    """The same for Example C."""
    rows = common.read("two_bodies")
    return _claims_table(rows) + "\n\n" + measured(rows)


def _claims_table(rows: list[dict[str, Any]]) -> str:
    found = claims(rows)
    tolerances = sorted({f["tolerance"] for f in found}, reverse=True)
    keys = dict.fromkeys((f["case"], f["solver"], f["projection"], f["pair"]) for f in found)
    body = []
    for key in keys:
        case, solver, projection, pair = key
        if case == "B, 1e-5":
            continue
        group = {
            f["tolerance"]: f
            for f in found
            if (f["case"], f["solver"], f["projection"], f["pair"]) == key
        }
        cells = []
        for tolerance in tolerances:
            f = group.get(tolerance)
            sign = {"": "", "<=": "≥ ", ">": "< "}[f["bound"]] if f else ""
            cells.append(f"{sign}{f['ratio']:.2f}" if f else "")
        setting = "projected" if projection else "free"
        body.append([f"{case}; {solver}; {pair}; {setting}", *cells])
    return table(["example; solver; rotation; setting", *(f"{t:.0e}" for t in tolerances)], body)


def failure_table() -> str:
    """Errors at the end of Example B with a small disturbance, by tolerance."""
    rows = [r for r in work() if r["case"] == "B, 1e-5"]
    tolerances = sorted({r["tolerance"] for r in rows}, reverse=True)
    body = []
    for key in dict.fromkeys((r["solver"], r["formulation"], r["projection"]) for r in rows):
        group = {
            r["tolerance"]: r
            for r in rows
            if (r["solver"], r["formulation"], r["projection"]) == key
        }
        solver, formulation, projection = key
        setting = "projected" if projection else "free"
        body.append(
            [f"{solver}; {formulation}; {setting}"]
            + [f"{group[t]['error']:.0e}" if t in group else "" for t in tolerances]
        )
    return table(["solver; formulation; setting", *(f"{t:.0e}" for t in tolerances)], body)


def speed_table() -> str:
    """Times and ratios of `speed.py`."""
    rows = common.read("speed")
    body = []
    for row in rows:
        name = "; ".join(
            f"{row[key]} tops" if key == "batch" and row[key] > 1 else str(row[key])
            for key in ("case", "batch", "run", "mode")
            if key in row and not (key == "batch" and row[key] == 1)
        )
        compile_time = "compile_seconds" in row and (
            f"{row['compile_seconds']:.2f} / {row['compile_cpu_seconds']:.2f}"
        )
        ratio = f"{row['ratio']:.2f}" if "ratio" in row else ""
        cpu = f"{row['ratio_of_cpu_medians']:.2f}" if "ratio_of_cpu_medians" in row else ""
        body.append(
            [
                name,
                compile_time or "",
                f"{1e3 * row['run_seconds_min']:.3g}",
                f"{1e3 * row['run_seconds']:.3g}",
                ratio,
                cpu,
            ]
        )
    header = ["case", "compile s, wall / CPU", "run ms, least", "median", "ratio", "of CPU times"]
    return table(header, body) + "\n\n" + measured(rows)


def throughput_table() -> str:
    """Simulations and steps per second by batch size."""
    rows = [r for name in throughputs() for r in common.read(name)]
    body = [
        [
            f"{r['batch']:,}",
            r["device"],
            r["dtype"],
            f"{r['compile_seconds']:.2f}",
            f"{r['run_seconds_min']:.4g}",
            f"{r['run_seconds']:.4g}",
            f"{r['simulations_per_second']:.3g}",
            f"{r['steps_per_second']:.3g}",
            f"{r['steps_per_cpu_second']:.3g}" if "steps_per_cpu_second" in r else "",
            f"{r['error']:.1e}",
        ]
        for r in rows
    ]
    header = ["tops", "device", "dtype", "compile s", "run s, least", "median", "tops/s", "steps/s"]
    header += ["steps/CPU s", "error"]
    return table(header, body) + "\n\n" + measured(rows)


def gradient_table() -> str:
    """Errors of gradients."""
    rows = common.read("gradients")
    body = [
        [
            f"{r['case']}; {r['formulation']}; {r['mode']}",
            f"{r['relative_error']:.1e}",
            f"{r['worst_entry']:.1e}",
            f"{1e3 * r['run_seconds_min']:.3g}",
        ]
        for r in rows
    ]
    header = ["case; formulation; mode", "relative error", "worst entry", "run ms, least"]
    return table(header, body) + "\n\n" + measured(rows)


def multibody_table() -> str:
    """Errors of multibody problems against exact solutions and the given histories."""
    rows = common.read("multibody")
    body = [
        [
            f"{r['case']}; {r['solver']} at {r['tolerance']:.0e}; {r['t1']:g} s",
            str(r["unknowns"]),
            f"{r['error']:.1e}",
            "" if r["relative_energy_change"] is None else f"{r['relative_energy_change']:.1e}",
            f"{r['position_drift']:.0e}",
            f"{r['velocity_drift']:.0e}",
            str(r["num_steps"]),
            f"{r['run_seconds']:.3g}",
        ]
        for r in rows
    ]
    header = ["problem", "unknowns", "error / m", "energy", "drift / m", "m/s", "steps", "run s"]
    return table(header, body) + "\n\n" + measured(rows)


def chain_table() -> str:
    """Times of one acceleration of a chain, ours and Pinocchio's."""
    rows = common.read("chains")
    peers = {(r["bodies"], r["one_kernel"]): r for r in rows if r["program"] != "rigidjax"}
    body = []
    for r in rows:
        if r["program"] != "rigidjax":
            continue
        peer = peers.get((r["bodies"], r["one_kernel"]))
        batch = f", {r['batch']:,} at once" if r["batch"] > 1 else ""
        option = ", loops as one kernel" if r["one_kernel"] else ""
        body.append(
            [
                f"{r['bodies']}{batch}{option}",
                f"{r['microseconds']:.3g}",
                f"{peer['microseconds']:.3g}" if peer else "",
                f"{r['microseconds'] / peer['microseconds']:.2f}" if peer else "",
                f"{r['compile_seconds']:.1f}",
            ]
        )
    peer_name = next((r["program"] for r in rows if r["program"] != "rigidjax"), "Pinocchio")
    header = ["bodies", "rigidjax us", f"{peer_name} us", "ratio", "compile s (CPU)"]
    return table(header, body) + "\n\n" + measured(rows)


def compile_table() -> str:
    """What it takes to compile ten models."""
    rows = common.read("compile")
    body = [
        [
            f"{r['case']}, {r['program']}",
            f"{r['equations']:,}",
            f"{100 * r['moves'] / r['equations']:.0f} %",
            f"{r['hlo_bytes'] / 1e3:,.0f}",
            *(f"{r[f'{part}_cpu_seconds']:.2f}" for part in ("trace", "lower", "compile")),
        ]
        for r in rows
    ]
    header = ["model, program", "equations", "that only move numbers", "HLO kB"]
    header += ["trace s", "lowering and kernels s", "XLA s"]
    return table(header, body) + "\n\n" + measured(rows)


def drift_table() -> str:
    """Drifts at the end, and exponents of their growth in time."""
    rows = common.read("drift")
    body = [
        [
            row["formulation"],
            f"{row['position_drift_end']:.1e}",
            f"{row['position_growth']:.2f}",
            f"{row['parabola_rest']:.0e}",
            f"{row['velocity_drift_end']:.1e}",
            f"{row['velocity_growth']:.2f}",
            f"{row['num_rhs']:,}",
        ]
        for row in rows
    ]
    head = ["form", "position", "grows as t to the", "rest of a parabola", "velocity"]
    head += ["as t to the", "evaluations"]
    return table(head, body) + "\n\n" + measured(rows)


def six_table() -> str:
    """Ratios of evaluations for the six solvers."""
    rows = common.read("six_solvers")
    return _claims_table(rows) + "\n\n" + measured(rows)


def lie_group_table() -> str:
    """Errors at long and short steps, and the time of a step."""
    rows = common.read("lie_group")
    body = []
    drifting = [form for form in dict.fromkeys(r["form"] for r in rows) if form != "group"]
    for case, method in dict.fromkeys((r["case"], r["method"]) for r in rows):
        mine = [r for r in rows if (r["case"], r["method"]) == (case, method)]
        for step in sorted({r["step"] for r in mine}, reverse=True)[1::3]:
            at = {r["form"]: r for r in mine if r["step"] == step}
            times = [r["step_seconds"] for r in at.values()]
            body.append(
                [f"{case}, {method}, {step:.2g} s"]
                + [f"{r['error']:.1e}" for r in at.values()]
                + [f"{1e6 * seconds:.2f}" for seconds in times]
                + [f"{at[form]['drift']:.0e}" for form in drifting]
            )
    forms = list(dict.fromkeys(r["form"] for r in rows))
    head = ["case, method, step", *forms, *(f"us: {form}" for form in forms)]
    head += [f"drift: {form}" for form in drifting]
    return table(head, body) + "\n\n" + measured(rows)


TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "operations": ("operation_counts", operation_table),
    "claims": ("work_precision", claims_table),
    "failure": ("work_precision", failure_table),
    "speed": ("speed", speed_table),
    "throughput": ("throughput", throughput_table),
    "gradients": ("gradients", gradient_table),
    "two_bodies": ("two_bodies", two_bodies_table),
    "drift": ("drift", drift_table),
    "solutions": ("solutions", solutions_table),
    "sherif": ("sherif", sherif_table),
    "quat_em": ("quat_em", quat_em_table),
    "six_solvers": ("six_solvers", six_table),
    "lie_group": ("lie_group", lie_group_table),
    "multibody": ("multibody", multibody_table),
    "chains": ("chains", chain_table),
    "compile": ("compile", compile_table),
    **SOLVER_TABLES,
    **FIT_TABLES,
}


def fill(text: str, name: str, content: str) -> str:
    """`text` with the part between the marks of `name` replaced."""
    pattern = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"README.md has no marks of the table {name!r}.")
    return pattern.sub(lambda m: f"{m.group(1)}{content}\n{m.group(2)}", text)


if __name__ == "__main__":
    options = common.arguments(__doc__)
    text = README.read_text()
    for name, (source, make) in TABLES.items():
        if (common.RESULTS / f"{source}.json").exists():
            content = make()
            text = fill(text, name, content)
            if options.smoke:
                print(content, end="\n\n")
    if not options.smoke:
        README.write_text(text)
    for name, (source, draw) in FIGURES.items():
        if (common.RESULTS / f"{source}.json").exists():
            figure = draw()
            if not options.smoke:
                common.save(figure, name)
            plt.close(figure)
