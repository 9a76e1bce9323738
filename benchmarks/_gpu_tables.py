"""Tables of kernels on GPUs."""

from collections.abc import Callable
from typing import Any

import _common as common
from _tables import provenance, table

Row = dict[str, Any]


def assembly_table() -> str:
    """Return the table of registers and memory of GPU kernels."""
    assembled = common.read("gpu")
    body = [
        [
            r["case"], r["architecture"],
            *(f"{r[k]:,}" for k in ("registers", "spilled_bytes", "stack_bytes", "scratch_bytes")),
            _number(r, "data_bytes", ",.0f"),
            f"{r['ptx_lines']:,}", f"{r['emit_seconds']:.1f}", f"{r['ptxas_seconds']:.1f}",
        ]
        for r in assembled
    ]  # fmt: skip
    header = [
        "kernel", "GPU", "registers", "spilled bytes", "stack", "scratch", "data", "lines of PTX",
        "seconds to write", "to assemble",
    ]  # fmt: skip
    return table(header, body) + "\n\n" + provenance(assembled)


def _number(row: Row, key: str, form: str, factor: float = 1.0) -> str:
    """Return a value of a row as text, empty if the row has none."""
    return format(factor * row[key], form) if key in row else ""


def runs_table() -> str:
    """Return the table of runs by kernels on a GPU, against the processor and XLA on the GPU."""
    rows = common.read("gpu_runs")
    cases = list(dict.fromkeys(r["case"] for r in rows))
    rows.sort(key=lambda r: (cases.index(r["case"]), r["batch"]))
    body = [
        [
            r["case"], f"{r['batch']:,}", _number(r, "native_run_seconds", ".3g", 1e3),
            f"{r['batch'] / r['native_run_seconds']:,.3g}",
            _number(r, "processor_run_seconds", ".3g", 1e3),
            _number(r, "xla_run_seconds", ".3g", 1e3), _number(r, "difference", ".0e"),
            _number(r, "native_first_seconds", ".1f"),
        ]
        for r in rows
    ]  # fmt: skip
    header = [
        "runs", "members", "GPU ms", "members a second", "processor ms", "XLA on the GPU ms",
        "GPU from processor", "first call s",
    ]  # fmt: skip
    return table(header, body) + "\n\n" + provenance(rows)


def fits_table() -> str:
    """Return the table of batches of fits on a GPU, against the processor."""
    rows = common.read("gpu_fits")
    body = [
        [
            r["case"], f"{r['fits']:,}", f"{r['converged']:,}", f"{r['first_seconds']:.3g}",
            _number(r, "run_seconds", ".3g"), _number(r, "processor_fits", ",.0f"),
            _number(r, "processor_seconds", ".3g"), _number(r, "times_faster", ".3g"),
            _number(r, "difference_in_std", ".0e"),
        ]
        for r in rows
    ]  # fmt: skip
    header = [
        "data", "fits", "converged", "first call s", "later s", "fits on the processor",
        "processor s", "times faster", "difference / std",
    ]  # fmt: skip
    return table(header, body) + "\n\n" + provenance(rows)


def compilation_table() -> str:
    """Return the table of seconds to the first result of a large kernel on a GPU."""
    rows = common.read("gpu_compilation")
    body = [
        [
            r["case"], f"{r['ptx_lines']:,}", f"{r['trace_seconds']:.1f}",
            f"{r['emit_seconds']:.1f}", _number(r, "first_seconds", ".1f"),
            _number(r, "run_seconds", ".3g", 1e3),
        ]
        for r in rows
    ]  # fmt: skip
    header = ["kernel", "lines of PTX", "s to trace", "to write", "first call s", "later ms"]
    return table(header, body) + "\n\n" + provenance(rows)


GPU_TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "gpu": ("gpu", assembly_table),
    "gpu_runs": ("gpu_runs", runs_table),
    "gpu_fits": ("gpu_fits", fits_table),
    "gpu_compilation": ("gpu_compilation", compilation_table),
}
