"""Names of diffrax and JAX that are not public, in one file of the package."""

import ast
import pathlib

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rigidjax import private_names

PACKAGE = pathlib.Path(private_names.__file__).parent


def test_are_imported_in_one_file():
    found = {
        path.name
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and not node.level
        for part in (node.module or "").split(".")
        if part.startswith("_") and not part.startswith("__")
    }
    assert found == {"private_names.py"}


def test_exist():
    assert issubclass(private_names.WrapTerm, diffrax.AbstractTerm)
    assert issubclass(private_names.AdjointTerm, diffrax.AbstractTerm)
    seen = []
    jax.vmap(lambda x: seen.append(isinstance(x, private_names.BatchTracer)))(jnp.zeros(2))
    assert seen == [True]


def test_solve_without_checks_calls_no_host_and_changes_nothing_in_diffrax():
    ts = np.linspace(0.0, 1.0, 5)

    def end(solve, ts, dt):
        return solve(
            diffrax.ODETerm(lambda t, y, args: -y), diffrax.Heun(), 0.0, 1.0, dt, jnp.ones(2),
            saveat=diffrax.SaveAt(ts=ts), throw=False,
        ).ys  # fmt: skip

    programs = {
        solve: jax.jit(lambda ts, dt, solve=solve: end(solve, ts, dt))
        for solve in (diffrax.diffeqsolve, private_names.diffeqsolve)
    }
    texts = {solve: program.lower(ts, 0.1).as_text() for solve, program in programs.items()}
    assert "callback" in texts[diffrax.diffeqsolve]
    assert "callback" not in texts[private_names.diffeqsolve]
    first, second = (program(ts, 0.1) for program in programs.values())
    np.testing.assert_array_equal(first, second)
    with pytest.raises(Exception, match="saveat.ts must be increasing"):
        jax.block_until_ready(programs[diffrax.diffeqsolve](ts[::-1], 0.1))
