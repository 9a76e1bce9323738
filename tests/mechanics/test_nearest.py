"""The smallest change of twists that tree joints ask for: body after body, and by multipliers."""

import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj
from rigidjax import native
from rigidjax.bodies.inertia import inertia_tensor
from rigidjax.mechanics.dynamics.articulated_body import least_change_of_trees
from rigidjax.mechanics.dynamics.select import tree_constraints
from rigidjax.mechanics.kinematics.constraints import constraint_jacobian
from rigidjax.mechanics.kinematics.poses import joint_frames_at


def body(name, x):
    return rj.Body(name, 1.0 + 0.3 * len(name), (0.1, 0.2, 0.25), position=x)


def mixed_system():
    """Joints of most kinds, one from child to parent, a branch, a body on no joint."""
    bodies = [
        body(name, x)
        for name, x in (
            ("a", (0.5, 0, 0)), ("bb", (1.5, 0, 0)), ("c", (0.5, 1, 0)), ("free", (3, 1, 2)),
            ("e", (1.5, 1, 0)), ("f", (2.5, 1, 0.5)), ("g", (2.5, 0, 0)),
        )
    ]  # fmt: skip
    joints = [
        rj.Revolute("ground", "a", (0, 0, 0), (0, 0.6, 0.8)),
        rj.Universal("a", "bb", (1, 0, 0), (0, 1, 0), (0, 0, 1)),
        rj.Prismatic("a", "c", (0, 1, 0)),
        rj.Cylindrical("e", "c", (1, 1, 0), (1, 0, 0)),
        rj.Weld("f", "e"),
        rj.Screw("bb", "g", (2, 0, 0), (1, 0, 0), 0.1),
    ]
    return rj.System(bodies, joints)


def test_projection_equals_lagrange_multipliers():
    """In open joints too, whose null-space columns are right to first order only."""
    system = mixed_system()
    model = rj.NullSpace(system)
    rng, count = np.random.default_rng(3), system.num_bodies
    y = model.encode(system.reference_state()) + 0.05 * rng.normal(size=model.num_unknowns)
    poses = y[: 7 * count].reshape(count, 7)
    unit = poses[:, 3:] / jnp.linalg.norm(poses[:, 3:], axis=1, keepdims=True)
    y = y.at[: 7 * count].set(jnp.concatenate([poses[:, :3], unit], axis=1).ravel())
    t = jnp.zeros(())

    def both(y, residual):
        prepared, poses = model.prepared_system, model.poses(t, y)
        joint_frames = joint_frames_at(prepared, poses)
        inertias = jax.vmap(inertia_tensor)(prepared.inertias)
        found = least_change_of_trees(
            prepared, t, poses, joint_frames, inertias, prepared.masses, residual
        )
        joints = tree_constraints(prepared, t, joint_frames, inertias, prepared.masses)
        G = constraint_jacobian(prepared, t, joint_frames, trees_only=True)
        return found, joints.correction(residual), jnp.tensordot(G, found, 2) + residual

    residual = jnp.asarray(rng.normal(size=model.prepared_system.num_tree_constraints))
    for function in (jax.jit(both), native.jit(both)):
        found, expected, gap = function(y, residual)
        np.testing.assert_allclose(found, expected, atol=1e-12 * np.abs(expected).max() * count)
        np.testing.assert_allclose(gap, 0.0, atol=1e-12)
