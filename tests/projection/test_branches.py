"""Children that are the wrong way round in their joints, where sines vanish, too."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.rotations.so3 import exp_quaternion

AXIS = (0.0, 0.0, 1.0)
JOINTS = {
    "weld": rj.Weld("ground", "weld"),
    "revolute": rj.Revolute("ground", "revolute", (0.0, 0.0, 0.0), AXIS),
    "prismatic": rj.Prismatic("ground", "prismatic", AXIS),
    "cylindrical": rj.Cylindrical("ground", "cylindrical", (0.0, 0.0, 0.0), AXIS),
    "planar": rj.Planar("ground", "planar", (0.0, 0.0, 0.0), AXIS),
    "screw": rj.Screw("ground", "screw", (0.0, 0.0, 0.0), AXIS, 0.1),
    "driven": rj.Revolute("ground", "driven", (0.0, 0.0, 0.0), AXIS, motion=lambda t: 0.0 * t),
}
NAMES = list(JOINTS)


def system_of(names):
    joints = [rj.joints.replacing.rename_joint(JOINTS[name], f"the {name}") for name in names]
    return rj.System([rj.Body(name, 2.0, (0.1, 0.2, 0.25)) for name in names], joints)


SYSTEM = system_of(NAMES)
MODEL = rj.NullSpace(SYSTEM)


def turned_state(angles, shift=0.0):
    """The reference state, every body turned about the first axis, rad."""
    orientation = jax.vmap(exp_quaternion)(jnp.asarray(angles)[:, None] * jnp.array([[1.0, 0, 0]]))
    position = jnp.tile(jnp.array([shift, shift, 0.0]), (len(angles), 1))
    return rj.State(position, orientation, jnp.zeros_like(position), jnp.zeros_like(position))


@pytest.mark.parametrize("name", NAMES)
def test_half_a_revolution_raises(name):
    state = turned_state(np.where(np.array(NAMES) == name, np.pi, 0.0))
    match = f"the joint 'the {name}' is the wrong way round: .* Got 180 degrees"
    with pytest.raises(ValueError, match=match):
        MODEL.encode(state)


def test_half_a_revolution_raises_under_jit():
    encode = eqx.filter_jit(lambda angles: MODEL.encode(turned_state(angles)))
    np.testing.assert_allclose(encode(jnp.zeros(7))[3], 1.0)
    with pytest.raises(eqx.EquinoxRuntimeError, match="'the planar' is the wrong way round"):
        jax.block_until_ready(encode(jnp.zeros(7).at[4].set(np.pi)))


@pytest.mark.parametrize("angle", [1.0, 1.6, 2.4, 3.1])
def test_consistent_state_avoids_the_half_revolution(angle):
    """The nearest state is the reference: bodies turn about the axis by which they were turned."""
    names = ["weld", "planar", "driven"]
    state = rj.consistent_state(system_of(names), turned_state(np.full(len(names), angle), 0.2))
    np.testing.assert_allclose(np.abs(state.orientation[:, 0]), 1.0, atol=1e-12)
    np.testing.assert_allclose(state.position[0], 0.0, atol=1e-12)
    np.testing.assert_allclose(state.position[names.index("planar")], [0.2, 0.2, 0.0], atol=1e-12)
