"""Transitions that lock and release joints: momentum, impacts and samples."""

import jax
import numpy as np
import pytest
import systems

import rigidjax as rj

DOUBLE = systems.case("double pendulum").system
TIGHT = {"rtol": 1e-12, "atol": 1e-12}


def test_elbow_of_a_double_pendulum():
    """With a locked elbow it is a pendulum of the combined inertia."""
    angle, g, model = 0.8, 9.81, systems.model("double pendulum")
    shoulder, elbow = "hinge of upper", "hinge of lower"
    caught = rj.Transition(lambda t, view: view.coordinates[elbow][0] - angle, rj.Lock(elbow))
    state = rj.jointed_state(DOUBLE, {shoulder: 0.3, elbow: 1.0}, {shoulder: -1.0, elbow: -2.0})
    sol = rj.simulate(model, state, 1.5, ts=[0.7, 1.5], transitions=[caught], **TIGHT)
    before, after = (
        jax.tree.map(lambda leaf: leaf[0], part)
        for part in (sol.transitions.before, sol.transitions.after)
    )
    assert sol.transitions.count == 1 and sol.transitions.times[0] < 0.7
    momentum = model.momentum(0.0, model.encode(before))[1][1]
    # Moment of inertia about the shoulder, of rods of 1 kg and 1 m with the elbow bent.
    inertias = sum(float(body.inertia[1]) for body in DOUBLE.bodies)
    combined = inertias + 0.25 + (1.0 + 0.25 + np.cos(angle))
    np.testing.assert_allclose(after.angular_velocity[:, 1], momentum / combined, rtol=1e-11)
    rate, height = sol.rates[shoulder][:, 0], sol.states.position[:, :, 2].sum(axis=1)
    energies = 0.5 * combined * rate**2 + g * height
    start = 0.5 * combined * (momentum / combined) ** 2 + g * after.position[:, 2].sum()
    np.testing.assert_allclose(energies, start, rtol=1e-10)
    np.testing.assert_allclose(sol.coordinates[elbow][:, 0], angle, rtol=1e-10)
    np.testing.assert_allclose(sol.rates[elbow], 0.0, atol=1e-14)


def test_errors():
    state = systems.case("double pendulum").state

    def run(system, state, *joints, formulation=rj.Relative, **options):
        locks = [
            rj.Transition(lambda t, view, time=time: time - t, rj.Lock(joint))
            for time, joint in zip((0.5, 0.7), joints, strict=False)
        ]
        return rj.simulate(formulation(system), state, 1.0, transitions=locks, **options)

    with pytest.raises(TypeError, match=r"`Lock\(joint=...\)` takes a joint or its name; got 3"):
        rj.Lock(3)
    with pytest.raises(TypeError, match="must be True or False; got 1"):
        rj.Release("hinge", from_start=1)
    with pytest.raises(ValueError, match="no joint called 'hinge of lowe'. Did you mean 'hinge of"):
        run(DOUBLE, state, "hinge of lowe")
    with pytest.raises(ValueError, match="`NullSpace` and `Relative`; got `Absolute`"):
        run(DOUBLE, state, "hinge of lower", formulation=rj.Absolute)
    ball = rj.System(
        rj.Body("ball", 1.0, (0.4, 0.4, 0.4)), rj.Spherical("ground", "ball", (0, 0, 0), name="s")
    )
    with pytest.raises(ValueError, match="`Screw` or `Cylindrical`; got the Spherical 's'"):
        run(ball, ball.reference_state(), "s")
    bar, start, *_ = systems.case("four-bar")
    last = bar.joints[bar.topology.loops[0]].name
    with pytest.raises(ValueError, match=f"the joint '{last}' closes a loop"):
        run(bar, start, last)
    sol = run(DOUBLE, state, "hinge of lower", "hinge of lower", throw=False)
    assert sol.result == rj.RESULTS.transition_without_effect
