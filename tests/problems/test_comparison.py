"""Comparison of formulations: what is measured, and that it is what Lang found."""

import diffrax
import jax.numpy as jnp
import numpy as np
import pytest
from problems.cases import TOPS

import rigidjax as rj
from rigidjax import problems
from rigidjax.problems import Row
from rigidjax.problems.comparison import compare_work, find_reference, measure

PAIRS = {
    "null space, quaternion": "absolute, quaternion",
    "null space, directors": "absolute, directors",
}


def row(label, errors, evaluations):
    nan = float("nan")
    numbers = (errors[0], nan, 0.0, 0.0, 0.0, nan)
    return Row(label, 7, 10, evaluations[0], *numbers, "", np.array(evaluations), np.array(errors))


def ladder(problem, label):
    """Errors and evaluations with Dopri5 at 1e-11, 1e-10, ..., 1e-5."""
    truth = find_reference(problem, problem.t1)
    model = problems.formulations(problem.system)[label]
    fine, coarse = (measure(problem, label, model, truth, rtol=rtol) for rtol in (1e-11, 1e-8))
    return (
        np.concatenate([fine.errors, coarse.errors[1:]]),
        np.concatenate([fine.evaluations, coarse.evaluations[1:]]),
    )


@pytest.mark.exhaustive(but=("tennis_racket-null space, quaternion",))
@pytest.mark.parametrize("null_space", PAIRS)
@pytest.mark.parametrize("build", [problems.heavy_top, problems.tennis_racket])
def test_null_space_needs_less_work_at_equal_error(build, null_space):
    """Examples A and B of Lang, at every tolerance from 1e-5 to 1e-11.

    For each run in absolute coordinates there is one in null-space coordinates that is as exact
    with fewer evaluations of the right-hand side.
    """
    problem = build()
    errors, evaluations = ladder(problem, null_space)
    for error, count in zip(*ladder(problem, PAIRS[null_space]), strict=True):
        as_exact = errors <= error
        assert np.any(evaluations[as_exact] < count)


@pytest.mark.parametrize("null_space", PAIRS)
def test_absolute_coordinates_fail_before_null_space(null_space):
    """Example B with a disturbance of 1e-5: Lang's Figure 15 (b)."""
    problem = problems.tennis_racket(disturbance=1e-5)
    errors, _ = ladder(problem, null_space)
    lost, _ = ladder(problem, PAIRS[null_space])
    assert np.all(errors < 5e-3)
    assert np.all(lost > 0.5)


@pytest.mark.parametrize(
    "name", [name for name in TOPS if name not in ("symmetric_top", "free_body")]
)
def test_every_formulation_is_exact(name):
    """Dopri8 at 1e-12: in R and in the rates within 1e-8 of the reference."""
    problem = TOPS[name]()
    truth = find_reference(problem, problem.t1)
    system = problem.system
    some = {
        "null space, directors": rj.NullSpace(system, rj.Directors()),
        "null space, rotation vector": rj.NullSpace(system, rj.RotationVector()),
    }
    for label, model in some.items():
        found = measure(problem, label, model, truth, diffrax.Dopri8(), 1e-12)
        assert found.error_rotation < 1e-8
        assert found.error_rate < 1e-8
        assert found.failure == ""


def test_unknowns_match_the_papers():
    """Lang, Table 1; a state has as many."""
    top = problems.heavy_top()
    models = problems.formulations(top.system)
    counts = {label: model.num_unknowns for label, model in models.items()}
    assert all(m.encode(top.state0).shape == (m.num_unknowns,) for m in models.values())
    assert counts["null space, quaternion"] == 7
    assert counts["null space, directors"] == 12
    assert counts["absolute, quaternion"] == 8
    assert counts["absolute, directors"] == 18
    assert counts["null space, Euler angles ZXZ"] == 6
    assert counts["absolute, Euler parameters"] == 8


def test_work_is_compared_at_equal_error():
    """Two methods of order 4, the second with thrice the evaluations for any error."""
    evaluations = np.array([1000.0, 500.0, 250.0, 125.0])
    errors = 1e-9 * (1000.0 / evaluations) ** 4
    lost = row("c", [1.0, 1.5, 2.0, 2.0], evaluations)
    first, second, third = compare_work(
        [row("a", errors, evaluations), row("b", errors * 2**4, 1.5 * evaluations), lost]
    )
    assert first.work == pytest.approx(1.0)
    assert second.work == pytest.approx(3.0)
    assert np.isnan(third.work)


def test_work_is_unknown_without_a_line():
    rows = compare_work(
        [row("a", [1.0, 1.0, 1.0, 1.0], [8, 4, 2, 1]), row("b", [1e-9] * 4, [8, 4, 2, 1])]
    )
    assert np.isnan([r.work for r in rows]).all()


def test_failed_runs_have_rows():
    def explodes(t, R, omega):
        return 1e3 * jnp.exp(1e3 * t) * omega

    body = rj.FixedPointBody((1.0, 2.0, 2.5), moment=explodes)
    state = rj.State(orientation=(1.0, 0, 0, 0), angular_velocity=(1.0, 0.5, 0.2))
    problem = problems.Problem("bang", "A body that explodes", body, state, 1.0, "made up")
    truth = find_reference(problems.free_body(), 1.0)
    found = measure(problem, "null space", rj.NullSpace(body), truth)
    assert found.failure != ""
    assert np.isnan(found.error_rotation)
    assert np.isnan(found.errors).all()


def test_other_end_times_are_compared_with_a_more_accurate_run():
    top = problems.heavy_top()
    labels = []
    comparison = problems.compare(
        top, {"quaternion": rj.NullSpace(top.system)}, t1=0.5, report=labels.append
    )
    assert labels == ["quaternion"]
    assert comparison.t1 == 0.5
    assert comparison.reference == (
        "a run in null-space coordinates with Dopri8 at a tolerance of 1e-13"
    )
    assert 0 < comparison.rows[0].error_rotation < 1e-6


def test_implicit_solvers_are_counted():
    body = problems.free_body()
    models = {"quaternion": rj.NullSpace(body.system)}
    comparison = problems.compare(body, models, t1=0.1, solver=diffrax.Kvaerno3(), rtol=1e-6)
    found = comparison.rows[0]
    assert found.num_rhs > 4 * found.num_steps
    assert found.error_rotation < 1e-4
    assert np.all(np.diff(found.errors) > 0)


def test_tolerance_below_the_precision():
    body = problems.free_body()
    with pytest.raises(ValueError, match=r"`compare\(rtol=...\)` must be at least 2.2e-15"):
        problems.compare(body, {"quaternion": rj.NullSpace(body.system)}, rtol=1e-16)
