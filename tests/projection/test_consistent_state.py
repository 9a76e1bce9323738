"""States that joints cannot have: an error, also where only a derivative is wanted."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.native.passes.analysis import sub_jaxprs


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


@pytest.mark.exhaustive
def test_consistent_state_is_a_kernel(crank):
    """Alone, in batches and with derivatives, only checks are left to XLA."""

    def close_crank(state):
        return rj.consistent_state(crank, state).position

    def names(program):
        for one in program.eqns:
            yield one.primitive.name
            if one.primitive.name != "native_call":
                for inner in sub_jaxprs(one):
                    yield from names(inner)

    state = bend_joint(crank)
    many = jax.tree.map(lambda x: jnp.stack([x, x]), state)
    for function, at in (
        (close_crank, state),
        (jax.jacrev(close_crank), state),
        (jax.vmap(close_crank), many),
    ):
        found = set(names(jax.make_jaxpr(function)(at).jaxpr))
        assert "native_call" in found
        assert not found & {"svd", "while", "scan", "dot_general"}


def test_unreachable_states_raise(crank):
    with pytest.raises(ValueError, match="cannot be closed from these positions"):
        rj.consistent_state(crank, bend_joint(crank), 0.5)


def test_invalid_arguments_raise(crank):
    with pytest.raises(TypeError, match="`consistent_state` takes a `System`; got NullSpace"):
        rj.consistent_state(rj.NullSpace(crank))
    with pytest.raises(ValueError, match="has 3 bodies, the state has 1. Give `State` one row"):
        rj.consistent_state(crank, rj.State())


@pytest.mark.exhaustive
def test_derivatives_against_differences(crank):
    guess = bend_joint(crank)
    compiled = eqx.filter_jit(jax.jacfwd(lambda t: rj.consistent_state(crank, guess, t).position))
    # The slider goes with the drive.
    np.testing.assert_allclose(compiled(-0.5)[2], [1.0, 0.0, 0.0], atol=1e-9)
    with pytest.raises(eqx.EquinoxRuntimeError, match="cannot be closed from these positions"):
        jax.block_until_ready(compiled(0.5))
