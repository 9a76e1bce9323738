"""Generated references: keys of case files and commands are complete."""

import importlib
import importlib.util
import pathlib
import re

from rigidjax.cli.app import app
from rigidjax.cli.case.data import DataTable, SensorTable, SourceTable
from rigidjax.cli.case.inputs import InputEntry
from rigidjax.cli.case.model import ModelTable, StateTable
from rigidjax.cli.case.parameters import ParameterTable
from rigidjax.cli.case.settings import IntervalMethods, MethodTable, Outputs, RunTable

ROOT = pathlib.Path(__file__).resolve().parents[2]


def hook(name):
    """Import a hook of the documentation."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_reference_of_case_files_has_every_key():
    """The keys of the structures are in the tables, and no others."""
    documented = hook("_case_files").TABLES
    structures = {
        "[model]": ModelTable,
        "[state]": StateTable,
        "[data]": DataTable,
        "[method]": MethodTable,
        "[intervals]": IntervalMethods,
        "[run]": RunTable,
        "[output]": Outputs,
        "[[parameter]]": ParameterTable,
    }
    for name, structure in structures.items():
        assert documented[name][1].keys() == structure.model_fields.keys(), name
    source = set(SourceTable.model_fields)
    sensor = documented["[[sensor]]"][1].keys()
    assert sensor - {"delay", "skew"} == SensorTable.model_fields.keys() - source
    signal = documented["[[input]]"][1].keys()
    assert signal == InputEntry.model_fields.keys() - source


def test_reference_of_commands_has_every_option():
    text = hook("_commands").page()
    for info in (info for info in app.registered_commands if not info.hidden):
        assert f"## rigidjax {info.name}\n" in text
    assert "`--rtol` NUMBER" in text and "`--out` FILE" in text


def test_every_public_name_has_a_signature_and_an_example(monkeypatch):
    """Signatures have types, all arguments have a description, and all names an example."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    reference, entries = importlib.import_module("_reference"), importlib.import_module("_entries")
    without = []
    for names in reference.reference().values():
        for name, (call, thing) in names.items():
            assert entries.signature_of(thing, call).startswith(f"{call}(")
            if not name.startswith("Abstract") and not entries.example_of(name, ""):
                without.append(name)
    assert without == []
    methods = " ".join(reference.METHODS.values()).split()
    assert [name for name in methods if not entries.example_of(name, "")] == []
    pages = reference.pages()
    empty = {path: re.findall(r"^\| `.*\| +\|$", text, re.M) for path, text in pages.items()}
    assert {path: rows for path, rows in empty.items() if rows} == {}
    assert not [path for path, text in pages.items() if "_empty" in text]
    assert "    state0: State | None = None,\n" in pages["reference/simulation.md"]
    assert "### mass_matrix" in pages["reference/methods.md"]
