"""Scalar operations of the right-hand sides' hot path, as traced."""

import collections

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rotations import cases

from rigidjax.rotations import EulerAngles

# Moving numbers about is free.
FREE = {"slice", "squeeze", "unstack", "stack", "reshape", "broadcast_in_dim", "transpose"}
FREE |= {"concatenate", "convert_element_type", "copy"}


def count(jaxpr) -> collections.Counter:
    """Count scalar operations by primitive, including sub-jaxprs."""
    total = collections.Counter()
    for equation in jaxpr.eqns:
        inner = [v for v in equation.params.values() if hasattr(v, "jaxpr") or hasattr(v, "eqns")]
        for program in inner:
            total += count(getattr(program, "jaxpr", program))
        if not inner and equation.primitive.name not in FREE:
            total[equation.primitive.name] += int(np.prod(equation.outvars[0].aval.shape))
    return total


RATE = {
    "Quaternion": {"mul": 15, "add": 2, "sub": 6},
    "Directors": {"mul": 18, "sub": 9},
    "RodriguesParameters": {"mul": 15, "add": 8, "sub": 3},
    "ConformalRotationVector": {"mul": 23, "add": 10, "sub": 4},
}


@pytest.mark.parametrize("rates", ["body", "space"])
@pytest.mark.parametrize("rotation", cases.ROTATIONS, ids=cases.name)
def test_operations_of_the_rate(rotation, rates):
    a, omega = rotation.center() + 0.1, jnp.ones(3)
    found = count(jax.make_jaxpr(lambda a, w: rotation.rate(a, w, rates))(a, omega).jaxpr)
    assert "dot_general" not in found
    if isinstance(rotation, EulerAngles):
        assert sum(found.values()) == 13
        assert found["sin"] == found["cos"] == 2
        assert found["div"] == 1
    elif cases.name(rotation) in RATE:
        assert found == RATE[cases.name(rotation)]
    else:
        # The series, or the root that stands for the cosine, and their guards.
        bound = {"RotationVector": 80, "LinearParameters": 43}
        assert sum(found.values()) <= bound[cases.name(rotation)]


@pytest.mark.parametrize("rotation", cases.ROTATIONS, ids=cases.name)
def test_the_matrix_and_the_angular_velocity_have_no_matrix_products(rotation):
    a = rotation.center() + 0.1
    for function in (rotation.to_matrix, lambda a: rotation.angular_velocity(a, a)):
        assert "dot_general" not in count(jax.make_jaxpr(function)(a).jaxpr)
