"""The characteristic lengths of mechanisms."""

import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj
from rigidjax.mechanics.kinematics.constraints import constraint_owners, constraint_units
from rigidjax.mechanics.stacked.system import PreparedSystem


def system(size=1.0, mass=1.0, shift=0.0):
    """Two rods of a pendulum, a wheel on an axle through its centre, a rod between two points."""
    far = np.array([shift, 2.0 * shift, -shift])
    at = lambda x, y: size * np.array([x, y, 0.0]) + far  # noqa: E731
    inertia = np.array([0.01, 0.3, 0.3])
    body = lambda name, x, y, m=1.0: rj.Body(  # noqa: E731
        name, m * mass, m * mass * size**2 * inertia, at(x, y)
    )
    bodies = [body("one", 0.5, 0), body("two", 1.25, 0), body("wheel", 0, 7), body("bob", 9, 9)]
    joints = [
        rj.Revolute("two", "one", at(1, 0), (0, 0, 1)),
        rj.Spherical("ground", "one", at(0, 0)),
        rj.Revolute("ground", "wheel", at(0, 7), (0, 0, 1)),
        rj.Distance("ground", "bob", at(6, 9), at(9, 9)),
    ]
    return rj.System([*bodies, body("free", 50, 50, 4.0)], joints)


def test_every_mechanism_has_its_own_length():
    radius = np.sqrt(0.5 * 0.61)
    lengths = PreparedSystem(system()).lengths
    np.testing.assert_allclose(lengths, [0.5 if radius < 0.5 else radius] * 2 + [radius, 3, radius])
    # Lengths do not depend on units, masses, position, or other mechanisms.
    np.testing.assert_array_equal(
        PreparedSystem(system(2.0**-20, 2.0**20)).lengths * 2**20, lengths
    )
    np.testing.assert_allclose(PreparedSystem(system(shift=3.0)).lengths, lengths)


def test_constraints_have_units():
    prepared = PreparedSystem(system(0.5))
    assert len(constraint_units(prepared)) == prepared.num_constraints == 14
    by_joint = {j: [] for j in range(4)}
    for j, unit in zip(constraint_owners(prepared), constraint_units(prepared), strict=True):
        by_joint[j].append(float(unit))
    size = 0.5 * np.sqrt(0.5 * 0.61)
    np.testing.assert_allclose(by_joint[0], [size] * 3 + [1] * 2)
    np.testing.assert_allclose(by_joint[1], [size] * 3)
    np.testing.assert_allclose(by_joint[3], [1.5])


def test_points_without_size_have_the_unit_of_length():
    """A pendulum of a point mass has its length; a free point has none."""
    bob = rj.Body("bob", 1.0, (0.0, 0.0, 0.0), (0.0, 0.0, -0.25))
    free = rj.Body("free", 1.0, (0.0, 0.0, 0.0))
    joint = rj.Revolute("ground", "bob", (0.0, 0.0, 0.0), (0.0, 1.0, 0.0))
    both = PreparedSystem(rj.System([bob, free], [joint]))
    np.testing.assert_array_equal(both.lengths, [0.25, 1.0])

    def length(mass):
        body = rj.Body("bob", mass, (1.0, 1.0, 1.0), physical=False)
        return PreparedSystem(rj.System([body], [])).lengths[0]

    # A scale, not a quantity: nothing is differentiated by it.
    assert float(jax.jit(jax.grad(length))(jnp.array(2.0))) == 0.0
