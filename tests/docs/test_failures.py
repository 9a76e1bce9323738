"""The page of failures: every outcome of a run and every error of the package has a line."""

import pathlib
import re

import rigidjax as rj
from rigidjax.identification.result import from_minimum

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "failures.md").read_text("utf-8")


def table(header):
    """Cells of the rows of the table whose head begins so."""
    lines = PAGE.split(f"| {header} |")[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_outcome_has_a_remedy():
    rows = table("`rj.RESULTS`")
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row[0])]
    assert sorted(named) == sorted(rj.RESULTS._name_to_item)
    assert all(all(row) for row in rows if row[0] != "`successful`")


def test_every_error_of_the_package_is_listed():
    # Private errors are caught within the package.
    pattern = re.compile(
        r"^class ([A-Za-z]\w*)\((?:\w*Error|\w*Exception|\w*Warning)\)", re.MULTILINE
    )
    classes = {
        name
        for path in (ROOT / "rigidjax").rglob("*.py")
        for name in pattern.findall(path.read_text("utf-8"))
    }
    assert {"SimulationError", "IdentificationError"} <= classes
    classes.remove("ConstantTripCount")  # The compiler catches it.
    named = {
        name.split(".")[-1] for row in table("error") for name in re.findall("`([^`]+)`", row[0])
    }
    assert classes <= named


def test_results_of_fits_match_the_source():
    source = pathlib.Path(from_minimum.__file__).read_text("utf-8")
    for row in table("`Fit.result`"):
        for part in row[0].strip("`").split(" ... "):
            assert part in source, part
