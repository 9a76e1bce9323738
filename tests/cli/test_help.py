"""Help of the command line: fast, and with the names that exist."""

import subprocess
import sys

import pytest
from cli.program import assert_refused

from rigidjax.cli import options
from rigidjax.cli.base import choices

HELP = """
import sys
sys.argv = ["rigidjax", *{words!r}]
try:
    import rigidjax
except SystemExit as end:
    assert end.code in (0, None, 2), end.code
    assert not {{"jax", "numpy", "rigidjax.solvers"}} & set(sys.modules)
else:
    raise AssertionError("help did not end the process")
"""


@pytest.mark.parametrize("words", [[], ["identify", "--help"], ["--version"]])
def test_help_imports_neither_jax_nor_numpy(words):
    done = subprocess.run([sys.executable, "-c", HELP.format(words=words)], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert b"rigidjax" in done.stdout + done.stderr


def test_names_in_help_texts_are_those_of_the_classes():
    for text, kinds in (
        (options.SOLVERS, choices.solver_kinds()),
        (options.FORMULATIONS, choices.formulation_kinds()),
        (options.ROTATIONS, choices.rotation_kinds()),
    ):
        # Classes of users, which other tests define, may follow.
        assert set(text.split(", ")) <= set(kinds)
        users = set(kinds) - set(text.split(", "))
        assert not any(kinds[name].__module__.startswith("rigidjax") for name in users)


def test_solvers_of_other_programs_are_translated():
    for name, same in (("rk45", "dopri5"), ("RK23", "bosh3"), ("Radau", "radau5"), ("ida", "bdf")):
        with pytest.raises(ValueError, match=f"no solver '{name}'. Did you mean '{same}'"):
            choices.make_solver(name)
    assert_refused("Did you mean 'dopri5'", "run", "heavy_top", "--solver", "rk45")
