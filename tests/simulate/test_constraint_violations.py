"""Runs in which joints cannot stay closed: a named result, with the joint, the time and the gap."""

import diffrax
import jax
import numpy as np
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


@pytest.fixture(scope="module")
def crank():
    """A crank of 1 m and a rod of 1.5 m to a slider that is driven away, out of reach at 0.5 s."""
    joint = lambda name, *args: rj.Revolute(*args, (0.0, 0.0, 1.0), name=name)  # noqa: E731
    bodies = [
        rj.Body("crank", 1.0, (0.1, 0.1, 0.1), (0.5, 0.0, 0.0)),
        rj.Body("rod", 1.0, (0.1, 0.1, 0.1), (1.75, 0.0, 0.0)),
        rj.Body("slider", 1.0, (0.1, 0.1, 0.1), (2.5, 0.0, 0.0)),
    ]
    joints = [
        joint("main", "ground", "crank", (0.0, 0.0, 0.0)),
        joint("pin", "crank", "rod", (1.0, 0.0, 0.0)),
        joint("wrist", "rod", "slider", (2.5, 0.0, 0.0)),
        rj.Prismatic("ground", "slider", (1.0, 0.0, 0.0), motion=lambda t: t - 0.5, name="drive"),
    ]
    system = rj.System(bodies, joints)
    guess = system.reference_state()
    guess = rj.State(
        guess.position + np.array([0.0, 0.1, 0.0]), guess.orientation, guess.velocity,
        guess.angular_velocity,
    )  # fmt: skip
    return system, rj.consistent_state(system, guess)


def test_contradicting_joints_end_a_run(torn):
    model, state = torn
    gap = r"The joint '(hinge|glue)' is open by .* at t = 0\.\d+ s"
    with pytest.raises(rj.SimulationError, match=f"joints can no longer be closed.*{gap}"):
        rj.simulate(model, state, 1.0)
    run = rj.simulate(model, state, 1.0, throw=False)
    assert run.result == rj.RESULTS.joints_open
    assert run.stats["num_steps"] < 100


def test_contradicting_joints_under_jit(torn):
    model, state = torn
    run = jax.jit(lambda t1: rj.simulate(model, state, t1).ys)
    with pytest.raises(RuntimeError, match="The joints can no longer be closed"):
        jax.block_until_ready(run(1.0))


def test_drift_without_a_projection_is_a_warning(torn):
    model, state = torn
    run = rj.simulate(model, state, 1.0, projection=False)
    assert run.result == rj.RESULTS.successful
    (warning,) = run.warnings
    assert "is open by 0.84" in warning and "at t = 1 s" in warning


@pytest.mark.exhaustive
@pytest.mark.parametrize("formulation", [rj.NullSpace, rj.Absolute])
@pytest.mark.parametrize("solver", [diffrax.Dopri8(), rj.solvers.Radau5()])
def test_unreachable_motion_is_reported(crank, formulation, solver):
    """No formulation and solver continues with violated joints."""
    system, state = crank
    model = formulation(system)
    run = rj.simulate(model, state, 1.0, ts=np.linspace(0.0, 1.0, 21), solver=solver, throw=False,
                      max_steps=5000)  # fmt: skip
    assert run.result != rj.RESULTS.successful
    reached = np.isfinite(run.ts)
    assert np.max(run.ts[reached]) < 0.55
    assert np.max(run.position_drift[reached]) < 1e-6
