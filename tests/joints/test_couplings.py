"""Couplings, constraints of a user, damping, rotors, free joints: closed forms and other joints."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj

GRAVITY = rj.Gravity((0.0, 0.0, -9.81))
Y = (0.0, 1.0, 0.0)


def rods():
    return [
        rj.Body.box(name, (1.0, 0.2, 0.1), mass=mass, position=(x + 0.5, 0, 0))
        for name, mass, x in (("a", 1.0, 0.0), ("b", 2.0, 2.0))
    ]


def hinge(body, x, **more):
    return rj.Revolute("ground", body, (x, 0, 0), Y, name=f"hinge {body}", **more)


def geared_rods(ratio=-2.0, **more):
    """Two rods on hinges, one turned by the other."""
    joints = [hinge("a", 0.0, **more), hinge("b", 2.0), rj.Coupling("hinge b", "hinge a", ratio)]
    return rj.System(rods(), joints, [GRAVITY])


def moments():
    a, b = rods()
    return [float(body.inertia[1] + body.mass * 0.25) for body in (a, b)]


@pytest.mark.exhaustive("NullSpace", "NullSpace", "Absolute")
@pytest.mark.parametrize("kind", [rj.NullSpace, rj.Relative, rj.Absolute])
def test_gears_follow_the_ratio(kind):
    system = geared_rods()
    model = kind(system)
    state = system.reference_state()
    found = model.accelerations(0.0, model.encode(state)).angular[:, 1]
    # Gravity pulls both rods down, by -m g r about the y axis turned against it.
    Ja, Jb = moments()
    pull = 9.81 * 0.5 * (1.0 + -2.0 * 2.0)
    np.testing.assert_allclose(found, pull / (Ja + 4 * Jb) * np.array([1, -2]), rtol=1e-12)
    assert system.num_dof == 1


@pytest.mark.exhaustive
def test_damping_and_armature_of_a_hinge():
    """Without gravity a rate falls as exp(-d t / (J + a)); the rotor counts in the energy."""
    J, d, a = moments()[0], 0.3, 0.4
    system = rj.System(rods()[0], [hinge("a", 0.0, damping=d, armature=a)])
    state = eqx.tree_at(
        lambda s: (s.angular_velocity, s.velocity),
        system.reference_state(),
        (jnp.array([[0, 3.0, 0]]), jnp.array([[0, 0, -1.5]])),
    )
    model = rj.NullSpace(system)
    run = rj.simulate(model, state, 2.0, rtol=1e-11, atol=1e-11)
    rate = 3.0 * np.exp(-d * 2.0 / (J + a))
    np.testing.assert_allclose(run.rates["hinge a"][-1, 0], rate, rtol=1e-9)
    np.testing.assert_allclose(run.energy[-1], 0.5 * (J + a) * rate**2, rtol=1e-9)
    # Leaves: both can be fitted.
    slope = jax.grad(
        lambda d: model_rate(eqx.tree_at(lambda m: m.system.joints[0].damping, model, d), state)
    )(jnp.array([d]))
    np.testing.assert_allclose(slope, -3.0 / (J + a), rtol=1e-9)


def model_rate(model, state):
    return model.vector_field(0.0, model.pack(state))[-1]


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", [rj.NullSpace, rj.Relative, rj.Absolute])
def test_a_driven_spindle(kind):
    """A nut that is screwed up with a growing rate: its drive lifts, turns and accelerates it."""
    pitch, rate, growth = 0.3, 2.0, 1.5
    nut = rj.Body.cylinder("nut", 0.2, 0.1, mass=3.0)
    motion = lambda t: rate * t + 0.5 * growth * t * t  # noqa: E731
    spindle = rj.Screw("ground", "nut", (0, 0, 0), (0, 0, 1), pitch, motion=motion, name="spindle")
    system = rj.System(nut, [spindle], [GRAVITY])
    model = kind(system)
    state = rj.consistent_state(system, system.reference_state(), 0.4)
    y, lead = model.encode(state, 0.4), pitch / (2 * np.pi)
    np.testing.assert_allclose(state.position[0, 2], lead * motion(0.4), atol=1e-12)
    np.testing.assert_allclose(state.angular_velocity[0, 2], rate + 0.4 * growth, atol=1e-12)
    drive = model.reactions(0.4, y)["spindle"].drive
    wanted = float(nut.inertia[2] + 3.0 * lead**2) * growth + 3.0 * 9.81 * lead
    np.testing.assert_allclose(drive, wanted, rtol=1e-11)


def distance(lengths=True):
    def gap(t, poses):
        (xa, Ra), (xb, Rb) = poses["a"], poses["b"]
        apart = xb + Rb @ jnp.array([-0.5, 0, 0]) - xa - Ra @ jnp.array([0.5, 0, 0])
        return jnp.sqrt(jnp.sum(apart**2)) - 1.0

    return rj.Constraint(gap, ["a", "b"], lengths, name="rod")


def test_invalid_arguments_raise():
    with pytest.raises(ValueError, match="two different joints"):
        rj.Coupling("x", "x", 1.0)
    with pytest.raises(ValueError, match=r"no joint called 'hinge c'.*'hinge "):
        rj.System(rods(), [hinge("a", 0.0), rj.Coupling("hinge a", "hinge c", 1.0)])
    with pytest.raises(ValueError, match="one coordinate; the Spherical"):
        ball = rj.Spherical("ground", "b", (2.0, 0, 0), name="ball")
        rj.System(rods(), [hinge("a", 0.0), ball, rj.Coupling("hinge a", "ball", 1.0)])
    with pytest.raises(ValueError, match=r"return a number or a vector"):
        rj.Constraint(lambda t, poses: jnp.eye(3), "a")
    with pytest.raises(ValueError, match="2 for 1 equations"):
        distance((True, False))
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
