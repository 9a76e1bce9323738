"""First result of a new process: counts, which do not depend on the machine."""

import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "benchmarks"
# Modules of other packages that `import rigidjax` may load beside those of diffrax.
ALLOWED = {"fractions", "numpy"}


@pytest.fixture(scope="module")
def bench():
    sys.path.insert(0, str(FOLDER))
    import first_result

    yield first_result
    sys.path.remove(str(FOLDER))


# Programs compiled by XLA, calls of methods of a model while it is traced, and lines of LLVM. Three
# programs of README belong to its own index and the derivative of it.
LIMITS = {"README": (8, 15, 55_000), "double pendulum": (4, 15, 18_000)}


@pytest.mark.parametrize("name", LIMITS)
def test_counts_of_a_first_result(bench, name, tmp_path):
    """In a new process, and in a second one, which traces no model and compiles no kernel."""
    programs, calls, lines = LIMITS[name]
    found = bench.counts(name, str(tmp_path))
    assert found["programs"] <= programs
    assert 0 < found["method_calls"] <= calls
    assert 0 < found["llvm_lines"] <= lines
    again = bench.counts(name, str(tmp_path))
    assert "llvm_lines" not in again and "method_calls" not in again, again
    # Single operations on arrays, such as the index of a last sample.
    assert again.get("programs", 0) <= 25, again


def test_import_loads_little():
    source = (
        "import sys, diffrax; before = set(sys.modules); import rigidjax; "
        "print(*set(sys.modules) - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", source], check=True, capture_output=True, text=True
    )
    loaded = done.stdout.split()
    assert {name.split(".")[0] for name in loaded} <= {"rigidjax", *ALLOWED}
    ours = [name for name in loaded if name.startswith("rigidjax")]
    assert len(ours) <= 230
    late = "identification models sensors simulate.hybrid solvers.dae.radau stepping".split()
    assert not [name for name in ours if name.startswith(tuple(f"rigidjax.{x}" for x in late))]
