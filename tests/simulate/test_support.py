"""The table of what runs with what in `docs/support.md`, cell by cell."""

import pathlib
import re

import diffrax
import jax
import numpy as np
import pytest

import rigidjax as rj

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "support.md"
TOP = rj.problems.heavy_top()
T1, TOLERANCE = 0.02, 1e-6
SOLVERS = {
    "Dopri5": diffrax.Dopri5(),
    "Kvaerno5": diffrax.Kvaerno5(),
    "Radau5": rj.solvers.Radau5(),
    "BDF": rj.solvers.BDF(),
    "Odex": rj.solvers.Odex(),
    "Seulex": rj.solvers.Seulex(),
    "EnergyMomentum": rj.solvers.EnergyMomentum(),
    "Variational": rj.solvers.Variational(),
    "MuntheKaas": rj.solvers.MuntheKaas(),
    "GeneralizedAlpha": rj.solvers.GeneralizedAlpha(),
}
# Those of fixed steps, s.
STEPS = dict.fromkeys(("EnergyMomentum", "Variational", "GeneralizedAlpha"), 1e-4)
FORMS = {
    "NullSpace()": rj.NullSpace(TOP.system),
    "Absolute(index=0)": rj.Absolute(TOP.system, index=0),
    "Absolute(index=1)": rj.Absolute(TOP.system, index=1),
    "Absolute(index=1, baumgarte=(10.0, 10.0))": rj.Absolute(
        TOP.system, index=1, baumgarte=(10.0, 10.0)
    ),
    "Absolute(index=2)": rj.Absolute(TOP.system, index=2),
    "Absolute(index=2, stabilized=True)": rj.Absolute(TOP.system, index=2, stabilized=True),
    "Absolute(index=3)": rj.Absolute(TOP.system, index=3),
}


def table() -> dict[tuple[str, str], str]:
    text = re.search(
        r"<!-- begin support -->(.*?)<!-- end support -->", PAGE.read_text(), re.DOTALL
    )
    assert text is not None
    head, _, *rows = [
        [cell.strip(" `") for cell in line.strip("|").split("|")]
        for line in text.group(1).strip().splitlines()
    ]
    return {
        (row[0], solver): cell
        for row in rows
        for solver, cell in zip(head[1:], row[1:], strict=True)
    }


CELLS = table()


@pytest.fixture(scope="module")
def reference():
    return rj.simulate(rj.NullSpace(TOP.system), TOP.state0, T1, rtol=1e-11, atol=1e-11).states


def test_table_is_complete():
    assert set(CELLS) == {(form, solver) for form in FORMS for solver in SOLVERS}
    assert set(CELLS.values()) == {"yes", "no"}


@pytest.mark.exhaustive(
    "Absolute(index=1, baumgarte=(10.0, 10.0))-Radau5", "Absolute(index=2, stabilized=True)-Radau5"
)
@pytest.mark.parametrize(("form", "solver"), CELLS)
def test_cell(form, solver, reference):
    def run():
        return rj.simulate(
            FORMS[form], TOP.state0, T1, solver=SOLVERS[solver], rtol=TOLERANCE, atol=TOLERANCE,
            dt=STEPS.get(solver),
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
