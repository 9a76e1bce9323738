"""Names and order of bodies, joints and forces, and bodies that have nothing to do with others."""

import functools

import numpy as np
import pytest
from metamorphic import mechanisms
from metamorphic.mechanisms import mechanism, sizes
from metamorphic.transforms import reorder


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
