"""Errors of bushings, springs, drag and motors."""

import jax.numpy as jnp
import numpy as np
import pytest
from forces.multibody import BODIES

import rigidjax as rj

ZERO = (0.0, 0.0, 0.0)
AXIS = (0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("build", "error", "match"),
    [
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
    ],
)  # fmt: skip
def test_invalid_forces_raise(build, error, match):
    with pytest.raises(error, match=match):
        build()


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
def test_invalid_systems_raise(joint, force, match):
    with pytest.raises(ValueError, match=match):
        rj.System(BODIES, joint, force)


def test_invalid_return_values_of_motors_raise():
    with pytest.raises(ValueError, match=r"must return a scalar; got shape \(2,\)"):
        rj.Motor("j", lambda t: jnp.ones(2))
