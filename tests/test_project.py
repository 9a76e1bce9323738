"""Facts about the project itself: what an import does, what is declared, what the tests run in."""

import ast
import os
import pathlib
import re
import subprocess
import sys
import tomllib

import jax.numpy as jnp
import pytest

import rigidjax as rj

ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.mark.float32
def test_requested_precision_is_used():
    asked = jnp.float32 if os.environ.get("RIGIDJAX_TEST_X64") == "0" else jnp.float64
    assert jnp.zeros(()).dtype == asked


def run(code):
    """Return the standard output of a separate process, in which warnings are errors."""
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_defers_slow_packages():
    slow = ["llvmlite", "matplotlib", "optax", "pandas", "rich", "scipy.stats", "xarray", "zarr"]
    code = (
        "import sys, rigidjax, rigidjax.identification; "
        f"print([name for name in {slow} if name in sys.modules])"
    )
    assert run(code).strip() == "[]"


def test_import_leaves_jax_config_alone():
    code = (
        "import jax; before = dict(jax.config.values); import rigidjax; "
        "after = dict(jax.config.values); "
        "print([k for k in before if before[k] != after[k]])"
    )
    assert run(code).strip() == "[]"


def test_one_version_everywhere():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert re.search(rf"^version: {re.escape(version)}$", (ROOT / "CITATION.cff").read_text(), re.M)
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text()
    assert rj.__version__ == version


def test_pins_are_exact_versions():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert len(pins) > 30
    for pin in pins:
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", pin), pin


def test_namespaces_export_only_the_library():
    """Completion of `rj.` lists only names of the package."""
    code = (
        "import rigidjax, rigidjax.solvers; "
        "print([n for m in (rigidjax, rigidjax.solvers) for n in dir(m) "
        "if not n.startswith('_') and not "
        "(getattr(getattr(m, n), '__module__', '') or getattr(m, n).__name__)"
        ".startswith('rigidjax')])"
    )
    assert run(code).strip() == "[]"


def test_every_kind_of_fault_has_a_default_test():
    """A mark without arguments leaves out all cases of a test."""
    lines = (ROOT / "tests" / "faults.md").read_text("utf-8").splitlines()
    rows = [line for line in lines if re.match(r"\| (?!Kind of fault)", line)]
    assert len(rows) >= 40
    for row in rows:
        names = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", row)
        assert names, row
        for path, name in names:
            body = ast.parse((ROOT / path).read_text("utf-8")).body
            found = [f for f in body if isinstance(f, ast.FunctionDef) and f.name == name]
            marks = [ast.unparse(mark) for f in found for mark in f.decorator_list]
            assert found and "pytest.mark.exhaustive" not in marks, (path, name)
