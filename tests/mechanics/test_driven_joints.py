"""Joints with a prescribed motion, a rotor and damping: all that the motion needs is its drive."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj

T, DAMPING, ARMATURE = 0.3, 0.7, 0.4


def angle(t):
    return 0.3 * jnp.sin(2.0 * t)


def shift(t):
    return 0.1 * jnp.cos(3.0 * t) - 0.1


def arm(**options):
    """A driven hinge and a driven slider on a base that is free to turn."""
    bodies = [
        rj.Body("base", 2.0, (0.3, 0.4, 0.5), (0.2, 0.0, 0.1)),
        rj.Body("arm", 1.3, (0.02, 0.05, 0.06), (0.7, 0.0, 0.1)),
        rj.Body("tool", 0.4, (0.01, 0.02, 0.02), (1.1, 0.1, 0.1)),
    ]
    joints = [
        rj.Revolute("ground", "base", (0, 0, 0), (0, 0.3, 1), name="free", damping=0.2),
        rj.Revolute("base", "arm", (0.4, 0, 0.1), (0, 1, 0.2), angle, "hinge", **options),
        rj.Prismatic("arm", "tool", (1, 0, 0.5), motion=shift, name="slider", **options),
    ]  # fmt: skip
    return rj.System(bodies, joints, rj.Gravity((0.0, 0.0, -9.81)))


def placed(system):
    state = eqx.tree_at(
        lambda s: s.angular_velocity, system.reference_state(), 0.5 * jnp.ones((3, 3))
    )
    model = rj.NullSpace(system)
    return model, model.encode(rj.consistent_state(system, state, T), T)


def test_drive_includes_armature_and_damping():
    """Motion, forces on the child and other drives stay as they are without both."""
    plain, y = placed(arm())
    model, z = placed(arm(damping=DAMPING, armature=ARMATURE))
    np.testing.assert_allclose(model.vector_field(T, z), plain.vector_field(T, y), atol=1e-11)
    t = jnp.asarray(T)
    mine, theirs = model.reactions(T, z), plain.reactions(T, y)
    for joint in model.system.joints:
        if not joint.is_driven:
            continue
        first, second = jax.grad(joint.motion), jax.grad(jax.grad(joint.motion))
        more = DAMPING * first(t) + ARMATURE * second(t)
        found = mine[joint.name].drive - theirs[joint.name].drive
        np.testing.assert_allclose(found, more, atol=1e-11)
        read = rj.JointTorque(joint.name).predict(model, t, z)
        np.testing.assert_allclose(read, mine[joint.name].drive, rtol=1e-14)
