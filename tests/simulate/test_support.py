"""The table of what runs with what in `docs/support.md`, cell by cell."""

import re

import jax
import numpy as np
import pytest
from simulate.support_cells import (
    FEATURES,
    PAGE,
    SOLVERS,
    T1,
    TOLERANCE,
    TOP,
    steps_of,
    try_feature,
)

import rigidjax as rj

FORMS = {
    "NullSpace()": rj.NullSpace(TOP.system),
    "Relative()": rj.Relative(TOP.system),
    "Absolute(index=0)": rj.Absolute(TOP.system, index=0),
    "Absolute(index=1)": rj.Absolute(TOP.system, index=1),
    "Absolute(index=1, baumgarte=(10.0, 10.0))": rj.Absolute(
        TOP.system, index=1, baumgarte=(10.0, 10.0)
    ),
    "Absolute(index=2)": rj.Absolute(TOP.system, index=2),
    "Absolute(index=2, stabilized=True)": rj.Absolute(TOP.system, index=2, stabilized=True),
    "Absolute(index=3)": rj.Absolute(TOP.system, index=3),
}


def table(name: str) -> dict[tuple[str, str], str]:
    """Cells of a table between marks, by the first column and the head."""
    text = re.search(
        rf"<!-- begin {name} -->(.*?)<!-- end {name} -->", PAGE.read_text("utf-8"), re.DOTALL
    )
    assert text is not None
    head, _, *rows = [
        [cell.strip(" `") for cell in line.strip("|").split("|")]
        for line in text.group(1).strip().splitlines()
    ]
    return {
        (row[0], column): cell
        for row in rows
        for column, cell in zip(head[1:], row[1:], strict=True)
    }


CELLS = table("support")
TITLES = {title.strip("`"): name for name, (title, _) in FEATURES.items()}
FEATURE_CELLS = {(s, TITLES[title]): cell for (s, title), cell in table("features").items()}
# Each of the others compiles a run or a derivative.
QUICK_CELLS = {
    ("Absolute(index=0)", "EnergyMomentum"),
    ("Absolute(index=3)", "GeneralizedAlpha"),
    *((form, "Dopri5") for form in FORMS),
}
SLOW_CELLS = {cell for cell, value in CELLS.items() if value == "yes"} - QUICK_CELLS
QUICK = {("Kvaerno5", "native"), ("EnergyMomentum", "adaptive"), ("Dopri5", "batch")}


@pytest.fixture(scope="module")
def reference():
    return rj.simulate(rj.NullSpace(TOP.system), TOP.state0, T1, rtol=1e-11, atol=1e-11).states


def test_support_table_is_complete():
    assert set(CELLS) == {(form, solver) for form in FORMS for solver in SOLVERS}
    assert set(CELLS.values()) == {"yes", "no"}
    assert set(FEATURE_CELLS) == {(solver, name) for solver in SOLVERS for name in FEATURES}


@pytest.mark.exhaustive(*(f"{form}-{solver}" for form, solver in SLOW_CELLS))
@pytest.mark.parametrize(("form", "solver"), CELLS)
def test_support_table_cell(form, solver, reference):
    def run():
        return rj.simulate(
            FORMS[form], TOP.state0, T1, solver=SOLVERS[solver], **steps_of(solver)
        )  # fmt: skip

    if CELLS[form, solver] == "no":
        with pytest.raises(ValueError, match=r"Radau5|Use `|NullSpace"):
            run()
        return
    for got, expected in zip(
        jax.tree.leaves(run().states), jax.tree.leaves(reference), strict=True
    ):
        # Rates are some 40 rad/s: a hundred tolerances relative to them.
        assert np.max(np.abs(got - expected)) < 100 * TOLERANCE * 40


@pytest.mark.exhaustive(*(f"{s}-{f}" for s in SOLVERS for f in FEATURES if (s, f) not in QUICK))
@pytest.mark.parametrize(("solver", "feature"), FEATURE_CELLS)
def test_feature_table_cell(solver, feature):
    assert try_feature(solver, feature)[0] == FEATURE_CELLS[solver, feature]
