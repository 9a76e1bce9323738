"""Parameters, and new values of a model, by the names of parts and fields."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import systems

import rigidjax as rj
from rigidjax.identification import Bounded, Positive, PrincipalInertia
from rigidjax.identification.starts.named_parameters import find_named_parameters

TWO = systems.double_pendulum(damping=0.1)
GYROSCOPE = rj.Gyroscope("lower")


def find(*parameters, model=None, sensors=(GYROSCOPE,)):
    return find_named_parameters(parameters, model or rj.Relative(TWO.system), sensors)


@pytest.mark.parametrize(
    ("name", "unit", "kind"),
    [
        ("hinge of upper.damping", "N m s/rad", Bounded),
        ("lower.mass", "kg", Positive),
        ("lower.inertia", "kg m^2", PrincipalInertia),
        ("lower.position", "m", rj.identification.Unconstrained),
        ("gyroscope.bias", "rad/s", rj.identification.Unconstrained),
        ("gyroscope of lower.scale", "", rj.identification.Unconstrained),
        ("Gravity.vector", "m/s^2", rj.identification.Unconstrained),
        ("model.system.joints[1].armature", "kg m^2", Bounded),
    ],
)
def test_unit_and_range_follow_from_the_class(name, unit, kind):
    (found,) = find(rj.Parameter(name))
    assert (found.name, found.unit, type(found.transform)) == (name, unit, kind)
    (found,) = find(rj.Parameter(name, transform=rj.identification.Unconstrained(), unit="u"))
    assert (found.unit, type(found.transform)) == ("u", rj.identification.Unconstrained)


def test_names_equal_functions():
    """Tied damping, mass and start of a double pendulum, in two ways; exact readings."""
    model, state = rj.Relative(TWO.system), TWO.state
    values = {"hinge of upper.damping": 0.2, "hinge of lower.damping": 0.2, "lower.mass": 1.3}
    ts = np.linspace(0.0, 1.0, 15)
    sol = rj.simulate(model.replace(**values), state, 1.0, ts=ts)
    sensors = [rj.JointCoordinate(f"hinge of {name}") for name in ("upper", "lower")]
    readings = {s: np.asarray(sol.coordinates[s.joint])[:, 0] for s in sensors}
    data = rj.Measurements(ts, readings, noise=dict.fromkeys(sensors, 1e-3))
    joints, bodies = (lambda e: e.model.system.joints), (lambda e: e.model.system.bodies)
    named = [
        rj.Parameter(["hinge of upper.damping", "hinge of lower.damping"]),
        rj.Parameter("lower.mass"), rj.Parameter("start.hinge of lower"),
    ]  # fmt: skip
    given = [
        rj.Parameter("damping", lambda e: joints(e)[0].damping, Bounded(0.0, np.inf),
                     tied=[lambda e: joints(e)[1].damping]),
        rj.Parameter("mass", lambda e: bodies(e)[1].mass, Positive()),
    ]  # fmt: skip
    moved = rj.jointed_state(TWO.system, {"hinge of upper": 1.0, "hinge of lower": -0.3})
    fit = rj.identify(TWO.system, data, named, state0=moved)
    found = list(fit.estimates.values())
    np.testing.assert_allclose(found, [0.2, 1.3, -0.1], rtol=1e-5)
    assert list(fit.estimates)[1:] == ["lower.mass", "start.hinge of lower"]
    other = rj.identify(model, data, given, state0=state)
    np.testing.assert_allclose(list(other.estimates.values()), found[:2], rtol=1e-5)


def test_replaced_values_are_differentiable_and_checked():
    model = rj.NullSpace(TWO.system)
    new = model.replace(**{"hinge of upper.armature": 0.3, "upper.position": [0.0, 0.0, -0.6]})
    assert new.system.joints[0].armature == 0.3
    np.testing.assert_array_equal(new.system.bodies[0].position, [0.0, 0.0, -0.6])
    y = jnp.asarray(model.encode(TWO.state))

    def energy(mass):
        return model.replace(**{"upper.mass": mass}).energy(0.0, y)

    # The start is at rest: the centre of mass of the first rod is at -0.5 cos(1) m.
    np.testing.assert_allclose(jax.grad(energy)(1.0), -9.81 * 0.5 * np.cos(1.0), rtol=1e-12)
    for values, message in (
        ({"uper.mass": 1.0}, r"`replace\('uper.mass'\)` begins with no part.*'upper.mass'"),
        ({"upper.mas": 1.0}, r"upper has no 'mas'; there are: mass, .*Did you mean 'mass'"),
        ({"upper.mass": [1.0, 2.0]}, r"takes shape \(\), or a number; got \(2,\)"),
        ({"upper.mass": 1.0, "system.bodies[0].mass": 1.0}, "takes each array once"),
    ):
        with pytest.raises(ValueError, match=message):
            model.replace(**values)


def test_invalid_names_raise():
    for name, message in (
        ("damping", r"`Parameter\('damping'\)` begins with no part.*'hinge of upper.damping'"),
        ("upper", r"must end at an array of numbers; upper is Body. Continue with one of: mass"),
        ("start.upper", r"has no coordinate 'upper'; .*\['hinge of upper', 'hinge of lower'\]"),
    ):
        with pytest.raises(ValueError, match=message):
            find(rj.Parameter(name))
    for parameter in (
        rj.Parameter(["start.hinge of upper", "start.hinge of lower"]),
        rj.Parameter("start.hinge of upper", transform=Positive()),
        rj.Parameter("start.hinge of upper", unit="deg"),
    ):
        with pytest.raises(ValueError, match=r"cannot be tied; leave `tied`, `transform`, `unit`"):
            find(parameter)
    four_bar = rj.NullSpace(rj.problems.four_bar().system)
    with pytest.raises(ValueError, match=r"a loop determines the start of .* independent ones are"):
        find(
            *(rj.Parameter(f"start.{joint.name}") for joint in four_bar.system.joints[:3]),
            model=four_bar, sensors=(),
        )  # fmt: skip
    readings = {GYROSCOPE: np.full((9, 3), 0.1)}
    data = rj.Measurements(np.linspace(0.0, 1.0, 9), readings, noise={GYROSCOPE: 0.1})
    with pytest.raises(ValueError, match=r"start that the joints do not allow, .* Give `state0`"):
        rj.identify(TWO.system, data, [rj.Parameter("lower.mass")])
    with pytest.raises(TypeError, match="a non-empty string, or without `where` a list of names"):
        rj.Parameter([])
