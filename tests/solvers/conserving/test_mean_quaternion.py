"""Systems with joints in quaternions: the mean quaternion, and its invariants."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.solvers import EnergyMomentum, Variational

PUBLISHED = EnergyMomentum(form="saddle-point")
TOP = rj.Body(
    "top", 1.5, (0.3, 0.5, 0.6), (2.0, 0.0, 1.0), (0.5, 0.5, -0.1, 0.7), (0.1, -0.2, 0.3),
    (4.0, -3.0, 5.0),
)  # fmt: skip


@pytest.fixture(scope="module")
def run():
    """Runs with the same shapes are compiled once."""

    @eqx.filter_jit
    def simulate_compiled(model, state0, solver, dt, t1):
        return rj.simulate(
            model, state0, t1, solver=solver, dt=dt, ts=jnp.linspace(0.0, t1, 11), max_steps=4096
        )

    return simulate_compiled


def pair(stiffness=0.0):
    """Two bodies on a ball joint, free in space, with a spring between them."""
    system = rj.System(
        rj.Body("a", 1.0, (0.02, 0.05, 0.06), velocity=(0.0, 0.3, 0.0)),
        rj.Body("b", 2.0, (0.05, 0.04, 0.02), position=(0.5, 0.1, 0.0)),
        rj.Spherical("a", "b", (0.25, 0.05, 0.0)),
        rj.Spring("a", "b", (-0.1, 0.2, 0.1), (0.6, 0.3, 0.1), stiffness, length=0.5),
    )
    spins = np.array([[2.0, -1.0, 3.0], [-1.0, 2.0, 0.5]])
    state = eqx.tree_at(lambda s: s.angular_velocity, system.reference_state(), spins)
    return system, rj.consistent_state(system, state)


def difference(states, others, row):
    """Return the largest difference of a body's pose and twist from those of the body alone."""
    return max(
        np.max(np.abs(a[:, row] - b[:, 0]))
        for a, b in zip(
            (states.position, states.orientation, states.velocity, states.angular_velocity),
            (others.position, others.orientation, others.velocity, others.angular_velocity),
            strict=True,
        )
    )


def test_body_without_joints_moves_independently(run):
    """Beside a pair on a joint: steps of 0.7 rad by QUAT.EM."""
    system, state0 = pair()
    both = rj.System([*system.bodies, TOP], system.joints)
    rest = both.reference_state()
    spins = rest.angular_velocity.at[:2].set(state0.angular_velocity)
    state0 = rj.consistent_state(both, eqx.tree_at(lambda s: s.angular_velocity, rest, spins))
    sol = run(rj.NullSpace(both), state0, EnergyMomentum(), 0.1, 5.0)
    alone = rj.System(TOP)
    single = run(rj.NullSpace(alone), alone.reference_state(), EnergyMomentum(), 0.1, 5.0)
    assert difference(sol.states, single.states, 2) < 1e-12


def test_unconnected_body_does_not_change_the_motion(run):
    """A speck of dust, welded to a body on a damped spring: the same step, joint or not."""
    dust = rj.Body("dust", 1e-14, (1e-14, 1e-14, 1e-14), (2.1, 0.1, 1.0))
    spring = rj.Spring("ground", "top", (0.5, 0.2, 0.0), (2.2, 0.1, 1.0), 30.0, 0.2)

    def states(bodies, joints):
        system = rj.System(bodies, joints, [spring])
        state0 = rj.consistent_state(system, system.reference_state())
        return run(rj.Absolute(system), state0, Variational(), 0.02, 1.0).states

    both = states([TOP, dust], [rj.Weld("top", "dust")])
    single = states([TOP], [])
    assert difference(both, single, 0) < 1e-11


def test_mean_quaternions_on_joints(run):
    """Energy, momentum and joints are exact over 1,000 steps.

    Angular momentum is of second order; the mean of matrices keeps it.
    """
    system, state0 = pair(stiffness=50.0)
    lost = []
    for steps in (500, 1000):
        sol = run(rj.Absolute(system), state0, PUBLISHED, 2.0 / steps, 2.0)
        # A unit in the last place in each step, if they all had the same sign.
        assert np.ptp(sol.energy) < steps * np.finfo(float).eps * sol.energy[0]
        assert np.max(sol.position_drift) < 1e-14
        assert np.max(np.ptp(sol.linear_momentum, axis=0)) < 1e-13
        lost.append(np.max(np.ptp(sol.angular_momentum, axis=0)))
    assert np.log2(lost[0] / lost[1]) == pytest.approx(2.0, abs=0.02)


@pytest.mark.exhaustive("Absolute")
@pytest.mark.parametrize("formulation", [rj.NullSpace, rj.Absolute])
def test_welded_rods_move_as_one_rod(run, formulation):
    """Two rods in line are one of twice the length, with a damper at its end."""
    twists = {"velocity": (0.2, -0.1, 0.3), "angular_velocity": (3.0, -2.0, 4.0)}
    spin, arm = np.array(twists["angular_velocity"]), np.array([0.0, 0.0, 0.5])

    def rod(name, length, z):
        velocity = np.array(twists["velocity"]) + np.cross(spin, (0.0, 0.0, z))
        plain = rj.Body.rod(name, length, 0.02, mass=length, position=(0.0, 0.0, z))
        return eqx.tree_at(lambda b: (b.velocity, b.angular_velocity), plain, (velocity, spin))

    def states(body, *parts):
        spring = rj.Spring("ground", body, (0.0, 0.3, 2.0), (0.0, 0.0, 1.0), 0.0, 0.5)
        system = rj.System(*parts, spring, rj.Gravity((0.0, 0.0, -9.81)))
        return run(
            formulation(system), system.reference_state(), EnergyMomentum(), 0.02, 1.0
        ).states

    two = states("b", rod("a", 1.0, -0.5), rod("b", 1.0, 0.5), rj.Weld("a", "b"))
    one = states("c", rod("c", 2.0, 0.0))
    np.testing.assert_allclose(two.position.mean(axis=1), one.position[:, 0], atol=1e-12)
    R = np.asarray(jax.vmap(rj.Quaternion().to_matrix)(jnp.asarray(one.orientation[:, 0])))
    np.testing.assert_allclose(two.position[:, 1], one.position[:, 0] + R @ arm, atol=1e-12)
