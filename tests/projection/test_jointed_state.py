"""States from coordinates of joints, in trees, loops and free chains."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rigidjax as rj
from rigidjax.initial import jointed_state


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
    """Named joints have their coordinates, far beyond a quarter revolution; others are at rest."""
    joints = [hinge("ground", "a", 0.0), hinge("a", "b", 1.0)]
    system = rj.System([bar("a", 0.5), bar("b", 1.5)], joints)
    state = jointed_state(system, {"a-b": 2.8}, {"ground-a": 0.5})
    found = readings(system, state, "ground-a", "a-b")
    np.testing.assert_allclose(found, [[0.0, 0.5], [2.8, 0.0]], atol=1e-12)


def test_floating_trees():
    """The floating base does not move, unless its `Free` has coordinates."""
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


def test_loops_from_hinges_and_sliders():
    bars = [bar("a", 0.5), bar("b", 1.5)]
    ball = rj.Spherical("a", "b", [1.0, 0.0, 0.0], name="ball")
    system = rj.System(bars, [ball, rj.Weld("ground", "a"), rj.Weld("ground", "b")])
    with pytest.raises(ValueError, match="hinges and sliders; 'ball' is a Spherical"):
        jointed_state(system, {"ball": [0.1] * 3})


def test_unknown_joints_and_coordinates_raise():
    system = rj.System([bar("a", 0.5)], [hinge("ground", "a", 0.0)])
    for name, hint in (("hinge", "The joints are"), ("a", "The joint of this body is 'ground-a'")):
        with pytest.raises(ValueError, match=f"no joint called {name!r}. {hint}"):
            jointed_state(system, {name: 1.0})
    with pytest.raises(TypeError, match="takes a `System`; got Relative"):
        jointed_state(rj.Relative(system), {})
    with pytest.raises(
        ValueError, match=r"Revolute 'ground-a' needs 1 finite coordinates.*got \[1.0, 2.0\]"
    ):
        jointed_state(system, {"ground-a": [1.0, 2.0]})
    with pytest.raises(ValueError, match=r"before angles; got nan and the rates 0.0"):
        jointed_state(system, {"ground-a": np.nan})


def test_coordinates_and_rates_that_are_traced():
    """States under `jax.jit` and `jax.vmap` are equal, with derivatives against differences."""

    ball = rj.Spherical("a", "b", [1.0, 0.0, 0.0])
    system = rj.System([bar("a", 0.5), bar("b", 1.5)], [hinge("ground", "a", 0.0), ball])

    def state(q, rate):
        return jointed_state(system, {"ground-a": q}, {"ground-a": rate})

    places, h = np.array([0.3, -0.2]), 1e-5
    many = jax.jit(jax.vmap(lambda q: state(q, 2.0)))(places)
    for k, q in enumerate(places):
        for a, b in zip(jax.tree.leaves(state(q, 2.0)), jax.tree.leaves(many), strict=True):
            np.testing.assert_allclose(b[k], a, rtol=0, atol=1e-12)

    def observe_state(q):
        at = state(q, 2.0)
        return jnp.sum(at.position[1] * jnp.array([1.0, 2.0, 3.0])) + at.velocity[1, 0]

    slope = float(observe_state(0.3 + h) - observe_state(0.3 - h)) / (2 * h)
    for derivative in (jax.grad, jax.jacfwd):
        assert float(jax.jit(derivative(observe_state))(0.3)) == pytest.approx(slope, rel=1e-8)


def test_invalid_traced_values_raise():
    system = rj.System([bar("a", 0.5)], [hinge("ground", "a", 0.0)])
    with pytest.raises(ValueError, match="needs 1 finite coordinates.*got shape \\(2,\\)"):
        jax.eval_shape(lambda q: jointed_state(system, {"ground-a": q}), np.zeros(2))
    with pytest.raises(RuntimeError, match="must be finite"):
        eqx.filter_jit(lambda q: jointed_state(system, {"ground-a": q}))(jnp.array(np.nan))


def finger(**motion):
    """A hand that is free in space, with a finger whose joints follow each other."""
    names = ["base", "f0", "f1", "f2", "f3"]
    bodies = [rj.Body("base", 5.0, (1.0, 1.0, 1.0))]
    bodies += [rj.Body(f"f{k}", 0.1, (1e-3,) * 3, (0.2 * k + 0.2, 0.0, 0.0)) for k in range(4)]
    joints = [
        rj.Revolute(*names[k : k + 2], (0.2 * k + 0.1, 0, 0), (0, 0, 1), name=f"j{k}")
        for k in range(4)
    ]
    if motion:
        joints[0] = rj.Revolute("base", "f0", (0.1, 0, 0), (0, 0, 1), name="j0", **motion)
    ties = [rj.Coupling("j1", by="j0", ratio=0.8), rj.Coupling("j2", by="j1", ratio=-2.0)]
    return rj.System(bodies, [rj.Free("base", name="root"), *joints, *ties])


def test_floating_tree_with_couplings():
    """Joints that follow others are placed with them, whichever of a chain is given."""
    system, names = finger(), ("j0", "j1", "j2", "j3")
    place = np.array([1.0, 2.0, 3.0, 0.1, 0.2, 0.3])
    for given, rate, wanted in (
        ({"j0": 0.5, "root": place}, {"j0": 1.0}, [[0.5, 1.0], [0.4, 0.8], [-0.8, -1.6], [0, 0]]),
        ({"j2": 1.0}, {"j3": 2.0}, [[-0.625, 0.0], [-0.5, 0.0], [1.0, 0.0], [0, 2.0]]),
    ):
        state = jointed_state(system, given, rate)
        np.testing.assert_allclose(readings(system, state, *names), wanted, atol=1e-12)
        at = given.get("root", np.zeros(6))
        np.testing.assert_allclose(state.position[0], at[:3], atol=1e-14)
        R = Rotation.from_quat(state.orientation[0], scalar_first=True)
        np.testing.assert_allclose(R.as_rotvec(), at[3:], atol=1e-13)
    angles = jointed_state(system, {"j2": 9.0}).angles
    np.testing.assert_allclose([angles[name] for name in names], [-5.625, -4.5, 9.0, 0.0])
    driven = finger(motion=lambda t: 0.3 + 2.0 * t)
    found = readings(driven, jointed_state(driven, {"j3": 0.1}), "j1", "j2", "j3")
    np.testing.assert_allclose(found, [[0.24, 1.6], [-0.48, -3.2], [0.1, 0.0]], atol=1e-12)
    with pytest.raises(ValueError, match="given for 'j1' and 'j0' contradict the 'coupling j1 by"):
        jointed_state(system, {"j0": 0.5, "j1": 0.5})
    with pytest.raises(ValueError, match="contradict .*a joint without a rate is at rest"):
        jointed_state(system, {"j0": 0.5, "j1": 0.4}, {"j0": 1.0})

    def tip(q):
        return jointed_state(system, {"j0": q}).position[-1]

    q, h = jnp.array([0.3, 0.6]), 1e-6
    slopes = jax.jit(jax.vmap(jax.jacfwd(tip)))(q)
    for k in range(2):
        np.testing.assert_allclose(slopes[k], (tip(q[k] + h) - tip(q[k] - h)) / (2 * h), atol=1e-8)
