"""Generated references: keys of case files and commands are complete."""

import importlib
import importlib.util
import pathlib
import re

from rigidjax.cli.app import app
from rigidjax.cli.case import case, table

ROOT = pathlib.Path(__file__).resolve().parents[2]


def hook(name):
    """Import a hook of the documentation."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_reference_of_case_files_has_every_key(monkeypatch):
    """The keys that the reader requests from the examples are in the tables, and no others."""
    tables, read = [], table.CaseTable.__init__

    def record(self, values, where):
        read(self, values, where)
        tables.append(self)

    monkeypatch.setattr(table.CaseTable, "__init__", record)
    for name in ("pendulum", "wheels"):
        case.read_case(ROOT / "examples" / name / f"{name}.toml")
    documented = hook("_case_files").TABLES
    classes = {"[[sensor]]", "[[input]]"}  # arguments of classes are further keys
    for part in tables:
        found = re.search(r"toml, (\[+\w+\]+)", part.where)
        if found and found[1] in documented and found[1] not in classes:
            missing = part.requested - documented[found[1]][1].keys() - {"type"}
            assert not missing, (found[1], missing)
    source = "".join(
        p.read_text("utf-8") for p in (ROOT / "rigidjax" / "cli" / "case").glob("*.py")
    )
    words = set(re.findall(r"\w+", source))
    for name, (_, keys) in documented.items():
        assert not keys.keys() - words, name
    assert {
        f"[{name}]" for name in ("model", "state", "data", "method", "run", "output")
    } <= documented.keys()


def test_reference_of_commands_has_every_option():
    text = hook("_commands").page()
    for info in app.registered_commands:
        assert f"## rigidjax {info.name}\n" in text
    assert "`--rtol` NUMBER" in text and "`--out` FILE" in text


def test_every_public_name_has_a_signature_and_an_example(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    reference, entries = importlib.import_module("_reference"), importlib.import_module("_entries")
    without = []
    for names in reference.reference().values():
        for name, (call, thing) in names.items():
            assert re.fullmatch(
                rf"{re.escape(call)}\(.*\)", entries.signature_of(thing, call), re.S
            )
            if not name.startswith("Abstract") and not entries.example_of(name, ""):
                without.append(name)
    assert without == []
    methods = " ".join(reference.METHODS.values()).split()
    assert [name for name in methods if not entries.example_of(name, "")] == []
    page = reference.methods_page()
    assert "### mass_matrix" in page and "mass matrix" in page
