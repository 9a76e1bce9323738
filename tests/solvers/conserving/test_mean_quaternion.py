"""Systems with joints in quaternions: the mean quaternion, and its invariants."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from solvers.conserving.test_joints import pair

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


def alone(run, formulation):
    """The body on its own, without joints."""
    system = rj.System([TOP])
    return run(formulation(system), system.reference_state(), EnergyMomentum(), 0.1, 5.0)


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


@pytest.mark.exhaustive("directors", "rates of directors")
@pytest.mark.parametrize(
    "formulation",
    [rj.NullSpace, lambda s: rj.NullSpace(s, rj.Directors()),
     lambda s: rj.Absolute(s, rj.Directors())],
    ids=["mean", "directors", "rates of directors"],
)  # fmt: skip
@pytest.mark.exhaustive
def test_body_without_joints_moves_independently(run, formulation):
    """Beside a pair on a joint: steps of 0.7 rad, QUAT.EM, the mean of directors or DIR.EM."""
    system, state0 = pair()
    both = rj.System([*system.bodies, TOP], system.joints)
    rest = both.reference_state()
    spins = rest.angular_velocity.at[:2].set(state0.angular_velocity)
    state0 = rj.consistent_state(both, eqx.tree_at(lambda s: s.angular_velocity, rest, spins))
    sol = run(formulation(both), state0, EnergyMomentum(), 0.1, 5.0)
    assert difference(sol.states, alone(run, formulation).states, 2) < 1e-12


@pytest.mark.parametrize(
    "solver",
    [
        pytest.param(PUBLISHED, id="mean", marks=pytest.mark.exhaustive),
        pytest.param(EnergyMomentum(), id="default"),
        pytest.param(Variational(), id="variational"),
    ],
)
@pytest.mark.exhaustive("default")
@pytest.mark.exhaustive("default")
def test_unconnected_body_does_not_change_the_motion(run, solver):
    """A speck of dust, welded to a body on a damped spring: the same step, joint or not."""
    dust = rj.Body("dust", 1e-14, (1e-14, 1e-14, 1e-14), (2.1, 0.1, 1.0))
    spring = rj.Spring("ground", "top", (0.5, 0.2, 0.0), (2.2, 0.1, 1.0), 30.0, 0.2)

    def states(bodies, joints, solver):
        system = rj.System(bodies, joints, [spring])
        state0 = rj.consistent_state(system, system.reference_state())
        return run(rj.Absolute(system), state0, solver, 0.02, 1.0).states

    both = states([TOP, dust], [rj.Weld("top", "dust")], solver)
    single = states([TOP], [], EnergyMomentum() if solver is PUBLISHED else solver)
    assert difference(both, single, 0) < 1e-11


@pytest.mark.exhaustive
def test_mean_quaternions_on_joints(run):
    """Energy, momentum and joints are exact over 1,000 steps, also of a motion next to none.

    Angular momentum is of second order: `test_momentum_of_free_systems` has the same pair with the
    mean of matrices, which keeps it.
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

    # The energy error of 10,000 long steps is no bias either.
    long = rj.simulate(
        rj.Absolute(system), state0, 100.0, solver=PUBLISHED, dt=0.01, ts=np.linspace(0, 100, 11),
        max_steps=10_010,
    )  # fmt: skip
    assert np.ptp(long.energy) < 1e-12 * long.energy[0]

    slow = eqx.tree_at(
        lambda s: (s.velocity, s.angular_velocity), state0,
        (1e-6 * state0.velocity, 1e-6 * state0.angular_velocity),
    )  # fmt: skip
    sol = run(rj.Absolute(pair()[0]), slow, PUBLISHED, 0.002, 2.0)
    # A step goes 1e-9 m, of which positions round 1e-16 m.
    assert np.ptp(sol.energy) < 1e-10 * sol.energy[0]
