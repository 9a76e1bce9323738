"""Transitions that lock and release joints: momentum, impacts and samples."""

import jax
import numpy as np
import pytest

import rigidjax as rj

Z = (0.0, 0.0, 1.0)
INERTIAS, BASE, HINGE = (0.3, 0.5), 1.0, 2.0
TIGHT = {"rtol": 1e-12, "atol": 1e-12}


def discs(**hinge):
    """Two discs on one axis, the second on the first."""
    bodies = [rj.Body(name, 1.0, (0.4, 0.4, I)) for name, I in zip("ab", INERTIAS, strict=True)]
    joints = [
        rj.Revolute("ground", "a", (0, 0, 0), Z, name="base"),
        rj.Revolute("a", "b", (0, 0, 0), Z, name="hinge", **hinge),
    ]
    return rj.Relative(rj.System(bodies, joints))


def at(time, change, name=""):
    return rj.Transition(lambda t, view: time - t, change, name=name)


def spin(model, t1, transitions, hinge=HINGE, **options):
    state = rj.jointed_state(model.system, {}, {"base": BASE, "hinge": hinge})
    return rj.simulate(model, state, t1, transitions=transitions, **TIGHT, **options)


@pytest.mark.parametrize("formulation", [rj.Relative, rj.NullSpace])
@pytest.mark.exhaustive("Relative")
def test_elbow_of_a_double_pendulum(formulation):
    """With a locked elbow it is a pendulum of the combined inertia."""
    masses, angle, g = np.array([1.0, 0.7]), 0.8, 9.81
    level = (0.5**0.5, 0.0, 0.5**0.5, 0.0)
    bodies = [
        rj.Body.rod(name, 1.0, 0.02, mass=m, position=(x, 0, 0), orientation=level)
        for name, m, x in zip(("upper", "lower"), masses, (0.5, 1.5), strict=True)
    ]
    joints = [
        rj.Revolute("ground", "upper", (0, 0, 0), (0, 1, 0), name="shoulder"),
        rj.Revolute("upper", "lower", (1, 0, 0), (0, 1, 0), name="elbow"),
    ]
    model = formulation(rj.System(bodies, joints, rj.Gravity((0, 0, -g))))
    caught = rj.Transition(lambda t, view: view.coordinates["elbow"][0] - angle, rj.Lock("elbow"))
    state = rj.jointed_state(
        model.system, {"shoulder": 0.3, "elbow": 1.0}, {"shoulder": -1.0, "elbow": -2.0}
    )
    sol = rj.simulate(model, state, 1.5, ts=[0.7, 1.5], transitions=[caught], **TIGHT)
    before, after = (
        jax.tree.map(lambda leaf: leaf[0], part)
        for part in (sol.transitions.before, sol.transitions.after)
    )
    assert sol.transitions.count == 1 and sol.transitions.times[0] < 0.7
    momentum = model.momentum(0.0, model.encode(before))[1][1]
    inertias = [float(body.inertia[0]) for body in bodies]
    # Moment of inertia about the shoulder, of rods with the elbow bent.
    distance = 1.0 + 0.25 + np.cos(angle)
    combined = inertias[0] + masses[0] * 0.25 + inertias[1] + masses[1] * distance
    np.testing.assert_allclose(after.angular_velocity[:, 1], momentum / combined, rtol=1e-11)
    rate, height = sol.rates["shoulder"][:, 0], masses @ sol.states.position[:, :, 2].T
    energies = 0.5 * combined * rate**2 + g * height
    start = 0.5 * combined * (momentum / combined) ** 2 + g * masses @ after.position[:, 2]
    np.testing.assert_allclose(energies, start, rtol=1e-10)
    np.testing.assert_allclose(sol.coordinates["elbow"][:, 0], angle, rtol=1e-10)
    np.testing.assert_allclose(sol.rates["elbow"], 0.0, atol=1e-14)


def test_errors():
    model = discs()
    with pytest.raises(TypeError, match=r"`Lock\(joint=...\)` takes a joint or its name; got 3"):
        rj.Lock(3)
    with pytest.raises(TypeError, match="must be True or False; got 1"):
        rj.Release("hinge", from_start=1)
    with pytest.raises(ValueError, match="no joint called 'hing'. Did you mean 'hinge'"):
        spin(model, 1.0, [at(0.5, rj.Lock("hing"))])
    with pytest.raises(ValueError, match="`NullSpace` and `Relative`; got `Absolute`"):
        spin(rj.Absolute(model.system), 1.0, [at(0.5, rj.Lock("hinge"))])
    ball = rj.System(
        rj.Body("ball", 1.0, (0.4, 0.4, 0.4)), rj.Spherical("ground", "ball", (0, 0, 0), name="s")
    )
    with pytest.raises(ValueError, match="`Screw` or `Cylindrical`; got the Spherical 's'"):
        rj.simulate(
            rj.Relative(ball), ball.reference_state(), 1.0, transitions=[at(0.5, rj.Lock("s"))]
        )
    bar = rj.problems.four_bar()
    last = bar.system.joints[bar.system.topology.loops[0]].name
    with pytest.raises(ValueError, match=f"the joint '{last}' closes a loop"):
        rj.simulate(rj.Relative(bar.system), bar.state0, 1.0, transitions=[at(0.5, rj.Lock(last))])
    again = [at(0.5, rj.Lock("hinge")), at(0.7, rj.Lock("hinge"))]
    sol = spin(model, 1.0, again, throw=False)
    assert sol.result == rj.RESULTS.transition_without_effect
