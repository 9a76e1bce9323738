"""States that joints cannot have: an error, also where only a derivative is wanted."""

import equinox as eqx
import jax.numpy as jnp
import pytest

import rigidjax as rj


@pytest.fixture(scope="module")
def crank():
    """A crank of 1 m and a rod of 1.5 m to a slider that is driven away at 1 m/s, from 2.5 m."""
    bodies = [
        rj.Body("crank", 1.0, (0.1, 0.1, 0.1), (0.5, 0.0, 0.0)),
        rj.Body("rod", 1.0, (0.1, 0.1, 0.1), (1.75, 0.0, 0.0)),
        rj.Body("slider", 1.0, (0.1, 0.1, 0.1), (2.5, 0.0, 0.0)),
    ]
    joints = [
        rj.Revolute("ground", "crank", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
        rj.Revolute("crank", "rod", (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
        rj.Revolute("rod", "slider", (2.5, 0.0, 0.0), (0.0, 0.0, 1.0)),
        rj.Prismatic("ground", "slider", (1.0, 0.0, 0.0), motion=lambda t: t),
    ]
    return rj.System(bodies, joints)


def bend_joint(system):
    """A guess with the joint between crank and rod off the line."""
    state = system.reference_state()
    return eqx.tree_at(lambda s: s.position, state, state.position + jnp.array([[0.0, 0.1, 0.0]]))


def test_unreachable_states_raise(crank):
    with pytest.raises(ValueError, match="cannot be closed from these positions"):
        rj.consistent_state(crank, bend_joint(crank), 0.5)


def test_invalid_arguments_raise(crank):
    with pytest.raises(TypeError, match="`consistent_state` takes a `System`; got NullSpace"):
        rj.consistent_state(rj.NullSpace(crank))
    with pytest.raises(ValueError, match="has 3 bodies, the state has 1. Give `State` one row"):
        rj.consistent_state(crank, rj.State())
