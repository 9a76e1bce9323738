"""Benchmarks: counters, opponents, interpolation, report."""

import importlib
import json
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax import problems
from rigidjax.formulations.constrained import constrained_acceleration

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def bench():
    """Import a benchmark by its name, as `python benchmarks/NAME.py` does."""
    sys.path.insert(0, str(FOLDER))
    yield importlib.import_module
    sys.path.remove(str(FOLDER))


def test_counts_against_hand_counts(bench):
    count = bench("operation_counts").count
    x = jnp.ones(3)
    assert count(lambda x: 2.0 * x + x / 3.0, x) == {"*": 3, "/": 3, "+": 3}
    assert count(lambda x: x @ x, x) == {"*": 3, "+": 2}
    assert count(lambda x: jnp.stack([x[0] ** 2, -jnp.sin(x[1])]), x) == {
        "square": 1,
        "-": 1,
        "sin": 1,
    }
    # Unused results and data movement are not counted; jitted parts are.
    assert count(lambda x: (jnp.exp(x), jnp.concatenate([x[1:], x]))[1], x) == {}
    assert count(lambda x: jax.jit(jnp.sqrt)(x), x) == {"sqrt": 3}


def test_count_rejects_unknown_primitives(bench):
    with pytest.raises(ValueError, match="operation 'exp' is neither known as free nor as counted"):
        bench("operation_counts").count(jnp.exp, 1.0)


def test_operation_counts_against_lang(bench):
    module = bench("operation_counts")
    rows = {row["case"]: row for row in module.rows(smoke=True)}
    totals = {name: row["total"] for name, row in rows.items()}
    for name in ("null space, quaternion", "null space, directors", "Euler angles"):
        assert totals[name] <= rows[name]["lang"], name
    assert totals["absolute, directors"] <= 36 + module.lu_operations(15)
    # Lang's 52 takes the generalised force as given; see the test below.
    assert totals["absolute, quaternion"] <= 84
    assert [row["lang"] for row in rows.values()] == [36, 39, 52, 36, 30]


def test_lu_operations(bench):
    """Two equations: one factor, one product and difference; three products, two differences..."""
    assert bench("operation_counts").lu_operations(1) == 1
    assert bench("operation_counts").lu_operations(2) == (1 + 2) + (4 + 2)
    n = 300
    assert bench("operation_counts").lu_operations(n) == pytest.approx(2 / 3 * n**3, rel=1e-2)


def test_lang_52_counts_the_force_as_given(bench, rng):
    """Lang (40) with psi given is 59 operations; without the sum of |v|^2 and its products, 52."""
    module = bench("operation_counts")
    ones = tuple(jnp.ones(4))
    counts = module.count(module.lang_tangential, ones, ones, ones, ones[:3])
    assert counts == {"*": 28, "+": 24, "/": 3, "square": 4}
    lang = module.LANG["absolute, quaternion"]
    assert counts["+"] - 3 == lang["+"] + lang["-"]
    assert counts["*"] - 4 == lang["*"]
    assert (counts["/"], counts["square"]) == (lang["/"], lang["square"])

    p = rng.normal(size=4)
    p /= np.linalg.norm(p)
    v = rng.normal(size=4)
    inertia = np.array([50.0, 42.0, 10.0])
    exact = constrained_acceleration(
        rj.Quaternion(), jnp.asarray(p), jnp.asarray(v), jnp.asarray(inertia), None
    )
    psi = module.psi_quaternion(p, v, 8.0 * inertia)
    np.testing.assert_allclose(
        module.lang_tangential(p, v, psi, 4.0 * inertia), exact, rtol=0, atol=1e-13
    )
    v -= (p @ v) * p
    exact = constrained_acceleration(
        rj.Quaternion(), jnp.asarray(p), jnp.asarray(v), jnp.asarray(inertia), None
    )
    np.testing.assert_allclose(module.on_the_manifold(p, v, inertia), exact, rtol=0, atol=1e-13)


@pytest.mark.parametrize("opponent", ["components", "matrices"])
def test_opponents_solve_the_same_equations(bench, rng, opponent):
    speed = bench("speed")
    problem = problems.heavy_top()
    model = rj.NullSpace(problem.system)
    inertia, weight = problem.system.inertia, problem.system.potential.weight_moment
    p = rng.normal(size=4)
    y = jnp.asarray([*(p / np.linalg.norm(p)), *rng.normal(size=3)])
    args = (inertia, weight) if opponent == "matrices" else (tuple(inertia), weight)
    np.testing.assert_allclose(
        getattr(speed, opponent)(0.0, y, args), model.vector_field(0.0, y), rtol=1e-12, atol=1e-13
    )


def test_work_at_equal_error(bench):
    at_error = bench("work_precision").at_error
    # Error falls by 2**5 when the work doubles; one run is unluckily bad.
    rows = [{"num_rhs": w, "error": (100.0 / w) ** 5} for w in (100, 200, 400, 800)]
    assert at_error(rows, 300.0**-5 * 1e10) == (pytest.approx(300.0), "")
    assert at_error(rows, 2.0) == (100, "<=")
    assert at_error(rows, 1e-9) == (800, ">")
    rows[2]["error"] = 10.0
    assert at_error(rows, 400.0**-5 * 1e10) == (pytest.approx(400.0), "")


def test_pages_match_the_report(bench, monkeypatch):
    report = bench("report")
    pages = report.pages()
    assert len(pages) > 10
    for path, text in pages.items():
        assert text == path.read_text("utf-8"), path
    assert all((report.common.FIGURES / f"{name}.png").exists() for name in report.FIGURES)
    monkeypatch.setitem(report.TABLES, "nothing", ("speed", str))
    with pytest.raises(ValueError, match="0 pages have marks of the table 'nothing'"):
        report.pages()


def test_rows_state_machine_and_commit():
    files = sorted((FOLDER / "results").glob("*.json"))
    assert files
    for path in files:
        for row in json.loads(path.read_text()):
            assert row.keys() >= {"case", "device", "jax", "diffrax", "rigidjax", "commit"}, path


def test_problems_of_peers_have_consistent_initial_values(bench):
    ivp, andrews = bench("_ivp"), bench("_andrews").andrews
    found = [ivp.robertson_dae(), ivp.akzo(), ivp.arevalo(), ivp.knife_edge(), ivp.car_axis()]
    for problem in [*found, *map(ivp.pendulum, (1, 2, 3)), *map(andrews, (1, 2, 3))]:
        algebraic = problem.mass == 0
        start = np.asarray(problem.field(problem.t0, jnp.asarray(problem.y0)))[algebraic]
        end = np.asarray(problem.field(problem.t1, jnp.asarray(problem.end)))[algebraic]
        assert np.max(np.abs(start)) < 1e-12
        # Round-off of terms up to 1e6 in Andrews' constraints on accelerations.
        assert np.max(np.abs(end)) < 1e-8


def test_hand_written_equations_agree(bench):
    """Sub-jaxprs count at every call, loop bodies once."""
    count = bench("compile").equations
    inner = jax.jit(lambda x: jnp.sin(x) * 2.0)
    traced = jax.make_jaxpr(lambda x: inner(inner(x)) + 1.0)(1.0)
    assert count(traced) == {"sin": 2, "mul": 2, "add": 1}
    loop = jax.make_jaxpr(lambda x: jax.lax.fori_loop(0, 3, lambda i, x: jnp.cos(x), x))(1.0)
    assert count(loop)["cos"] == 1


def test_missing_package_of_models_is_an_error(bench):
    """Rows of a package that is not installed would be missing without a sign."""
    module = bench("_model_files")
    for missing in (("no-such-robots", "numpy"), ("numpy", "no_such_module"), ("numpy", "numpy")):
        package = module.Package(*missing, "no_such_folder", "urdf")
        with pytest.raises(ModuleNotFoundError, match=f"package {missing[0]} with model files is"):
            list(module.find_models(package))
