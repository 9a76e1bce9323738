"""Runs in which joints cannot stay closed: a named result, with the joint, the time and the gap."""

import jax
import pytest

import rigidjax as rj


@pytest.fixture(scope="module")
def torn():
    """A hinge that is driven while its child is welded to the ground."""
    hinge = rj.Revolute("ground", "arm", (0.5, 0.0, 0.0), (0.0, 0.0, 1.0), lambda t: t * t, "hinge")
    system = rj.System(
        [rj.Body("arm", 1.0, (0.1, 0.1, 0.1))], [hinge, rj.Weld("ground", "arm", name="glue")]
    )
    return rj.NullSpace(system), system.reference_state()


def test_contradicting_joints_end_a_run(torn):
    model, state = torn
    gap = r"The joint '(hinge|glue)' is open by .* at t = 0\.\d+ s"
    with pytest.raises(rj.SimulationError, match=f"joints can no longer be closed.*{gap}"):
        rj.simulate(model, state, 1.0)
    run = rj.simulate(model, state, 1.0, throw=False)
    assert run.result == rj.RESULTS.joints_open
    assert run.stats["num_steps"] < 100
    compiled = jax.jit(lambda t1: rj.simulate(model, state, t1).ys)
    with pytest.raises(RuntimeError, match="The joints can no longer be closed"):
        jax.block_until_ready(compiled(1.0))


def test_drift_without_a_projection_is_a_warning(torn):
    model, state = torn
    run = rj.simulate(model, state, 1.0, projection=False)
    assert run.result == rj.RESULTS.successful
    (warning,) = run.warnings
    assert "is open by 0.84" in warning and "at t = 1 s" in warning
