"""Couplings, and errors of couplings, constraints of a user, damping and free joints."""

import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj

Y = (0.0, 1.0, 0.0)


def rods():
    return [
        rj.Body.box(name, (1.0, 0.2, 0.1), mass=mass, position=(x + 0.5, 0, 0))
        for name, mass, x in (("a", 1.0, 0.0), ("b", 2.0, 2.0))
    ]


def hinge(body, x, **more):
    return rj.Revolute("ground", body, (x, 0, 0), Y, name=f"hinge {body}", **more)


def geared_rods():
    """Two rods on hinges, one turned by the other."""
    joints = [hinge("a", 0.0), hinge("b", 2.0), rj.Coupling("hinge b", "hinge a", -2.0)]
    return rj.System(rods(), joints, [rj.Gravity((0.0, 0.0, -9.81))])


def test_gears_follow_the_ratio():
    system = geared_rods()
    model = rj.Relative(system)
    state = system.reference_state()
    found = model.accelerations(0.0, model.encode(state)).angular[:, 1]
    # Gravity pulls both rods down, by -m g r about the y axis turned against it.
    Ja, Jb = (float(body.inertia[1] + body.mass * 0.25) for body in rods())
    pull = 9.81 * 0.5 * (1.0 + -2.0 * 2.0)
    np.testing.assert_allclose(found, pull / (Ja + 4 * Jb) * np.array([1, -2]), rtol=1e-12)
    assert system.num_dof == 1


def test_cams_follow_their_polynomial():
    """As gears at rest, and with the acceleration f'' w^2 of the driven rod, f'' = 1."""
    cam = rj.PolynomialCoupling("hinge b", "hinge a", (0.0, -2.0, 0.5, 0.1))
    system = rj.System(*rods(), hinge("a", 0.0), hinge("b", 2.0), cam, rj.Gravity((0, 0, -9.81)))
    Ja, Jb = (float(body.inertia[1] + body.mass * 0.25) for body in rods())
    state = rj.jointed_state(system, {}, {"hinge a": 3.0})
    first = (9.81 * 0.5 * (1.0 - 2.0 * 2.0) + 2.0 * Jb * 9.0) / (Ja + 4 * Jb)
    for model in (rj.Relative(system), rj.NullSpace(system)):
        found = model.accelerations(0.0, model.encode(state)).angular[:, 1]
        np.testing.assert_allclose(found, [first, -2.0 * first + 9.0], rtol=1e-12)


def test_energy_with_a_tendon_is_conserved():
    """Slack at first, between its lengths; its potential energy is not used by the run."""
    joints = [hinge("a", 0.0), rj.Revolute("a", "b", (2.0, 0, 0), Y, name="hinge b")]
    tendon = rj.FixedTendon({"hinge a": 0.5, "hinge b": -0.2}, 300.0, length=(-0.05, 0.1))
    system = rj.System(*rods(), *joints, tendon, rj.Gravity((0, 0, -9.81)))
    sol = rj.simulate(system, system.reference_state(), 0.6, ts=np.linspace(0, 0.6, 7), rtol=1e-10)
    angles = 0.5 * sol.coordinates["hinge a"] - 0.2 * sol.coordinates["hinge b"]
    assert np.any(angles > 0.12) or np.any(angles < -0.07)
    np.testing.assert_allclose(sol.energy, sol.energy[0], atol=1e-7)


def test_invalid_arguments_raise():
    with pytest.raises(ValueError, match="two different joints"):
        rj.Coupling("x", "x", 1.0)
    with pytest.raises(
        ValueError, match=r"`PolynomialCoupling\(coefficients=...\)` must have shape"
    ):
        rj.PolynomialCoupling("x", "y", [[1.0]])
    with pytest.raises(ValueError, match=r"no joint called 'hinge c'.*'hinge "):
        rj.System(rods(), [hinge("a", 0.0), rj.Coupling("hinge a", "hinge c", 1.0)])
    with pytest.raises(ValueError, match="one coordinate; the Spherical"):
        ball = rj.Spherical("ground", "b", (2.0, 0, 0), name="ball")
        rj.System(rods(), [hinge("a", 0.0), ball, rj.Coupling("hinge a", "ball", 1.0)])
    with pytest.raises(ValueError, match=r"return a number or a vector"):
        rj.Constraint(lambda t, poses: jnp.eye(3), "a")
    with pytest.raises(ValueError, match="2 for 1 equations"):
        rj.Constraint(lambda t, poses: poses["a"][0][0], ["a", "b"], (True, False), name="rod")
    with pytest.raises(ValueError, match="is attached to the ground already"):
        rj.System(rods()[0], [hinge("a", 0.0), rj.Free("a")])
    with pytest.raises(ValueError, match=r"armature=\.\.\.\)` must not be negative"):
        hinge("a", 0.0, armature=-1.0)
    with pytest.raises(ValueError, match=r"damping=\.\.\.\)` must not be negative"):
        hinge("a", 0.0, motion=jnp.sin, damping=-1.0)
    with pytest.raises(ValueError, match="no discrete form of `Coupling`"):
        rj.simulate(
            rj.NullSpace(geared_rods()), geared_rods().reference_state(), 0.1,
            solver=rj.solvers.EnergyMomentum(), dt=0.01,
        )  # fmt: skip
