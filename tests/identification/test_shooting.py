"""Multiple shooting: elimination of segments, derivatives, and the fits that it leads to."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from identification import cases

import rigidjax as rj
from rigidjax.identification import (
    GaussianPrior,
    LogDetPrior,
    Measurements,
    Parameter,
    Positive,
    identify,
    start_state,
)
from rigidjax.identification.data.measurements import stack_runs
from rigidjax.identification.fit.least_squares import minimise
from rigidjax.identification.fit.options import make_search, trial_simulation
from rigidjax.identification.fit.problem import make_problem
from rigidjax.identification.shooting.block_elimination import solve_step
from rigidjax.identification.shooting.segments import Segments, SegmentUnknowns, cut_runs, linearise
from rigidjax.identification.shooting.shooting import shoot
from rigidjax.initial.local_coordinates import retract, selection


def test_elimination_is_least_squares():
    """The step of two runs of four segments, against one dense least-squares problem."""
    rng = np.random.default_rng(0)
    B, K, N, S, P, n, G, R, Q = 2, 4, 9, 2, 1, 3, 5, 3, 2
    r, J = rng.normal(size=(B, K, N)), rng.normal(size=(B, K, N, S + P + n))
    gaps = rng.normal(size=(B, K - 1, G))
    before, behind = rng.normal(size=(2, B, K - 1, G, S + P + n))
    prior = tuple(rng.normal(size=s) for s in ((R,), (R, S), (B, Q), (B, Q, P)))
    damping = rng.uniform(0.1, 1, S), rng.uniform(0.1, 1, (B, P)), rng.uniform(0.1, 1, (B, K, n))
    size = S + B * P + B * K * n

    def placed(b, k, block):
        out = np.zeros((len(block), size))
        first = S + B * P + (b * K + k) * n
        out[:, :S], out[:, S + b * P : S + (b + 1) * P] = block[:, :S], block[:, S : S + P]
        out[:, first : first + n] = block[:, S + P :]
        return out

    rows = [placed(b, k, J[b, k]) for b in range(B) for k in range(K)]
    rows += [
        placed(b, k, before[b, k]) + placed(b, k + 1, behind[b, k])
        for b in range(B)
        for k in range(K - 1)
    ]
    known = np.zeros((R + B * Q, size))
    known[:R, :S] = prior[1]
    for b in range(B):
        known[R + b * Q : R + (b + 1) * Q, S + b * P : S + (b + 1) * P] = prior[3][b]
    rows += [known, np.diag(np.concatenate([d.ravel() for d in damping]))]
    residuals = (r, gaps, prior[0], prior[2])
    right = np.concatenate([*(x.ravel() for x in residuals), np.zeros(size)])
    expected = np.linalg.lstsq(np.concatenate(rows), -right)[0]
    steps = solve_step((r, J), (gaps, before, behind), prior, damping)
    found = np.concatenate([x.ravel() for x in steps])
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def run(length=20, mask=None):
    rng = np.random.default_rng(1)
    values = {rj.Gyroscope(): rng.normal(size=(length, 3))}
    masks = None if mask is None else {rj.Gyroscope(): mask}
    return Measurements(np.arange(length) * 0.1, values, mask=masks, name="first")


@pytest.mark.parametrize(
    "measured, segments, message",
    [
        (run(), 0, "must be a number of segments"),
        (run(), 2.0, "must be a number of segments"),
        (run(), 20, "has 20 times, enough for at most 19 segments"),
        (run(), 12, "segment 1 of the run first has 3 scalar samples"),
        (run(mask=np.arange(20) < 9), 2, "segment 2 of the run first has 0 scalar samples"),
    ],
)
def test_invalid_arguments_raise(measured, segments, message):
    with pytest.raises(ValueError, match=message):
        identify(cases.model(), measured, cases.parameters(), segments=segments)


@pytest.mark.exhaustive
def test_derivatives_of_segments():
    """Residuals and gaps by drag and by a start, against differences of themselves."""
    data, parameters = cases.measurements(cases.NOISE, seed=3, known=True), cases.parameters()
    model, runs = cases.model(), stack_runs(data)
    states = [rj.State(angular_velocity=rates) for rates in cases.RATES]
    how = trial_simulation(rj.Simulation(rtol=1e-10, atol=1e-10), runs.ts.dtype)
    problem, *_ = make_problem(model, runs, states, parameters, how)
    pieces, count = cut_runs(runs, 4, 6), 3
    bases = jax.tree.map(lambda x: jnp.repeat(x[:, None], 4, axis=1), problem.runs.state0)
    one = selection((0, 1, 2), count)
    directions = jax.tree.map(lambda x: jnp.broadcast_to(x, (3, 4, *x.shape)), one)
    segments = Segments(problem, pieces, bases, directions)
    shared, own = problem.start_coordinates()
    change = 0.1 * np.random.default_rng(0).normal(size=(3, 4, 6))
    at = SegmentUnknowns(shared, own, jnp.asarray(change))
    found, h = linearise(segments, at), 1e-4
    drag = jnp.zeros_like(shared).at[2].set(h)
    turn = jnp.zeros_like(at.change).at[1, 1, 4].set(h)

    def differences(step):
        moved = [jax.tree.map(lambda a, b, s=s: a + s * b, at, step) for s in (1, -1)]
        plus, minus = (linearise(segments, point) for point in moved)
        return (plus.residuals - minus.residuals) / (2 * h), (plus.gaps - minus.gaps) / (2 * h)

    def agree(found, expected):
        np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())

    residuals, gaps = differences(SegmentUnknowns(drag, 0 * own, 0 * turn))
    agree(found.jacobian[..., 2], residuals)
    agree(found.ends[..., 2] + found.starts[..., 2], gaps)
    # The start of the second segment of the second run moves what it touches alone.
    residuals, gaps = differences(SegmentUnknowns(0 * drag, 0 * own, turn))
    agree(found.jacobian[1, 1, :, -2], residuals[1, 1])
    agree(found.starts[1, 0, :, -2], gaps[1, 0])
    agree(found.ends[1, 1, :, -2], gaps[1, 1])
    assert np.count_nonzero(residuals) == np.count_nonzero(residuals[1, 1])
    assert np.count_nonzero(gaps) == np.count_nonzero(gaps[1, :2])


@pytest.mark.exhaustive
def test_optimum_agrees_with_undivided_runs():
    """An easy problem: three runs of a top with drag, in four segments each."""
    data = cases.measurements(cases.NOISE, seed=3, known=True)
    parameters = cases.parameters()
    # With one horizon both end in the same compiled minimisation.
    one = identify(cases.model(), data, parameters, horizons=(1.0,))
    many = identify(cases.model(), data, parameters, segments=4)
    assert many.converged
    np.testing.assert_allclose(many.values, one.values, rtol=1e-6)
    np.testing.assert_allclose(many.covariance, one.covariance, rtol=1e-4)
    np.testing.assert_array_equal(many.starts, one.starts)
    assert many.notes[0].startswith("Multiple shooting: 4 segments in each run")


def with_priors():
    inertia, drag, rates = cases.parameters(fixed=())
    drawing = LogDetPrior(2.0 * np.asarray(cases.INERTIA), 100.0)
    return (
        Parameter("inertia", inertia.where, inertia.transform, prior=drawing),
        drag,
        Parameter("rates", rates.where, per_run=True, prior=GaussianPrior(2.0, 0.5)),
    )


@pytest.mark.exhaustive
def test_priors_apply_with_segments():
    """A common scale that only the priors tell, and start rates that they move."""
    data, parameters = cases.measurements(0.3, seed=3, known=True), with_priors()
    runs = stack_runs(data)
    states = [rj.State(angular_velocity=rates) for rates in cases.RATES]
    how = trial_simulation(rj.Simulation(), runs.ts.dtype)
    problem, *_ = make_problem(cases.model(), runs, states, parameters, how)
    shot = shoot(problem, runs, 3)
    search = make_search(runs.ts.dtype, (1.0,))
    direct, later = minimise(problem, search), minimise(shot.problem, search)
    cost = {
        name: float(jnp.sum(at.residuals**2) + jnp.sum(at.prior.residuals**2))
        for name, at in (("start", direct.first), ("best", direct.last), ("shot", later.first))
    }
    assert shot.is_closed and bool(direct.converged)
    # Each of the five stages ends when the cost decreases by less than 1e-3 of itself.
    assert cost["start"] > 1.05 * cost["best"]
    assert cost["shot"] < 1.005 * cost["best"]
    found, expected = (np.asarray(m.leaves[0][0]) for m in (later, direct))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.exhaustive
def test_priors_with_unknown_noise():
    """The noise grows to what it is, and priors do not lead away from the data before."""
    data = cases.measurements(0.3, seed=3)
    one = identify(cases.model(), data, with_priors(), horizons=(1.0,))
    many = identify(cases.model(), data, with_priors(), segments=3)
    # Simulated with 0.3; 270 samples tell it to 4 %, and priors that are up to fourteen standard
    # deviations off add to it.
    assert 0.27 < one.noise_by_sensor["gyroscope"] < 0.35
    std = np.sqrt(np.diag(one.covariance))
    assert np.all(np.abs(many.values - one.values) < 1e-3 * std)
    assert one.identifiability.identifiable


def mass_of(experiment):
    return experiment.model.system.bodies[1].mass


@pytest.mark.exhaustive
def test_chaotic_double_pendulum_is_fitted():
    """For swings over several revolutions a single run reaches a local minimum, segments do not."""
    bodies = [
        rj.Body("upper", 1.0, (0.01, 0.01, 0.02), (0.0, -0.25, 0.0)),
        rj.Body("lower", 0.8, (0.005, 0.005, 0.01), (0.0, -0.7, 0.0)),
    ]
    joints = [
        rj.Revolute("ground", "upper", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), name="shoulder"),
        rj.Revolute("upper", "lower", (0.0, -0.5, 0.0), (0.0, 0.0, 1.0), name="elbow"),
    ]
    system = rj.System(bodies, joints, rj.Gravity((0.0, -9.81, 0.0)))
    model = rj.NullSpace(system.tracking(["shoulder", "elbow"]))

    @jax.jit
    def state_at_angles(angles):
        unit = selection((0, 1), 2)
        start = system.reference_state()
        return retract(model, start, jnp.zeros(()), unit, angles, jnp.zeros(2))[0]

    truth, noise = jnp.array([1.8, 0.6]), 0.01
    sensors = (rj.JointCoordinate("shoulder"), rj.JointCoordinate("elbow"))
    ts = np.linspace(0.0, 3.0, 61)
    solution = rj.simulate(model, state_at_angles(truth), ts[-1], ts=ts, rtol=1e-11, atol=1e-11)
    read = jax.jit(jax.vmap(lambda t, y: [s.predict(model, t, y) for s in sensors]))
    rng = np.random.default_rng(0)
    values = [
        np.asarray(v) + noise * rng.normal(size=v.shape) for v in read(solution.ts, solution.ys)
    ]
    # The elbow passes full revolutions, which a segment cannot detect.
    assert np.ptp(values[1]) > 2 * np.pi
    measured = Measurements(
        ts, dict(zip(sensors, values, strict=True)), {s: noise for s in sensors}
    )
    parameters = [
        Parameter("mass", mass_of, Positive(), start=1.3 * 0.8, unit="kg"),
        start_state(model),
    ]
    off = jnp.array([0.7, 1.3]) * truth

    def fit(**options):
        return identify(
            model, measured, parameters, state0=state_at_angles(off), rtol=1e-6, atol=1e-6,
            projection=False, horizons=(1.0,), max_iterations=40, throw=False, **options,
        )  # fmt: skip

    undivided, found = fit(), fit(segments=6)
    assert not undivided.converged or undivided.chi_square > 10
    assert found.converged and 0.7 < found.chi_square < 1.3
    expected = [0.8, *(truth - off), 0.0, 0.0]
    assert np.all(np.abs(found.values - expected) < 3 * np.sqrt(np.diag(found.covariance)))
    assert "6 segments" in found.notes[0]
    np.testing.assert_allclose(found.starts[0], 1.04)
