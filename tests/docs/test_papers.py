"""The tables of `docs/papers.md`: what they name exists, and no equation is missing."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "papers.md").read_text("utf-8")
HEADER = ["In the paper", "Code", "Test", "Figure, benchmark"]

# How many equations (by the letter of their appendix) and figures each paper has.
PAPERS = {
    "Lang": {"": 68, "Figure": 16, "Table": 3},
    "Betsch and Siebert": {"": 54, "A": 6, "C": 3, "D": 4, "E": 1, "Figure": 5},
    "Sherif": {"": 84},
    "Géradin and Rixen": {"": 372, "Figure": 7},
    "Terze": {"A.": 5, "B.": 1, "C.": 11, "Figure": 23},
}
REMARKS = {
    "Lang": {"2.1", "4.3", "4.4", "4.5", "4.6", "5.2", "5.3", "6.3"},
    "Betsch and Siebert": {"4.1", "4.2", "4.3"},
}


def tables() -> dict[str, list[list[str]]]:
    """Rows of four cells by paper."""
    found = {}
    for section in re.split(r"^## ", TEXT, flags=re.M)[1:]:
        lines = [line for line in section.splitlines() if line.startswith("|")]
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        found[section.split(":")[0]] = cells
    return found


TABLES = tables()
ROWS = [(paper, row) for paper, cells in TABLES.items() for row in cells[2:]]


def numbers(paper: str, kind: str) -> set[int]:
    """Numbers of equations or figures that the rows of a paper name, ranges filled."""
    one = (
        rf"{kind}s? (\d+(?:-\d+)?(?:, \d+(?:-\d+)?)*)"
        if kind in ("Figure", "Table")
        else rf"\({re.escape(kind)}\d+\)(?:-\({re.escape(kind)}\d+\))?"
    )
    found: set[int] = set()
    for cells in TABLES[paper][2:]:
        for match in re.finditer(one, cells[0]):
            for part in match.group(0).split(", "):
                ends = [int(n) for n in re.findall(r"\d+", part)]
                found |= set(range(ends[0], ends[-1] + 1))
    return found


@pytest.mark.parametrize("paper", PAPERS)
def test_every_equation_has_a_row(paper):
    assert TABLES[paper][0] == HEADER
    for kind, count in PAPERS[paper].items():
        assert numbers(paper, kind) == set(range(1, count + 1)), kind
    for remark in REMARKS.get(paper, ()):
        assert any(re.search(rf"Remarks? .*\b{remark}\b", row[0]) for row in TABLES[paper]), remark


@pytest.mark.parametrize(("paper", "row"), ROWS, ids=[f"{p}-{r[0][:20]}" for p, r in ROWS])
def test_files_and_tests_of_a_row_exist(paper, row):
    assert len(row) == len(HEADER)
    left_out = row[1].startswith("Left out: ")
    if not left_out:
        assert row[1].startswith("`")
        assert all(name.startswith("tests/") for name in re.findall("`([^`]+)`", row[2]))
        assert row[2].startswith("`")
    for name in re.findall("`([^`]+)`", " ".join(row[1:])):
        path, _, thing = name.partition("::")
        assert (ROOT / path).exists(), name
        if thing:
            source = (ROOT / path).read_text("utf-8")
            assert re.search(rf"^ *(def|class) {thing}\b", source, re.M), name


def test_sections_match_the_papers():
    assert set(TABLES) == set(PAPERS)
