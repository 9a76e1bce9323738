"""Structure-preserving steps of systems with joints: invariants, order, damping, derivatives."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax import problems
from rigidjax.solvers import EnergyMomentum, Variational


def pair(stiffness=0.0, damping=0.0):
    """Two bodies on a ball joint, free in space, with a spring and a damper between them."""
    bodies = [
        rj.Body("a", 1.0, (0.02, 0.05, 0.06), velocity=(0.0, 0.3, 0.0)),
        rj.Body("b", 2.0, (0.05, 0.04, 0.02), position=(0.5, 0.1, 0.0)),
    ]
    joints = [rj.Spherical("a", "b", (0.25, 0.05, 0.0))]
    spring = rj.Spring("a", "b", (-0.1, 0.2, 0.1), (0.6, 0.3, 0.1), stiffness, damping, 0.5)
    system = rj.System(bodies, joints, [spring])
    spins = np.array([[2.0, -1.0, 3.0], [-1.0, 2.0, 0.5]])
    state = eqx.tree_at(lambda s: s.angular_velocity, system.reference_state(), spins)
    return system, rj.consistent_state(system, state)


MODELS = {
    "four-bar": lambda: (rj.NullSpace(problems.four_bar().system), problems.four_bar().state0),
    "bricard": lambda: (rj.NullSpace(problems.bricard().system), problems.bricard().state0),
    "slider-crank, directors": lambda: (
        rj.Absolute(problems.slider_crank().system, rj.Directors()),
        problems.slider_crank().state0,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def run():
    """Runs with the same shapes are compiled once."""

    @eqx.filter_jit
    def simulate_compiled(model, state0, solver, dt, t1):
        return rj.simulate(
            model, state0, t1, solver=solver, dt=dt, ts=jnp.linspace(0.0, t1, 5), max_steps=4096
        )

    return simulate_compiled


@pytest.mark.parametrize(
    ("model", "solver", "message"),
    [
        (lambda s: rj.NullSpace(s, rj.RotationVector()), EnergyMomentum(), "Quaternion"),
        (lambda s: rj.NullSpace(s, rj.Directors()), Variational(), "Quaternion"),
        (lambda s: rj.Absolute(s, index=3), EnergyMomentum(), "index=0"),
        (rj.NullSpace, EnergyMomentum(form="null-space"), "takes no joints"),
        (
            lambda s: rj.NullSpace(s, rj.Directors()),
            EnergyMomentum(form="saddle-point"),
            "Quaternion",
        ),
    ],
)
def test_unsupported_models_raise(model, solver, message):
    system, state0 = pair()
    with pytest.raises(ValueError, match=message):
        rj.simulate(model(system), state0, 0.1, solver=solver, dt=0.01)


def test_missing_step_and_projection_raise():
    model, state0 = MODELS["four-bar"]()
    with pytest.raises(ValueError, match="simulate\\(dt=...\\)"):
        rj.simulate(model, state0, 0.1, solver=EnergyMomentum())
    with pytest.raises(ValueError, match="conserves energy and momentum itself"):
        rj.simulate(
            model, state0, 0.1, solver=EnergyMomentum(), dt=0.01,
            projection=rj.projection.MassMetric(),
        )  # fmt: skip


def test_too_long_step_is_reported(run):
    """A crank that turns by 5 rad in a step exceeds the largest discrete momentum."""
    problem = problems.chain(1, "revolute")
    start, spin = problem.state0, jnp.array([[0.0, 10.0, 0.0]])
    state0 = rj.State(start.position, start.orientation, jnp.cross(spin, start.position), spin)
    model = rj.NullSpace(problem.system)
    sol = rj.simulate(model, state0, 1.0, solver=Variational(), dt=0.5, throw=False)
    assert "nonlinear" in str(rj.RESULTS[sol.result]).lower() or "diverge" in rj.RESULTS[sol.result]
