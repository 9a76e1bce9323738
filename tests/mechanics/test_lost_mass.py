"""Inertia removed after a system was built, whose methods depend on it."""

import equinox as eqx
import jax.numpy as jnp
import pytest

import rigidjax as rj

PROBLEM = rj.problems.chain(17, "spherical")
MODEL = rj.NullSpace(PROBLEM.system)
MESSAGE = "A body has no inertia about an axis, but had it when its `System` was made"


def without(inertia):
    return eqx.tree_at(lambda m: m.system.bodies[3].inertia, MODEL, jnp.asarray(inertia))


@pytest.mark.parametrize("inertia", [(0.0, 0.0, 0.0), (1.0, 1.0, 0.0)])
def test_lost_inertia_raises(inertia):
    assert PROBLEM.system.has_all_mass
    model = without(inertia)
    with pytest.raises(ValueError, match=MESSAGE):
        model.check_state(PROBLEM.state0)

    @eqx.filter_jit
    def check_mass(system, state):
        return system.with_all_mass(state)

    with pytest.raises(eqx.EquinoxRuntimeError, match=MESSAGE):
        check_mass(model.system, PROBLEM.state0)
    kept = check_mass(without((1.0, 1.0, 1e-6)).system, PROBLEM.state0)
    assert eqx.tree_equal(kept, PROBLEM.state0)
