"""Texts of an export: `model.h`, the header of a C library, `modelDescription.xml` of an FMU."""

import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .._version import __version__
from ..native import ObjectCode, TracedFunction
from ..results import RESULTS
from .binaries import SOURCES
from .model import ExportedVariable, FlatModel


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


class ScalarVariable(NamedTuple):
    """A variable of an FMU.

    **Attributes:** `variable`; `causality`, `variability`, as of the standard; `has_start`;
    `derivative`, the index of the state, from 1, of which it is the rate, else `None`;
    `uses_inputs`, false for an output that depends on time, states and parameters alone.
    """

    variable: ExportedVariable
    causality: str
    variability: str
    has_start: bool
    derivative: int | None = None
    uses_inputs: bool = True

    @property
    def is_state(self) -> bool:
        """Whether the variable is a continuous state."""
        return self.causality == "local" and self.has_start


def list_variables(flat: FlatModel) -> list[ScalarVariable]:
    """Return all variables in the order of their value references, which start at 0."""
    states = flat.state_variables()
    out = [ScalarVariable(ExportedVariable("time", 0.0, "s"), "independent", "continuous", False)]
    out += [ScalarVariable(v, "local", "continuous", True) for v in states]
    out += [ScalarVariable(v, "input", "continuous", True) for v in flat.input_variables()]
    out += [ScalarVariable(v, "parameter", "tunable", True) for v in flat.parameter_variables()]
    rates = [ExportedVariable(f"der({v.name})", 0.0) for v in states]
    out += [
        ScalarVariable(v, "local", "continuous", False, k) for k, v in enumerate(rates, start=1)
    ]
    outputs = zip(flat.output_variables(), flat.feeds_through(), strict=True)
    out += [ScalarVariable(v, "output", "continuous", False, None, u) for v, u in outputs]
    return out


def _dependencies(variables: list[ScalarVariable], k: int, first: int) -> dict[str, str]:
    """Return the dependencies of an output without feedthrough; no attribute means all variables.

    They spare the importing tool an algebraic loop.

    **Arguments:** `k`, the index of the variable; `first`, the number of the first variable.
    """
    if variables[k].uses_inputs:
        return {}
    known = [i for i, v in enumerate(variables) if v.causality == "independent" or v.is_state]
    return {"dependencies": " ".join(str(i + first) for i in known)}


def describe(
    flat: FlatModel, version: str, name: str, identifier: str, token: str, step: float
) -> bytes:
    """Return the content of `modelDescription.xml`.

    **Arguments:** `version`, "2.0" or "3.0"; `name` of the model; `identifier`, the name of the
    binary; `token`, the GUID; `step`, a useful communication step, s.
    """
    variables, is_old = list_variables(flat), version == "2.0"
    attributes = {
        "fmiVersion": version, "modelName": name, "generationTool": f"rigidjax {__version__}",
        "guid" if is_old else "instantiationToken": token, "variableNamingConvention": "flat",
    }  # fmt: skip
    root = ET.Element("fmiModelDescription", attributes)
    capabilities = [
        "canGetAndSetFMUState",
        "canSerializeFMUState",
        "providesDirectionalDerivatives",
    ]
    if is_old:
        capabilities = [word.replace("State", "state").removesuffix("s") for word in capabilities]
    else:
        capabilities.append("providesAdjointDerivatives")
    common = {"modelIdentifier": identifier} | dict.fromkeys(capabilities, "true")
    silent_steps = {"completedIntegratorStepNotNeeded": "true"} if is_old else {}
    ET.SubElement(root, "ModelExchange", common | silent_steps)
    ET.SubElement(root, "CoSimulation", common, canHandleVariableCommunicationStepSize="true")
    parent = ET.SubElement(root, "UnitDefinitions")
    for unit in sorted({v.variable.unit for v in variables if v.variable.unit}):
        ET.SubElement(parent, "Unit", name=unit)
    ET.SubElement(root, "DefaultExperiment", startTime="0.0", stepSize=repr(step))
    parent = ET.SubElement(root, "ModelVariables")
    for k, v in enumerate(variables):
        names = {"name": v.variable.name, "valueReference": str(k)} | _attributes(v)
        values = _type_attributes(v)
        if v.derivative is not None:
            values["derivative"] = str(v.derivative + is_old)
        if is_old:
            ET.SubElement(ET.SubElement(parent, "ScalarVariable", names), "Real", values)
        else:
            ET.SubElement(parent, "Float64", names | values)
    structure = ET.SubElement(root, "ModelStructure")
    outputs = [k for k, v in enumerate(variables) if v.causality == "output"]
    rates = [k for k, v in enumerate(variables) if v.derivative is not None]
    if is_old:
        groups = {"Outputs": outputs, "Derivatives": rates, "InitialUnknowns": rates + outputs}
        for group, numbers in groups.items():
            parent = ET.SubElement(structure, group) if numbers else structure
            for k in sorted(numbers):
                of = _dependencies(variables, k, 1) if group == "Outputs" else {}
                ET.SubElement(parent, "Unknown", {"index": str(k + 1)} | of)
    else:
        groups = {"Output": outputs, "ContinuousStateDerivative": rates}
        for group, numbers in (groups | {"InitialUnknown": rates + outputs}).items():
            for k in numbers:
                of = _dependencies(variables, k, 0) if group == "Output" else {}
                ET.SubElement(structure, group, {"valueReference": str(k)} | of)
    ET.indent(root)
    return ET.tostring(root, "utf-8", xml_declaration=True)


def _attributes(variable: ScalarVariable) -> dict[str, str]:
    out = {"causality": variable.causality, "variability": variable.variability}
    if variable.causality in ("local", "parameter", "output"):
        out["initial"] = "exact" if variable.has_start else "calculated"
    return out


def _type_attributes(variable: ScalarVariable) -> dict[str, str]:
    out = {"unit": variable.variable.unit} if variable.variable.unit else {}
    return out | ({"start": repr(variable.variable.start)} if variable.has_start else {})
