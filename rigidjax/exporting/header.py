"""Generated headers: `model.h`, which the C sources include, and that of a C library."""

import re
import sys
from collections.abc import Sequence

import numpy as np

from ..native import ObjectCode, TracedFunction
from ..results import RESULTS
from .binaries import SOURCES
from .model import FlatModel


def write_header(
    flat: FlatModel, functions: Sequence[TracedFunction], codes: Sequence[ObjectCode],
    prefix: str, token: str,
) -> str:  # fmt: skip
    """Return the text of `model.h`.

    **Arguments:** `functions`, of `flat`, and their machine `codes`; `prefix` of the symbols;
    `token`, which identifies the variables of the model.
    """
    n, m, k = flat.counts
    offsets, size = _memory_layout(functions)
    pointers = "".join(f", (void *)((memory) + {offset})" for offset in offsets)
    known = [v.start for v in (*flat.state_variables(), *flat.input_variables())]
    known += [v.start for v in flat.parameter_variables()]
    workspace = max(-(-code.workspace_bytes // 8) for code in codes)
    is_adaptive, dt = flat.is_adaptive, flat.stepper.period
    lines = [
        "#include <stdint.h>",
        f"#define RJ_NX {n}",
        f"#define RJ_NU {m}",
        f"#define RJ_NP {k}",
        f"#define RJ_NY {len(flat.output_variables())}",
        f"#define RJ_HAS_MEMORY {int(bool(offsets))}",
        f"#define RJ_MEMORY {size}",
        f"#define RJ_MEMORY_OF(memory) {pointers.removeprefix(', ')}",
        f"#define RJ_AND_MEMORY_OF(memory) {pointers}",
        f"#define RJ_WORKSPACE {workspace}",
        f"#define RJ_START {', '.join(['0.0', *map(repr, known)])}",
        f"#define RJ_TOKEN {_text(token)}",
        f"#define RJ_MESSAGES {_messages()}",
        f"#define RJ_NAME(name) {prefix}_##name",
        f"#define RJ_CORE(name) {prefix}_core_##name",
        f"#define RJ_KERNEL(name) {prefix}_kernel_##name",
        "typedef void rj_kernel(const void *const *, void *const *, void *, int64_t, int64_t);",
        *(f"rj_kernel {code.name};" for code in codes),
    ]
    if not is_adaptive:
        lines.append(f"#define RJ_FIXED_STEP {dt!r}")
    lines.append(f"#define RJ_LONGEST_STEP {sys.float_info.max if is_adaptive else 1e9 * dt!r}")
    return "\n".join(lines) + "\n"


def write_library_header(flat: FlatModel, title: str, prefix: str) -> str:
    """Return the text of the public header of a C library, whose symbols start with `prefix`."""
    if flat.is_adaptive:
        steps = "The lengths of the steps of the integration are chosen by an error estimate."
    else:
        steps = f"It makes steps of equal length, of at most {flat.stepper.period:g} s."
    groups = {
        "States": flat.state_variables(), "Inputs": flat.input_variables(),
        "Parameters": flat.parameter_variables(), "Outputs": flat.output_variables(),
    }  # fmt: skip
    lists = []
    for group, variables in groups.items():
        if variables:
            lists += [" *", f" * {group}:"]
        for k, v in enumerate(variables):
            lists.append(f" *     {k:3d}  {v.name}" + (f", {v.unit}" if v.unit else ""))
    values = {
        "TITLE": title, "LISTS": "\n".join(lists).replace("*/", ""), "STEPS": steps,
        "NAME": prefix.upper(), "name": prefix,
        **dict(zip(("NX", "NU", "NP", "NY"), map(str, map(len, groups.values())), strict=True)),
    }  # fmt: skip
    text = (SOURCES / "library.h.in").read_text("utf-8")
    return re.sub(r"@(\w+)@", lambda match: values[match[1]], text)


def _memory_layout(functions: Sequence[TracedFunction]) -> tuple[list[int], int]:
    """Return the offset of each array of the solver's memory, and their size, in 8 bytes."""
    arrays = next((f.results for f in functions if f.name == "begin"), ())
    words = [-(-a.size * np.dtype(a.dtype).itemsize // 8) for a in arrays]
    ends = np.cumsum([0, *words]).tolist()
    return ends[:-1], ends[-1]


def _messages() -> str:
    """Return the messages of all results, and that of a step which is not positive."""
    entries: dict[int, str] = dict(enumerate(RESULTS._index_to_message))
    entries[-1] = (
        "The step must be positive and finite, and not longer than 1e9 steps of fixed length."
    )
    return ", ".join(f"{{{status}, {_text(text)}}}" for status, text in entries.items() if text)


def _text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
