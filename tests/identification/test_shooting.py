"""Multiple shooting: elimination of segments, derivatives, and the fits that it leads to."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from identification import cases

import rigidjax as rj
from rigidjax.identification import (
    Measurements,
    Parameter,
    Positive,
    identify,
    start_state,
)
from rigidjax.identification.shooting.shooting import solve_step
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
