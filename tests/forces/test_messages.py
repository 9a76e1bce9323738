"""Errors of forces and systems, and alternative forms of their arguments."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from forces.cases import BODIES, GRAVITY, PUSH, SPRING, T, kinematics, states
from formulations import cases

import rigidjax as rj
from rigidjax.rotations import euler_map

ONE, TWO = BODIES
ZERO, AXIS = (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("build", "error", "match"),
    [
        (lambda: rj.Gravity(-9.81), ValueError,
         r"`Gravity\(vector=...\)` must have shape \(3,\); got shape \(\)"),
        (lambda: rj.Gravity((0.0, 0.0, np.nan)), ValueError, r"vector=...\)` must be finite"),
        (lambda: rj.Gravity("down"), TypeError, r"vector=...\)` must be real numbers; got 'down'"),
        (lambda: rj.Gravity([[1.0], [1.0, 2.0]]), ValueError, "must be a rectangular array"),
        (lambda: rj.PointForce("one", (0.0, 0.0), ZERO), ValueError,
         r"`PointForce\(point=...\)` must have shape \(3,\); got shape \(2,\)"),
        (lambda: rj.PointForce("one", (0.0, 0.0, np.inf), ZERO), ValueError,
         r"`PointForce\(point=...\)` must be finite"),
        (lambda: rj.PointForce("one", ZERO, np.zeros((3, 1))), ValueError,
         r"`PointForce\(force=...\)` must have shape \(3,\); got shape \(3, 1\)"),
        (lambda: rj.PointForce("one", ZERO, (0.0, 1j, 0.0)), TypeError,
         r"`PointForce\(force=...\)` must be real numbers"),
        (lambda: rj.PointForce("one", ZERO), TypeError, "missing; the second argument is"),
        (lambda: rj.PointForce("one", ZERO, ZERO, "ground"), ValueError,
         r"`PointForce\(frame=...\)` must be \"space\" or \"body\"; got 'ground'"),
        (lambda: rj.Torque("one", 1.0), ValueError,
         r"`Torque\(moment=...\)` must have shape \(3,\); got shape \(\)"),
        (lambda: rj.Torque("one", (np.nan, 0.0, 0.0)), ValueError,
         r"`Torque\(moment=...\)` must be finite"),
        (lambda: rj.Torque("one", None), TypeError,
         r"`Torque\(moment=...\)` must be real numbers; got None"),
        (lambda: rj.Torque("one", ZERO, "world"), ValueError,
         r"`Torque\(frame=...\)` must be \"body\" or \"space\"; got 'world'"),
        (lambda: rj.Potential(3.0), TypeError,
         r"must be a function of \(positions, rotations\); got 3.0"),
        (lambda: rj.Bushing(1, "two", ZERO, 1.0), TypeError,
         r'`Bushing\(a=...\)` takes the name of a body or "ground"; got 1'),
        (lambda: rj.Bushing("one", BODIES[0], ZERO, 1.0), TypeError, r"`Bushing\(b=...\)` takes"),
        (lambda: rj.Bushing("one", "one", ZERO, 1.0), ValueError,
         r"`Bushing` acts between two different bodies; got 'one' as a and b"),
        (lambda: rj.Bushing("one", "two", 0.0, 1.0), ValueError,
         r"`Bushing\(point=...\)` must have shape \(3,\); got shape \(\)"),
        (lambda: rj.Bushing("one", "two", ZERO, (1.0, 2.0)), ValueError,
         r"`Bushing\(stiffness=...\)` must have shape \(\) or \(3,\) or \(6,\) or \(6, 6\)"),
        (lambda: rj.Bushing("one", "two", ZERO, 1.0, np.nan), ValueError,
         r"`Bushing\(damping=...\)` must be finite"),
        (lambda: rj.Bushing("one", "two", ZERO, np.eye(6, k=1)), ValueError,
         r"`Bushing\(stiffness=...\)` must be symmetric"),
        (lambda: rj.Spring("one", "one", ZERO, ZERO, 1.0), ValueError,
         r"`Spring` acts between two different bodies"),
        (lambda: rj.Spring("one", "two", ZERO, (1.0,), 1.0), ValueError,
         r"`Spring\(b_point=...\)` must have shape \(3,\)"),
        (lambda: rj.Spring("one", "two", ZERO, ZERO, (1.0,)), ValueError,
         r"`Spring\(stiffness=...\)` must have shape \(\); got shape \(1,\)"),
        (lambda: rj.Spring("one", "two", ZERO, ZERO, 1.0, "much"), TypeError,
         r"`Spring\(damping=...\)` must be real numbers"),
        (lambda: rj.Spring("one", "two", ZERO, ZERO, 1.0, length=-1.0), ValueError,
         r"`Spring\(length=...\)` must not be negative. Got -1"),
        (lambda: rj.Drag("one"), ValueError, r"`Drag` needs at least one of `linear`, `quadratic`"),
        (lambda: rj.Drag("one", linear=(1.0, 2.0)), ValueError,
         r"`Drag\(linear=...\)` must have shape \(\) or \(3,\)"),
        (lambda: rj.Drag("one", angular_quadratic=np.inf), ValueError,
         r"`Drag\(angular_quadratic=...\)` must be finite"),
        (lambda: rj.TorsionSpring(3, 1.0), TypeError,
         r"`TorsionSpring\(joint=...\)` takes a joint or its name; got 3"),
        (lambda: rj.TorsionSpring("j", (1.0, 2.0)), ValueError,
         r"`TorsionSpring\(stiffness=...\)` must have shape \(\)"),
        (lambda: rj.TorsionSpring("j", 1.0, component=-1), ValueError,
         r"`TorsionSpring\(component=...\)` must be None or the number of a coordinate.*got -1"),
        (lambda: rj.Motor("j", ZERO), ValueError, r"`Motor\(torque=...\)` must have shape \(\)"),
        (lambda: rj.Motor("j", lambda t, q: t), ValueError,
         r"of \(t\) or of \(t, coordinate, rate\); got one with 2 positional parameters"),
        (lambda: rj.Motor("j", lambda *args: 0.0), ValueError, r"with 0 positional parameters"),
        (lambda: rj.Motor("j", dict), ValueError, r"with unknown positional parameters"),
        (lambda: rj.Motor("j", 1.0, True), ValueError,
         r"`Motor\(component=...\)` must be None or the number of a coordinate"),
        (lambda: rj.Motor("j", lambda t: jnp.ones(2)), ValueError,
         r"`Motor\(torque=...\)` must return a scalar; got shape \(2,\)"),
        (lambda: rj.FixedTendon({}, 1.0), ValueError,
         r"`FixedTendon\(coefficients=...\)` takes a dict of numbers by joint; got {}"),
        (lambda: rj.FixedTendon({"j": 1.0}, 1.0, length=(0.2, 0.1)), ValueError,
         r"`FixedTendon\(length=...\)` must be \(low, high\), low <= high"),
        (lambda: rj.System(
            ONE, rj.Revolute("ground", "one", ZERO, AXIS, motion=jnp.sin, name="j"),
            rj.FixedTendon({"j": 1.0}, 1.0)), ValueError,
         r"`FixedTendon`: the motion of the joint 'j' is prescribed"),
        (lambda: rj.Cable([("one", None)], 1.0), ValueError,
         r"`Cable\(points=...\)` needs at least two points; got 1"),
        (lambda: rj.Cable(["one", ("two", ZERO, 1.0)], 1.0), ValueError,
         r"takes pairs of the name of a body and a point, .*; entry 1 is \('two', "),
        (lambda: rj.Cable([("one", (1.0, 2.0)), ("two", None)], 1.0), ValueError,
         r"`Cable\(points=...\)\[0\]` must have shape \(3,\)"),
        (lambda: rj.Cable(["one", "two"], -1.0), ValueError,
         r"`Cable\(stiffness=...\)` must not be negative. Got -1"),
        (lambda: rj.Cable(["one", "two"], 1.0, -1.0), ValueError,
         r"`Cable\(damping=...\)` must not be negative"),
        (lambda: rj.Cable(["one", "two"], 1.0, length=-1.0), ValueError,
         r"`Cable\(length=...\)` must not be negative"),
        (lambda: rj.Spring("one", "two", ZERO, AXIS, -1.0, tension_only=True), ValueError,
         r"`Spring\(stiffness=...\)` must not be negative"),
        (lambda: rj.System(BODIES, (), rj.Cable([("one", None), ("tow", None)], 1.0)), ValueError,
         r"Did you mean 'two'"),
    ],
)  # fmt: skip
def test_invalid_forces_raise(build, error, match):
    with pytest.raises(error, match=match):
        build()


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda: rj.PointForce("one", ZERO, lambda t: jnp.ones(2)),
         r"The function `PointForce\(force=...\)` must return shape \(3,\); got \(2,\)"),
        (lambda: rj.Torque("one", lambda t, R, omega: omega[:2]),
         r"The function `Torque\(moment=...\)` must return shape \(3,\); got \(2,\)"),
        (lambda: rj.System(BODIES, forces=rj.Potential(lambda x, R: x[0])),
         r"`Potential\(function\)` must return a scalar, the energy in J; got shape \(3,\)"),
    ],
)  # fmt: skip
def test_invalid_return_values_of_laws_raise(build, match):
    """The error is raised at construction, not when a run is compiled.

    Otherwise results would be wrong: JAX clamps an index beyond the end of an array.
    """
    with pytest.raises(ValueError, match=match):
        build()


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        (([],), ValueError, r"`System\(...\)` needs at least one body; got none"),
        ((["one"],), TypeError, "takes bodies, joints, constraints, forces and frames; got 'one'"),
        ((cases.heavy_top(),), TypeError, r"forces and frames; got FixedPointBody\("),
        ((None,), TypeError, r"`System\(...\)` takes bodies, .*; got None"),
        ((ONE, (), [ZERO]), TypeError, r"got \(0.0, 0.0, 0.0\)"),
        ((ONE, 9.81), TypeError, r"got 9.81"),
        (([ONE, TWO, ONE, TWO, rj.Body("three", 1.0, (1.0, 1.0, 1.0))],), ValueError,
         r"Every body needs a name of its own; got \['one', 'two'\] more than once"),
        ((BODIES, (), rj.Torque("tow", ZERO)), ValueError,
         r"There is no body called 'tow'. Did you mean 'two'\?"),
        ((BODIES, (), [GRAVITY, rj.PointForce("rotor", ZERO, ZERO)]), ValueError,
         r"There is no body called 'rotor'. The bodies are \['one', 'two'\]"),
        ((BODIES, (), rj.Torque(1, ZERO)), ValueError, r"no body called 1. The bodies are"),
        ((BODIES, rj.Weld("world", "one")), ValueError, r"The inertial frame is called \"ground\""),
    ],
)  # fmt: skip
def test_invalid_systems_raise(arguments, error, match):
    with pytest.raises(error, match=match):
        rj.System(*arguments)


@pytest.mark.parametrize(
    ("joint", "force", "match"),
    [
        (rj.Revolute("ground", "one", ZERO, AXIS, name="hinge"), rj.Motor("hing", 1.0),
         r"There is no joint called 'hing'. Did you mean 'hinge'"),
        (rj.Spherical("ground", "one", ZERO), rj.Motor("spherical ground-one", 1.0),
         r"`Motor` acts on a length or an angle; the Spherical 'spherical ground-one' has none"),
        (rj.Weld("ground", "one", name="w"), rj.TorsionSpring("w", 1.0), r"Weld 'w' has none"),
        (rj.Revolute("ground", "one", ZERO, AXIS, lambda t: t, name="r"), rj.Motor("r", 1.0),
         r"the motion of the Revolute 'r' is prescribed"),
        (rj.Cylindrical("ground", "one", ZERO, AXIS, name="c"), rj.TorsionSpring("c", 1.0),
         r"`TorsionSpring\(component=...\)` is needed: the Cylindrical 'c' has 2 coordinates"),
        (rj.Cylindrical("ground", "one", ZERO, AXIS, name="c"), rj.Motor("c", 1.0, 2),
         r"must be below 2, the number of coordinates of the Cylindrical 'c'; got 2"),
        ([rj.Prismatic("ground", "one", AXIS)] * 2, rj.Motor("prismatic ground-one", 1.0),
         r"2 joints are called 'prismatic ground-one'; give each a name of its own"),
        ([rj.Prismatic("ground", name, AXIS, name="p") for name in ("one", "two")], (),
         r"Every joint needs a name of its own; got 'p' more than once"),
        ((), rj.Spring("ground", "tow", ZERO, AXIS, 1.0), r"Did you mean 'two'"),
        ((), rj.Drag("ground", 1.0), r"no body called 'ground'"),
    ],
)  # fmt: skip
def test_forces_and_joints_that_do_not_fit_raise(joint, force, match):
    with pytest.raises(ValueError, match=match):
        rj.System(BODIES, joint, force)


def test_ground_is_a_reserved_name():
    with pytest.raises(ValueError, match='other than "ground", which is the inertial frame'):
        rj.Body("ground", 1.0, (1.0, 1.0, 1.0))


def test_single_force_or_sequence():
    """A single body or force, a list, a tuple: the same system."""
    first = rj.System(ONE, forces=GRAVITY)
    for bodies, forces in (((ONE,), [GRAVITY]), ([ONE], (f for f in (GRAVITY,)))):
        assert eqx.tree_equal(rj.System(bodies, joints=[], forces=forces), first)
    assert (first.num_bodies, first.num_dof) == (1, 6)
    both = rj.System(BODIES)
    assert (both.num_bodies, both.num_dof, both.forces) == (2, 12, ())
    for name in ("position", "orientation", "velocity", "angular_velocity"):
        expected = np.stack([getattr(body, name) for body in BODIES])
        assert np.array_equal(getattr(both.reference_state(), name), expected)


def test_functions_are_static():
    """Systems are accepted by `jax.jit` and `jax.tree.map`, like fixed-point bodies."""
    law = rj.PointForce("one", ZERO, lambda t: jnp.ones(3))
    drag = rj.Torque("two", lambda t, R, omega: -0.2 * omega)
    system = rj.System(BODIES, forces=(GRAVITY, PUSH, law, drag, SPRING))
    leaves = jax.tree.leaves(system)
    assert all(isinstance(leaf, jax.Array) for leaf in leaves)
    # Six of each body, and the vector, point and force, point.
    assert len(leaves) == 2 * 6 + 1 + 2 + 1
    bodies = kinematics(jax.tree.map(lambda x: x[0], states(1)))
    inside = jax.jit(lambda s: s.wrenches(T, bodies))(system)
    assert cases.error(inside[1], system.wrenches(T, bodies)[1]) < 1e-15


@pytest.mark.float32
def test_single_precision_is_preserved():
    """Energy and wrenches are in single precision, whatever the default is."""
    well = rj.Potential(lambda x, R: jnp.sum(x[0] * x[1]) + R[0, 0, 1])
    system = rj.System(BODIES, forces=(GRAVITY, PUSH, well, rj.Torque("one", (0.1, 0.2, 0.3))))
    state = jax.tree.map(lambda x: x[0], states(1))
    single = lambda tree: jax.tree.map(lambda x: x.astype(jnp.float32), tree)  # noqa: E731
    system, bodies, t = single((system, kinematics(state), T))
    found = (system.wrenches(t, bodies), system.potential_energy(t, bodies))
    assert {leaf.dtype for leaf in jax.tree.leaves(found)} == {np.dtype(np.float32)}


class Wrong(rj.forces.AbstractForce):
    """A law that returns what it was given."""

    value: object = eqx.field(static=True)

    def body_names(self):
        return ("one", "two")

    def loads(self, t, bodies, kinematics):
        return self.value()


@pytest.mark.parametrize(
    ("value", "error", "match"),
    [
        (lambda: (jnp.ones(3), None), TypeError,
         r"`Wrong.loads` must return `rj.forces.Loads\(...\)`; got tuple"),
        (lambda: rj.forces.Loads(jnp.ones(3)), ValueError,
         r"`forces` of shape \(2, 3\), a row for each body that it acts on; got \(3,\)"),
        (lambda: rj.forces.Loads(dyads=jnp.ones((2, 3))), ValueError,
         r"`dyads` of shape \(2, 3, 3\).*got \(2, 3\)"),
    ],
)  # fmt: skip
def test_invalid_loads_raise(value, error, match):
    bodies = kinematics(jax.tree.map(lambda x: x[0], states(1)))
    with pytest.raises(error, match=match):
        rj.System(BODIES, forces=Wrong(value)).wrenches(T, bodies)


def test_invalid_points_raise():
    """In the reference configuration, or from the centre of mass, where it is without both."""
    turned = rj.Body("two", 3.0, cases.TENSOR, (-0.2, 0.5, 0.1), (0.48, 0.6, 0.0, 0.64))
    state = jax.tree.map(lambda x: x[0, 1:], states(1))
    arm, force = np.array([0.3, -0.7, 0.5]), (1.0, 2.0, -1.0)
    at = turned.position + euler_map(turned.orientation) @ arm
    bodies = kinematics(state)
    for frame in ("space", "body"):
        found, expected = (
            rj.System(turned, forces=rj.PointForce("two", force=force, frame=frame, **point))
            for point in ({"at": at}, {"point": arm})
        )
        for name in ("wrenches", "virials"):
            pair = (getattr(system, name)(T, bodies) for system in (found, expected))
            assert cases.error(*pair) < 1e-14
    match = r"takes its point as `at`.*or as `point`.*; got both"
    with pytest.raises(ValueError, match=match):
        rj.PointForce("two", arm, force, at=at)
    own = rj.System(turned, forces=rj.PointForce("two", force=force)).wrenches(T, bodies)
    np.testing.assert_array_equal(own[0], [*force, 0.0, 0.0, 0.0])
