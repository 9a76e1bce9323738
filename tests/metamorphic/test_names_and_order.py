"""Names and order of bodies, joints and forces, and bodies that have nothing to do with others."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest
from metamorphic import mechanisms
from metamorphic.mechanisms import BUILD, FORMULATIONS, mechanism, sizes
from metamorphic.transforms import reorder

import rigidjax as rj


@functools.cache
def base(name, formulation):
    system, state = mechanism(name)
    out = mechanisms.alone(formulation, system, state)
    return system, state, out, sizes(system, out)


def compare(found, out, size, rows, called=None, sign=1.0, tolerance=1e-10):
    assert np.abs(found[0].linear[rows] - out[0].linear).max() <= tolerance * size["linear"]
    assert np.abs(found[0].angular[rows] - out[0].angular).max() <= tolerance * size["angular"]
    for joint, (force, moment) in out[1].items():
        other = found[1][joint if called is None else called[joint]]
        assert np.abs(sign * other[0] - force).max() <= tolerance * size["force"]
        assert np.abs(sign * other[1] - moment).max() <= tolerance * size["moment"]


@pytest.mark.exhaustive("bricard-null space")
@pytest.mark.parametrize(
    ("name", "formulation"), [("bricard", "null space"), ("chain", "absolute")]
)
def test_motion_does_not_depend_on_names_and_order(name, formulation):
    """Other trees are cut from the same loops: also reactions that are not unique are the same."""
    system, state, out, size = base(name, formulation)
    other, moved, order, called = reorder(system, state, 3)
    found = mechanisms.alone(formulation, other, moved)
    compare(found, out, size, np.argsort(order), called)


def with_bystanders(system, state, massless):
    """A body far away that moves, before all others, and a point of 1e-30 kg welded to the last
    one."""
    far = rj.Body("far", 3.0, (0.2, 0.3, 0.4), (100.0, -200.0, 50.0))
    bodies, joints = [far, *system.bodies], list(system.joints)
    rows = [-1]
    if massless:
        host = system.bodies[-1]
        point = rj.Body("point", 1e-30, (0.0, 0.0, 0.0), host.position, host.orientation)
        bodies.append(point)
        joints.append(rj.Weld(host.name, "point", host.position))
    own = [(100.0, -200.0, 50.0), (1.0, 0.0, 0.0, 0.0), (3.0, 1.0, -2.0), (0.5, 2.0, -1.0)]
    parts = (state.position, state.orientation, state.velocity, state.angular_velocity)
    last = rows * massless
    joined = [
        jnp.concatenate([jnp.asarray(first)[None], part, part[last]])
        for first, part in zip(own, parts, strict=True)
    ]
    return rj.System(bodies, joints, system.forces), rj.State(*joined)


@pytest.mark.parametrize(
    ("name", "formulation"),
    [
        pytest.param(
            name,
            form,
            marks=() if (name, form) == ("two_bodies", "null space") else pytest.mark.exhaustive,
        )
        for name in BUILD
        for form in FORMULATIONS
    ],
)
@pytest.mark.exhaustive
def test_unconnected_bodies_do_not_change_the_motion(name, formulation):
    system, state, out, size = base(name, formulation)
    other, more = with_bystanders(system, state, formulation == "null space")
    found = mechanisms.alone(formulation, other, more)
    compare(found, out, size, slice(1, 1 + system.num_bodies))
