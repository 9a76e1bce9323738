"""Parent and child of every joint swapped: the same motion, the opposite reactions."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from metamorphic.mechanisms import FAST, FORMULATIONS
from metamorphic.transforms import replace_fields

import rigidjax as rj
from rigidjax.joints.replacing import rename_joint
from rigidjax.rotations.euler_map import euler_map
from rigidjax.rotations.so3 import exp_quaternion

AXIS, OTHER = (0.6, 0.0, 0.8), (0.8, 0.0, -0.6)
T1 = 0.3


class Waves(eqx.Module):
    """A motion whose opposite has another amplitude."""

    amplitude: jax.Array = eqx.field(converter=jnp.asarray)

    def __call__(self, t):
        return self.amplitude * jnp.sin(4.0 * t)


# A chain of bodies with these joints, the first one to the ground; most of the time goes into the
# compilation of loops, which two do not have.
JOINTS = {
    "two": (
        lambda a, b, p: rj.Revolute(a, b, p, AXIS),
        lambda a, b, p: rj.Screw(a, b, p, OTHER, 0.3),
    ),
    "turning": (
        lambda a, b, p: rj.Revolute(a, b, p, AXIS, motion=Waves(0.4)),
        lambda a, b, p: rj.Revolute(a, b, p, OTHER),
        lambda a, b, p: rj.Universal(a, b, p, AXIS, OTHER),
        lambda a, b, p: rj.Weld(a, b, p),
        lambda a, b, p: rj.Spherical(a, b, p),
    ),
    "sliding": (
        lambda a, b, p: rj.Prismatic(a, b, AXIS, point=p),
        lambda a, b, p: rj.Cylindrical(a, b, p, OTHER),
        lambda a, b, p: rj.Screw(a, b, p, AXIS, 0.3),
        lambda a, b, p: rj.Planar(a, b, p, OTHER),
        lambda a, b, p: rj.Prismatic(a, b, OTHER, Waves(0.1), p),
    ),
}


def chain(kind):
    """Return bodies on these joints; with several bodies a rod at the last one closes a loop."""
    made = JOINTS[kind]
    points = np.array([0.0, 0.1, 0.0]) + 0.5 * np.arange(len(made) + 1)[:, None] * np.eye(3)[1]
    names = ["ground", *(f"body {k}" for k in range(len(made)))]
    bodies = [
        rj.Body(name, 1.0 + 0.3 * k, (0.03, 0.01 + 0.01 * k, 0.025), 0.5 * (a + b) + 0.05)
        for k, (name, a, b) in enumerate(zip(names[1:], points, points[1:], strict=False))
    ]
    joints = [j(a, b, p) for j, a, b, p in zip(made, names, names[1:], points, strict=False)]
    if kind != "two":
        joints.append(rj.Distance("ground", names[-1], (0.4, 2.0, 1.0), points[-1]))
    spring = rj.Spring("ground", names[2], (1.0, 1.0, 0.0), points[2], stiffness=30.0, length=0.5)
    return rj.System(bodies, joints, [rj.Gravity((2.0, -1.0, -9.0)), spring])


def swap_ends(joint):
    """Return the joint with parent and child exchanged."""
    new = {}
    if isinstance(joint, rj.Universal):
        new = {"axis1": joint.axis2, "axis2": joint.axis1}
    if isinstance(joint, rj.Distance):
        new = {"parent_point": joint.child_point, "child_point": joint.parent_point}
    if getattr(joint, "motion", None) is not None:
        new = {"motion": Waves(-joint.motion.amplitude)}
    return rename_joint(replace_fields(joint, **new), joint.name, joint.child, joint.parent)


def evaluate_state(model, state):
    """Accelerations and reactions in a state."""

    def evaluate(model, state):
        y = model.pack(state, t=T1)
        return model.accelerations(T1, y), model.reactions(T1, y)

    return jax.tree.map(np.asarray, jax.jit(evaluate, compiler_options=FAST)(model, state))


def moving(system):
    """A state that is neither at rest nor in the reference configuration."""
    if not system.topology.loops:
        return rj.joint_states(system, [0.4, -0.7], [1.0, 2.0])
    rng = np.random.default_rng(4)
    shape = (system.num_bodies, 3)
    still = system.reference_state()
    turn = jnp.vectorize(exp_quaternion, signature="(3)->(4)")(0.2 * rng.normal(size=shape))
    position = still.position + 0.1 * rng.normal(size=shape)
    guess = rj.State(position, turn, rng.normal(size=shape), rng.normal(size=shape))
    return rj.consistent_state(system, guess, t=T1)


def at_joints(system, state):
    """Where the joint points of parent and child are, space components."""
    bodies = {body.name: (body, k) for k, body in enumerate(system.bodies)}

    def place(name, point):
        if name == "ground":
            return np.asarray(point)
        body, k = bodies[name]
        turn = euler_map(state.orientation[k]) @ euler_map(body.orientation).T
        return np.asarray(state.position[k] + turn @ (point - body.position))

    return {
        joint.name: tuple(map(place, (joint.parent, joint.child), joint.points()))
        for joint in system.joints
    }


@pytest.mark.exhaustive
@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("kind", JOINTS)
def test_motion_does_not_depend_on_the_order_of_parent_and_child(kind, formulation):
    system = chain(kind)
    other = rj.System(system.bodies, [swap_ends(joint) for joint in system.joints], system.forces)
    make = FORMULATIONS[formulation]
    model, turned = make(system), make(other)
    state = moving(system)
    (w, reactions), (moved, opposite) = evaluate_state(model, state), evaluate_state(turned, state)
    np.testing.assert_allclose(moved.linear, w.linear, atol=1e-9)
    np.testing.assert_allclose(moved.angular, w.angular, atol=1e-9)
    assert list(opposite) == list(reactions)
    for name, (parent, child) in at_joints(system, state).items():
        one, two = reactions[name], opposite[name]
        np.testing.assert_allclose(two.force, -one.force, atol=1e-8)
        # The moment about the parent's joint point, which is the other one where a joint slides.
        moment = one.moment + np.cross(child - parent, one.force)
        np.testing.assert_allclose(two.moment, -moment, atol=1e-8)
        assert (one.drive is None) == (two.drive is None)
        if one.drive is not None:
            np.testing.assert_allclose(two.drive, -one.drive, atol=1e-8)
