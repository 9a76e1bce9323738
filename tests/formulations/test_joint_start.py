"""Runs that start from joint coordinates, also while the geometry is being fitted."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rigidjax as rj
from rigidjax.rotations import so3


def pendulum(length=0.5):
    body = rj.Body("bob", 1.0, (0.01, 0.01, 0.01), (0, 0, -length))
    hinge = rj.Revolute("ground", "bob", (0, 0, 0), (0, 1, 0), name="hinge")
    return rj.System(body, [hinge], rj.Gravity((0, 0, -9.81)))


@pytest.mark.exhaustive
def test_unknowns_agree_with_joint_states():
    system, q, v = pendulum(), np.array([0.7]), np.array([-1.3])
    state = rj.joint_states(system, q, v)
    model, plain = rj.JointStart(system, q, v), rj.NullSpace(system)
    assert model.num_unknowns == plain.num_unknowns and model.layout == plain.layout
    # Whatever state it is given.
    y = model.encode(system.reference_state())
    np.testing.assert_allclose(y, plain.encode(state), atol=1e-15)
    np.testing.assert_allclose(model.vector_field(0.0, y), plain.vector_field(0.0, y), atol=1e-13)
    position = 0.5 * np.array([-np.sin(0.7), 0, -np.cos(0.7)])
    np.testing.assert_allclose(model.decode(0.0, y).position[0], position, atol=1e-15)


def test_derivatives_by_geometry():
    """The start follows a change of geometry: energy by the length, against its closed form."""
    system, v = pendulum(), 1.2
    model = rj.JointStart(system, [0.4], [v])
    where = lambda m: m.system.bodies[0].position  # noqa: E731

    @jax.jit
    def energy(length):
        moved = eqx.tree_at(where, model, jnp.stack([0 * length, 0 * length, -length]))
        return moved.energy(0.0, moved.encode(system.reference_state()))

    expected = 0.5 * v * v - 9.81 * np.cos(0.4)  # by l: kinetic energy l v^2 at l = 0.5
    np.testing.assert_allclose(jax.grad(energy)(0.5), expected, rtol=1e-12)


def test_run_agrees_with_joint_states():
    """By value, and its derivative by the length of a body: the start moves with the geometry."""
    system, q, v = pendulum(), np.array([0.7]), np.array([-1.3])
    settings = dict(t1=0.2, dt=0.02, throw=False)

    @jax.jit
    def ends(length):
        moved = eqx.tree_at(
            lambda s: s.bodies[0].position, system, jnp.stack([0 * length, 0 * length, -length])
        )
        state = rj.joint_states(moved, q, v)
        return [
            rj.simulate(model, start, **settings).ys[-1]
            for model, start in (
                (rj.JointStart(moved, q, v), system.reference_state()),
                (rj.NullSpace(moved), state),
            )
        ]

    (a, b), (da, db) = jax.jvp(ends, (jnp.asarray(0.5),), (jnp.asarray(1.0),))
    np.testing.assert_allclose(a, b, atol=1e-13)
    np.testing.assert_allclose(da, db, atol=1e-11)


def test_invalid_input_raises():
    with pytest.raises(ValueError, match=r"JointStart\(rates=...\)` must have shape \(1,\)"):
        rj.JointStart(pendulum(), [0.0], [0.0, 1.0])
    with pytest.raises(ValueError, match=r"JointStart\(coordinates=...\)` must be finite"):
        rj.JointStart(pendulum(), [np.nan])
    with pytest.raises(TypeError, match="takes a `System`; got FixedPointBody"):
        rj.JointStart(rj.FixedPointBody((1.0, 1.0, 1.0)))
    distance = rj.Distance("ground", "bob", (0, 0, 1.0), (0, 0, -0.5), name="rope")
    with pytest.raises(ValueError, match=r"\['rope'\] close loops. Give states"):
        rj.JointStart(rj.System(pendulum().bodies, [*pendulum().joints, distance]))


def robot(named):
    """A floating base with an arm on a hinge, a ball on the arm, and a prescribed slider."""
    box = (0.01, 0.02, 0.03)
    base = rj.Body("base", 2.0, box, (0.3, 0, 1), (0.8, 0, 0.6, 0))
    arm = rj.Body("arm", 1.0, box, (0.9, 0, 1))
    ball = rj.Body("ball", 0.5, box, (1.4, 0.1, 1))
    mass = rj.Body("mass", 0.5, box, (0.3, 0.4, 1))
    joints = [
        rj.Revolute("base", "arm", (0.6, 0, 1), axis=(0, 1, 0), name="hinge"),
        rj.Spherical("arm", "ball", (1.2, 0, 1), name="socket"),
        rj.Prismatic("base", "mass", axis=(0, 1, 0), motion=lambda t: 0.2 * t**2, name="slide"),
    ]
    free = [rj.Free("base", name="float")] if named else []
    return rj.System([base, arm, ball, mass], [*free, *joints])


@pytest.mark.parametrize("named", [True, False], ids=["Free", "no joint"])
@pytest.mark.exhaustive
def test_floating_tree_with_a_ball_and_a_prescribed_joint(named):
    """At t = 0.7 s, against the state in which these joints have these coordinates."""
    system, t = robot(named), 0.7
    pose, twist = [0.1, -0.2, 0.9, 0.3, 0.5, -0.4], [0.4, 0.2, -0.3, 1.0, -0.6, 0.7]
    turn, spin = [0.2, -0.7, 0.5], [0.3, 1.1, -0.9]
    model = rj.JointStart(system, [*pose, 0.8, *turn], [*twist, -1.2, *spin])
    state = model.decode(t, model.encode(None, t))
    rj.NullSpace(system).encode(state, t)  # The joints allow it.
    np.testing.assert_allclose(state.position[0], pose[:3], atol=1e-15)
    np.testing.assert_allclose(state.velocity[0], twist[:3], atol=1e-15)
    np.testing.assert_allclose(state.angular_velocity[0], twist[3:], atol=1e-15)
    rotation = jax.vmap(so3.exp)(jnp.asarray([pose[3:]]))[0]
    found = np.asarray(Rotation.from_quat(state.orientation[0], scalar_first=True).as_matrix())
    np.testing.assert_allclose(found, rotation, atol=1e-15)
    q, nu = rj.NullSpace(system).joint_coordinates(t, model.encode(None, t))
    np.testing.assert_allclose(q["hinge"], [0.8], atol=1e-14)
    np.testing.assert_allclose(nu["hinge"], [-1.2], atol=1e-14)
    np.testing.assert_allclose(q["socket"], turn, atol=1e-14)
    np.testing.assert_allclose(nu["socket"], spin, atol=1e-14)
    np.testing.assert_allclose(q["slide"], [0.2 * t**2], atol=1e-14)
    np.testing.assert_allclose(nu["slide"], [0.4 * t], atol=1e-14)
    assert model.coordinates.shape == (10,)


@pytest.mark.exhaustive
def test_omitted_coordinates_default_to_the_reference_configuration():
    system = robot(True)
    model = rj.JointStart(system)
    state, reference = model.decode(0.0, model.encode(None)), system.reference_state()
    np.testing.assert_allclose(state.position, reference.position, atol=1e-15)
    np.testing.assert_allclose(np.abs(np.sum(state.orientation * reference.orientation, 1)), 1.0)
