"""States from coordinates of joints, in trees, loops and free chains."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rigidjax as rj
from rigidjax.projection import jointed_state


def readings(system, state, *names):
    """Coordinates and rates of joints in a state."""
    model = rj.NullSpace(system)
    sensors = [kind(name) for name in names for kind in (rj.JointCoordinate, rj.JointRate)]
    read = jax.jit(lambda y: jnp.stack([s.predict(model, jnp.zeros(()), y) for s in sensors]))
    return np.asarray(read(model.encode(state))).reshape(-1, 2)


def bar(name, x):
    return rj.Body.rod(name=name, mass=1.0, length=1.0, position=[x, 0.0, 0.0])


def hinge(parent, child, x):
    return rj.Revolute(parent, child, [x, 0.0, 0.0], [0.0, 0.0, 1.0], name=f"{parent}-{child}")


def test_tree_on_the_ground():
    """The named joints are where they are asked for, far beyond a quarter turn; others at rest."""
    joints = [hinge("ground", "a", 0.0), hinge("a", "b", 1.0)]
    system = rj.System([bar("a", 0.5), bar("b", 1.5)], joints)
    state = jointed_state(system, {"a-b": 2.8}, {"ground-a": 0.5})
    found = readings(system, state, "ground-a", "a-b")
    np.testing.assert_allclose(found, [[0.0, 0.5], [2.8, 0.0]], atol=1e-12)


@pytest.mark.exhaustive
def test_loop_is_closed_around_a_crank():
    system = rj.problems.four_bar().system
    name = "revolute ground-crank"
    state = jointed_state(system, {name: 0.44}, {name: -1.5})
    np.testing.assert_allclose(readings(system, state, name), [[0.44, -1.5]], atol=1e-10)


def test_trees_in_space():
    """The body that hangs on nothing stays where it is, unless its `Free` says otherwise."""
    bars = [bar("a", 0.5), bar("b", 1.5)]
    ball = rj.Spherical("a", "b", [1.0, 0.0, 0.0], name="ball")
    system = rj.System(bars, [ball, rj.Free("a", name="base")])
    turn, rate = np.array([0.3, -0.2, 1.0]), np.array([1.0, 2.0, 3.0])
    state = jointed_state(system, {"ball": turn}, {"ball": rate})
    np.testing.assert_allclose(state.position[0], [0.5, 0, 0], atol=1e-14)
    R = Rotation.from_rotvec(turn)
    np.testing.assert_allclose(
        state.position[1], np.array([1, 0, 0]) + R.apply([0.5, 0, 0]), atol=1e-13
    )
    np.testing.assert_allclose(state.angular_velocity, [[0, 0, 0], rate], atol=1e-13)
    place = np.array([1.0, 2.0, 3.0, 0.0, 0.0, 0.5])
    state = jointed_state(system, {"base": place}, {"base": [1.0] + [0.0] * 5})
    np.testing.assert_allclose(state.position[0], [1, 2, 3], atol=1e-14)
    np.testing.assert_allclose(state.velocity, [[1, 0, 0]] * 2, atol=1e-13)


def test_loops_are_placed_by_hinges_and_sliders():
    bars = [bar("a", 0.5), bar("b", 1.5)]
    ball = rj.Spherical("a", "b", [1.0, 0.0, 0.0], name="ball")
    system = rj.System(bars, [ball, rj.Weld("ground", "a"), rj.Weld("ground", "b")])
    with pytest.raises(ValueError, match="only hinges and sliders .* the Spherical 'ball' is none"):
        jointed_state(system, {"ball": [0.1] * 3})


def test_what_joints_do_not_have():
    system = rj.System([bar("a", 0.5)], [hinge("ground", "a", 0.0)])
    with pytest.raises(ValueError, match="no joint called 'hinge'"):
        jointed_state(system, {"hinge": 1.0})
    with pytest.raises(
        ValueError, match=r"Revolute 'ground-a' has 1 coordinates.*got \[1.0, 2.0\]"
    ):
        jointed_state(system, {"ground-a": [1.0, 2.0]})
    with pytest.raises(ValueError, match=r"finite numbers; got nan and the rates 0.0"):
        jointed_state(system, {"ground-a": np.nan})
