"""Constraints that name frames, against constraints on bodies with explicit transformations."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.rotations.euler_map import euler_map

TURNED = np.array([0.8, 0.0, 0.6, 0.0])
POINTS = {"a": jnp.array([0.5, 0.1, 0.0]), "b": jnp.array([-0.5, 0.0, 0.2])}
GRAVITY = rj.Gravity((0.0, 0.0, -9.81))


def rods():
    return [rj.Body(n, 2.0, (0.1, 0.2, 0.25), (x, 0, 0)) for n, x in (("a", 0.5), ("b", 2.5))]


def frames(point=POINTS["a"]):
    return [rj.Frame("tip", "a", point, TURNED), rj.Frame("tail", "b", POINTS["b"])]


def rod(first, second, at=None):
    """Constrain the distance of two points, on bodies if `at` gives the points there."""

    def gap(t, poses):
        (xa, Ra), (xb, Rb) = poses[first], poses[second]
        apart = xb - xa if at is None else xb + Rb @ at[second] - xa - Ra @ at[first]
        return jnp.sqrt(jnp.sum(apart**2)) - 1.0

    return rj.Constraint(gap, [first, second], name="rod")


def sliding(frame, at=None):
    """Constrain the velocity of a point along its first axis, and the rotation about its second."""

    def slip(t, poses, twists):
        (_, R), (v, omega) = poses[frame], twists[frame]
        if at is not None:
            turn = euler_map(jnp.asarray(TURNED))
            v, R, omega = v + R @ jnp.cross(omega, at), R @ turn, turn.T @ omega
        return jnp.stack([(R.T @ v)[0], omega[1]])

    return rj.VelocityConstraint(slip, frame, name="slip")


def moving(system):
    state = system.reference_state()
    omega = jnp.array([[0.1, 0.2, 0.3], [1.0, -0.5, 0.2]])
    state = eqx.tree_at(lambda s: s.angular_velocity, state, omega)
    return rj.consistent_state(system, state)


def test_accelerations_and_reactions():
    given = [
        rj.System(rods(), [rod("a", "b", POINTS), sliding("a", POINTS["a"])], [GRAVITY]),
        rj.System(rods(), [rod("tip", "tail"), sliding("tip")], [GRAVITY], frames()),
    ]
    state = moving(given[0])
    first, second = map(rj.NullSpace, given)
    y = first.encode(state)
    np.testing.assert_allclose(second.encode(state), y, atol=1e-13)
    found = [model.accelerations(0.0, y) for model in (first, second)]
    assert float(jnp.abs(found[0].angular).max()) > 0.1
    np.testing.assert_allclose(found[0].linear, found[1].linear, atol=1e-11)
    np.testing.assert_allclose(found[0].angular, found[1].angular, atol=1e-11)
    one, two = (model.reactions(0.0, y) for model in (first, second))
    for name in ("rod", "slip"):
        assert one[name].bodies == two[name].bodies
        np.testing.assert_allclose(one[name].force, two[name].force, atol=1e-11)
        np.testing.assert_allclose(one[name].moment, two[name].moment, atol=1e-11)


def test_unknown_names_raise():
    with pytest.raises(ValueError, match="no body or frame called 'tipp'.*'tip'"):
        rj.System(rods(), [rod("tipp", "tail")], (), frames())
