"""Figures and the tables in `docs/benchmarks`, from the rows in `results/`.

Nothing is measured here. `--smoke` prints the tables and draws the figures without writing a file.
"""

import pathlib
import re
from collections.abc import Callable
from typing import Any

import _common as common
import matplotlib.pyplot as plt
from _figures import FIGURES, throughputs, work
from _fit_tables import FIT_TABLES
from _form_figures import quat_em_table, sherif_table
from _gpu_tables import GPU_TABLES
from _leaderboard_tables import LEADERBOARD_TABLES
from _model_tables import model_table
from _robot_tables import ROBOT_TABLES
from _solution_figures import solutions_table
from _solver_tables import SOLVER_TABLES, gradient_errors
from _tables import provenance, span, table
from operation_counts import lu_operations
from work_precision import claims

PAGES = common.HERE.parent / "docs" / "benchmarks"


def operation_table() -> str:
    """Return the table of operation counts by Lang and by this package."""
    rows = common.read("operation_counts")
    kinds = ["+", "-", "*", "/", "square", "sin", "cos"]
    body = []
    for row in rows:
        if "lang" not in row:
            continue
        counts, lang = row["counts"], row["lang_counts"]
        other = sum(n for kind, n in counts.items() if kind not in kinds)
        assert other == 0
        for whose, numbers, total in (("ours", counts, row["total"]), ("Lang", lang, row["lang"])):
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
    """Return the table of ratios of evaluations at equal error, by tolerance."""
    return _claims_table(work())


def two_bodies_table() -> str:
    """Return the table of ratios of evaluations for Example C."""
    rows = common.read("two_bodies")
    return _claims_table(rows) + "\n\n" + provenance(rows)


def _claims_table(rows: list[dict[str, Any]]) -> str:
    found = [f for f in claims(rows) if f["case"] != "B, 1e-5"]
    body = []
    for key in dict.fromkeys((f["case"], f["solver"], f["projection"]) for f in found):
        group = [f for f in found if (f["case"], f["solver"], f["projection"]) == key]
        cells = []
        for pair in ("quaternion", "directors"):
            mine = [f for f in group if f["pair"] == pair]
            exact = [f["ratio"] for f in mine if not f["bound"]]
            least = max((f["ratio"] for f in mine if f["bound"] == "<="), default=0.0)
            cells.append(span(exact, "{:.2f}") if exact else f"≥ {least:.2f}")
        body.append([f"{key[0]}; {key[1]}; {'projected' if key[2] else 'free'}", *cells])
    return table(["example; solver; setting", "quaternion", "directors"], body)


def failure_table() -> str:
    """Return the table of least and largest errors at the end of Example B with a small
    disturbance, by tolerance.
    """
    rows = [r for r in work() if r["case"] == "B, 1e-5"]
    solvers = list(dict.fromkeys(r["solver"] for r in rows))
    body = []
    for formulation, projection in dict.fromkeys((r["formulation"], r["projection"]) for r in rows):
        cells = [
            span(
                [
                    r["error"]
                    for r in rows
                    if (r["solver"], r["formulation"], r["projection"])
                    == (solver, formulation, projection)
                ],
                "{:.0e}",
            )
            for solver in solvers
        ]
        body.append([f"{formulation}; {'projected' if projection else 'free'}", *cells])
    return table(["formulation; setting", *solvers], body)


def speed_table() -> str:
    """Return the table of times and ratios of `speed.py`."""
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
        body.append([name, compile_time or "", f"{1e3 * row['run_seconds_min']:.3g}", ratio])
    header = ["case", "compile s, wall / CPU", "run ms, least", "ratio"]
    return table(header, body) + "\n\n" + provenance(rows)


def throughput_table() -> str:
    """Return the table of simulations and steps per second by batch size."""
    rows = [r for name in throughputs() for r in common.read(name)]
    body = [
        [
            f"{r['batch']:,}",
            r["dtype"],
            f"{r['compile_seconds']:.2f}",
            f"{r['run_seconds_min']:.4g}",
            f"{r['simulations_per_second']:.3g}",
            f"{r['steps_per_second']:.3g}",
            f"{r['error']:.1e}",
        ]
        for r in rows
        if r["batch"] in (1, 1_000, 1_000_000)
    ]
    header = ["tops", "dtype", "compile s", "run s, least", "tops/s", "steps/s", "error"]
    return table(header, body) + "\n\n" + provenance(rows)


def gradient_table() -> str:
    """Return the table of errors of gradients."""
    rows = common.read("gradients")
    return gradient_errors(rows, lambda r: f"{r['case']}; {r['formulation']}")


def multibody_table() -> str:
    """Return the table of errors of multibody problems against exact solutions and reference
    histories.
    """
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
    return table(header, body) + "\n\n" + provenance(rows)


def chain_table() -> str:
    """Return the table of times of one acceleration of a chain, by rigidjax and Pinocchio."""
    rows = common.read("chains")
    by = {(r["bodies"], r["backend"], r["batch"] > 1): r for r in rows}
    body = []
    for bodies in dict.fromkeys(r["bodies"] for r in rows):
        peer = by.get((bodies, None, False))
        ours = [by[bodies, *k] for k in _CHAIN_COLUMNS]
        alone = ours[0]["microseconds"]
        body.append(
            [
                str(bodies),
                *(f"{r['microseconds']:.3g}" for r in ours),
                f"{peer['microseconds']:.3g}" if peer else "",
                f"{alone / peer['microseconds']:.2f}" if peer else "",
                *(f"{r['compile_seconds']:.1f}" for r in (ours[0], ours[2])),
            ]
        )
    peer_name = next((r["program"] for r in rows if r["program"] != "rigidjax"), "Pinocchio")
    header = [
        "bodies", "kernel us", "each of 1,024", "XLA us", "each of 1,024", f"{peer_name} us",
        "kernel / Pinocchio", "compile s (CPU)", "XLA s",
    ]  # fmt: skip
    return table(header, body) + "\n\n" + provenance(rows)


_CHAIN_COLUMNS = (("native", False), ("native", True), ("xla", False), ("xla", True))


def native_table() -> str:
    """Return the table of runs of a top as kernels and by XLA."""
    rows = common.read("native")
    body = [
        [
            r["case"].removeprefix("top, "), f"{r['batch']:,}", f"{1e3 * r['xla_run_seconds']:.3g}",
            f"{1e3 * r['native_run_seconds']:.3g}", f"{r['times_faster']:.1f}",
            f"{r['native_ns_per_step']:.0f}" if "native_ns_per_step" in r else "",
            f"{r['xla_first_seconds']:.1f}", f"{r['native_first_seconds']:.1f}",
        ]
        for r in rows
    ]  # fmt: skip
    header = [
        "what", "members", "XLA ms", "kernel ms", "times faster", "ns a step", "first call s, XLA",
        "kernel",
    ]  # fmt: skip
    return table(header, body) + "\n\n" + provenance(rows)


def thread_table() -> str:
    """Return the table of batches by one thread and by all."""
    rows = common.read("threads")
    keys = ("million_steps_per_second_one_thread", "million_steps_per_second", "times_faster")
    body = [[f"{r['batch']:,}", *(f"{r[key]:.3g}" for key in keys)] for r in rows]
    header = ["tops", "one thread, M steps/s", "all threads", "times faster"]
    return table(header, body) + "\n\n" + provenance(rows)


def compile_table() -> str:
    """Return the table of compile times of ten models."""
    rows = common.read("compile")
    programs = list(dict.fromkeys(r["program"] for r in rows))
    parts = ("trace", "lower", "compile")
    body = []
    for case in dict.fromkeys(r["case"] for r in rows):
        mine = {r["program"]: r for r in rows if r["case"] == case}
        seconds = {
            name: sum(r[f"{part}_cpu_seconds"] for part in parts) for name, r in mine.items()
        }
        last = mine[programs[-1]]
        body.append(
            [case]
            + [f"{mine[name]['equations']:,}" for name in programs]
            + [
                f"{100 * last['moves'] / last['equations']:.0f} %",
                f"{last['hlo_bytes'] / 1e3:,.0f}",
            ]
            + [f"{seconds[name]:.1f}" for name in programs]
            + [" + ".join(f"{last[f'{part}_cpu_seconds']:.1f}" for part in parts)]
        )
    header = ["model", *(f"equations: {name}" for name in programs)]
    header += ["of the last only move numbers", "its HLO, kB", *(f"s: {name}" for name in programs)]
    header += ["of the last: tracing + lowering and kernels + XLA"]
    return table(header, body) + "\n\n" + provenance(rows)


def drift_table() -> str:
    """Return the table of drifts at the end, and exponents of their growth in time."""
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
    return table(head, body) + "\n\n" + provenance(rows)


def six_table() -> str:
    """Return the table of ratios of evaluations for the six solvers."""
    rows = common.read("six_solvers")
    return _claims_table(rows) + "\n\n" + provenance(rows)


def stepping_table() -> str:
    """Return the table of periods of a batch of environments."""
    rows = common.read("stepping")
    body = [
        [
            r["case"],
            str(r["num_steps"]),
            f"{r['error']:.1e}",
            f"{1e3 * r['run_seconds_min']:.3g}",
            f"{1e3 * r['cpu_seconds']:.3g}",
            f"{r['nanoseconds']:.3g}",
            f"{r['ratio']:.3g}",
            f"{r['ratio_of_cpu_medians']:.3g}",
        ]
        for r in rows
    ]
    head = [
        "program", "steps", "error", "batch ms, least", "CPU ms", "ns an environment", "ratio",
        "ratio of CPU times",
    ]  # fmt: skip
    return table(head, body) + "\n\n" + provenance(rows)


def exported_table() -> str:
    """Return the table of steps of exported C libraries."""
    rows = common.read("exported_steps")
    body = [
        [
            r["case"],
            f"{1e6 * r['run_seconds_min'] / r['num_steps']:.3g}",
            f"{r['ratio']:.2f}",
            f"{r['difference']:.0e}",
        ]
        for r in rows
    ]
    head = ["model", "a step in C, µs", "over `rj.simulate`", "difference of the states"]
    return table(head, body) + "\n\n" + provenance(rows)


def lie_group_table() -> str:
    """Return the table of errors at long steps, the time of a step, and the drift of the first
    step.
    """
    rows = common.read("lie_group")
    forms = list(dict.fromkeys(r["form"] for r in rows))
    drifting = [form for form in forms if form != "group"]
    body = []
    for case, method in dict.fromkeys((r["case"], r["method"]) for r in rows):
        mine = [r for r in rows if (r["case"], r["method"]) == (case, method)]
        step = sorted({r["step"] for r in mine}, reverse=True)[1]
        at = {r["form"]: r for r in mine if r["step"] == step}
        body.append(
            [f"{case}, {method}, {step:.2g} s"]
            + [
                f"{r['error']:.1e}; {1e6 * r['step_seconds']:.2f}"
                for r in (at[form] for form in forms)
            ]
            + [f"{at[form]['drift']:.0e}" for form in drifting]
        )
    head = ["case, method, step", *forms, *(f"drift: {form}" for form in drifting)]
    return table(head, body) + "\n\n" + provenance(rows)


def first_result_table() -> str:
    """Return the table of times to a first result."""
    rows = common.read("first_result")
    keys = ("programs", "method_calls", "llvm_lines")
    times = ("other_seconds", "emission_seconds", "llvm_seconds", "xla_seconds")
    body = [
        [r["case"], f"{r['cold']:.2f}", f"{r['warm']:.2f}"]
        + [f"{r[k]:,.0f}" if k in r else "" for k in keys]
        + [f"{r[k]:.1f}" if k in r else "" for k in times]
        for r in rows
    ]
    header = ["program", "cold", "warm", "programs by XLA", "calls of methods", "lines of LLVM"]
    header += ["s: imports, tracing", "emission", "LLVM", "XLA"]
    unit = next(r["cold_seconds"] for r in rows if r["case"] == "diffrax by hand")
    return f"{table(header, body)}\n\nThe unit is {unit:.1f} s. {provenance(rows)}"


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
    "native": ("native", native_table),
    "threads": ("threads", thread_table),
    "chains": ("chains", chain_table),
    "compile": ("compile", compile_table),
    "first_result": ("first_result", first_result_table),
    "models": ("models", model_table),
    "stepping": ("stepping", stepping_table),
    "exported_steps": ("exported_steps", exported_table),
    **SOLVER_TABLES,
    **FIT_TABLES,
    **GPU_TABLES,
    **ROBOT_TABLES,
    **LEADERBOARD_TABLES,
}


def fill(text: str, name: str, content: str) -> str:
    """Return `text` with the part between the marks of `name` replaced."""
    pattern = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
    return pattern.sub(lambda m: f"{m.group(1)}{content}\n{m.group(2)}", text)


def pages() -> dict[pathlib.Path, str]:
    """Return the text of each page with the current tables.

    **Errors:** `ValueError` if no page, or more than one, has the marks of a table.
    """
    texts = {path: path.read_text("utf-8") for path in sorted(PAGES.glob("*.md"))}
    for name, (source, make) in TABLES.items():
        holders = [path for path, text in texts.items() if f"<!-- begin {name} -->" in text]
        if len(holders) != 1:
            raise ValueError(f"{len(holders)} pages have marks of the table {name!r}; one should.")
        if (common.RESULTS / f"{source}.json").exists():
            texts[holders[0]] = fill(texts[holders[0]], name, make())
    return texts


if __name__ == "__main__":
    options = common.arguments(__doc__)
    for path, text in pages().items():
        if options.smoke:
            print(text)
        else:
            path.write_text(text, "utf-8")
    for name, (source, draw) in FIGURES.items():
        if (common.RESULTS / f"{source}.json").exists():
            figure = draw()
            if not options.smoke:
                common.save(figure, name)
            plt.close(figure)
