"""The gallery: short examples, and what was kept of them is what the viewer takes today."""

import gzip
import json
import pathlib

import pytest
from viewer.motions import mechanism

import rigidjax as rj

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "docs" / "gallery"
EXAMPLES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "make")


def test_there_are_twelve_and_nothing_is_left_over():
    assert len(EXAMPLES) >= 12
    for ending in (".json.gz", ".png"):
        assert sorted(p.name.removesuffix(ending) for p in FOLDER.glob(f"*{ending}")) == EXAMPLES


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_short_and_its_run_is_kept(name):
    _, text, code = (FOLDER / f"{name}.py").read_text("utf-8").split('"""', 2)
    assert len([line for line in code.splitlines() if line.strip()]) <= 25
    assert text.endswith(".") and "shown = rj.view(" in code
    kept = json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))
    new = rj.view(mechanism()).scene
    assert kept.keys() == new.keys()
    for run in kept["runs"]:
        assert new["runs"][0].keys() <= run.keys() | {"forces", "reactions"}
        assert all(b.keys() == new["runs"][0]["bodies"][0].keys() for b in run["bodies"])
