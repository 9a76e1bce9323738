"""The file `modelDescription.xml` of an FMU."""

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from typing import NamedTuple

from .._version import __version__
from .model import ExportedVariable, FlatModel


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
    variables = list_variables(flat)
    write = _describe_2 if version == "2.0" else _describe_3
    root = write(variables, name, identifier, token, step)
    ET.indent(root)
    return ET.tostring(root, "utf-8", xml_declaration=True)


def _root(version: str, name: str, **token: str) -> ET.Element:
    tool = f"rigidjax {__version__}"
    attributes = {"fmiVersion": version, "modelName": name, "generationTool": tool}
    conventions = {"variableNamingConvention": "flat"}
    return ET.Element("fmiModelDescription", attributes | token | conventions)


def _units(root: ET.Element, variables: Iterable[ScalarVariable]) -> None:
    units = sorted({v.variable.unit for v in variables if v.variable.unit})
    parent = ET.SubElement(root, "UnitDefinitions")
    for unit in units:
        ET.SubElement(parent, "Unit", name=unit)


def _attributes(variable: ScalarVariable) -> dict[str, str]:
    out = {"causality": variable.causality, "variability": variable.variability}
    if variable.causality in ("local", "parameter", "output"):
        out["initial"] = "exact" if variable.has_start else "calculated"
    return out


def _type_attributes(variable: ScalarVariable) -> dict[str, str]:
    out = {"unit": variable.variable.unit} if variable.variable.unit else {}
    return out | ({"start": repr(variable.variable.start)} if variable.has_start else {})


def _describe_2(
    variables: list[ScalarVariable], name: str, identifier: str, token: str, step: float
) -> ET.Element:
    root = _root("2.0", name, guid=token)
    common = {
        "modelIdentifier": identifier, "canGetAndSetFMUstate": "true",
        "canSerializeFMUstate": "true", "providesDirectionalDerivative": "true",
    }  # fmt: skip
    silent_steps = {"completedIntegratorStepNotNeeded": "true"}
    ET.SubElement(root, "ModelExchange", common | silent_steps)
    variable_steps = {"canHandleVariableCommunicationStepSize": "true"}
    ET.SubElement(root, "CoSimulation", common | variable_steps)
    _units(root, variables)
    ET.SubElement(root, "DefaultExperiment", startTime="0.0", stepSize=repr(step))
    parent = ET.SubElement(root, "ModelVariables")
    for k, v in enumerate(variables):
        names = {"name": v.variable.name, "valueReference": str(k)}
        scalar = ET.SubElement(parent, "ScalarVariable", names | _attributes(v))
        rate = {} if v.derivative is None else {"derivative": str(v.derivative + 1)}
        ET.SubElement(scalar, "Real", _type_attributes(v) | rate)
    outputs = [k for k, v in enumerate(variables, 1) if v.causality == "output"]
    rates = [k for k, v in enumerate(variables, 1) if v.derivative is not None]
    structure = ET.SubElement(root, "ModelStructure")
    groups = {"Outputs": outputs, "Derivatives": rates, "InitialUnknowns": sorted(outputs + rates)}
    for group, indices in groups.items():
        if indices:
            parent = ET.SubElement(structure, group)
            for k in indices:
                of = _dependencies(variables, k - 1, 1) if group == "Outputs" else {}
                ET.SubElement(parent, "Unknown", {"index": str(k)} | of)
    return root


def _describe_3(
    variables: list[ScalarVariable], name: str, identifier: str, token: str, step: float
) -> ET.Element:
    root = _root("3.0", name, instantiationToken=token)
    common = {
        "modelIdentifier": identifier, "canGetAndSetFMUState": "true",
        "canSerializeFMUState": "true", "providesDirectionalDerivatives": "true",
        "providesAdjointDerivatives": "true",
    }  # fmt: skip
    ET.SubElement(root, "ModelExchange", common)
    variable_steps = {"canHandleVariableCommunicationStepSize": "true"}
    ET.SubElement(root, "CoSimulation", common | variable_steps)
    _units(root, variables)
    ET.SubElement(root, "DefaultExperiment", startTime="0.0", stepSize=repr(step))
    parent = ET.SubElement(root, "ModelVariables")
    for k, v in enumerate(variables):
        names = {"name": v.variable.name, "valueReference": str(k)}
        rate = {} if v.derivative is None else {"derivative": str(v.derivative)}
        attributes = names | _attributes(v) | _type_attributes(v) | rate
        ET.SubElement(parent, "Float64", attributes)
    structure = ET.SubElement(root, "ModelStructure")
    outputs = [k for k, v in enumerate(variables) if v.causality == "output"]
    rates = [k for k, v in enumerate(variables) if v.derivative is not None]
    groups = {"Output": outputs, "ContinuousStateDerivative": rates}
    for group, references in (*groups.items(), ("InitialUnknown", [*rates, *outputs])):
        for k in references:
            of = _dependencies(variables, k, 0) if group == "Output" else {}
            ET.SubElement(structure, group, {"valueReference": str(k)} | of)
    return root
