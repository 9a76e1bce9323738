"""Systems with joints in quaternions: the mean quaternion, and its invariants."""

import equinox as eqx
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
