"""Runs that start from joint coordinates, also while the geometry is being fitted."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj


def pendulum(length=0.5):
    body = rj.Body("bob", 1.0, (0.01, 0.01, 0.01), (0, 0, -length))
    hinge = rj.Revolute("ground", "bob", (0, 0, 0), (0, 1, 0), name="hinge")
    return rj.System(body, [hinge], rj.Gravity((0, 0, -9.81)))


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
