"""Runs against an independent program, over many revolutions."""

import jax
import numpy as np
import pytest
from formulations import cases
from simulate import reference

import rigidjax as rj

T1, TOLERANCE = 4.0, 1e-11
TS = np.linspace(0.0, T1, 9)
START = rj.State(orientation=(0.5, -0.5, 0.1, 0.7), angular_velocity=(4.0, -5.0, 6.0))


def moment(t, R, omega):
    gravity = np.cross([0.4, -0.3, 1.2], R.T @ [0.5, -1.0, -9.0])
    return gravity + np.sin(t) * R[2] - 0.3 * omega


@pytest.fixture(scope="module")
def reference_run():
    p0 = np.asarray(START.orientation[0])
    return reference.rigid_body(cases.TENSOR, moment, p0, START.angular_velocity[0], TS)


MODELS = [
    rj.NullSpace(cases.loaded_top(), rj.Quaternion()),
    rj.NullSpace(cases.loaded_top(), rj.RotationVector(), rates="space"),
    rj.Absolute(cases.loaded_top(), rj.EulerAngles("ZXZ")),
]


@pytest.mark.parametrize("model", MODELS, ids=cases.model_name)
def test_runs_against_scipy(model, reference_run):
    """Six revolutions, with re-charting of minimal parametrizations."""
    solution = rj.simulate(model, START, T1, ts=TS, rtol=TOLERANCE, atol=TOLERANCE)
    R, omega = reference_run
    # Not compiled, unlike the properties of the solution.
    states = jax.vmap(model.decode)(solution.ts, solution.ys)
    drift = jax.vmap(model.drift)(solution.ts, solution.ys)
    assert solution.result == rj.RESULTS.successful
    # Global errors of 10 to 80 times the tolerance were measured; the reference has 1e-11.
    assert cases.error(cases.attitude(states)[:, 0], R) < 150 * TOLERANCE
    assert cases.error(states.angular_velocity[:, 0], omega) < 150 * TOLERANCE
    assert np.max(drift) < cases.round_off(10)
    # A bound on the work: 79 steps for the quaternion to 288 for Euler angles.
    assert int(solution.stats["num_steps"]) < 320
    if model.recharting:
        references = np.asarray(solution.ys.reference)[:, 0]
        # The chart moved repeatedly, between 60 references, some of which recur.
        assert np.sum(np.any(np.diff(references, axis=0) != 0, axis=1)) >= 5
