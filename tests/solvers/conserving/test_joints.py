"""Structure-preserving steps of systems with joints: invariants, order, damping, derivatives."""

import functools

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax import problems
from rigidjax.solvers import EnergyMomentum, ModelTerm, Variational

T1, STEPS = 0.2, 100


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


@pytest.fixture(scope="module")
def references():
    """The motion of a model at the end, by an adaptive method of order 8."""
    return functools.cache(
        lambda name: rj.simulate(*MODELS[name](), T1, rtol=1e-10, atol=1e-10).states
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "form"), [*((name, "reduced") for name in MODELS), ("four-bar", "saddle-point")]
)
def test_energy_momentum_conserves_with_joints(name, form, run, references):
    model, state0 = MODELS[name]()
    errors = []
    for steps in (STEPS, 2 * STEPS):
        sol = run(model, state0, EnergyMomentum(form=form), T1 / steps, T1)
        scale = float(jnp.max(jnp.abs(sol.energy)))
        assert np.ptp(sol.energy) < 1e-11 * scale
        assert float(jnp.max(sol.position_drift)) < 1e-13
        error = sol.states.position[-1] - references(name).position[-1]
        errors.append(float(jnp.max(jnp.abs(error))))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["four-bar", "bricard"])
def test_variational_conserves_momentum_with_joints(name, run, references):
    """All constraints hold at the ends of steps; the energy oscillates."""
    model, state0 = MODELS[name]()
    errors, changes = [], []
    for steps in (STEPS, 2 * STEPS):
        sol = run(model, state0, Variational(), T1 / steps, T1)
        assert float(jnp.max(sol.position_drift)) < 1e-13
        assert float(jnp.max(sol.velocity_drift)) < 1e-12
        changes.append(float(np.ptp(sol.energy)))
        error = sol.states.position[-1] - references(name).position[-1]
        errors.append(float(jnp.max(jnp.abs(error))))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.1)
    assert changes[0] / changes[1] == pytest.approx(4.0, rel=0.1)


@pytest.mark.exhaustive
def test_energy_in_null_space_is_of_fourth_order(run):
    """Free in space: velocities that the joints allow, with the momentum of the scheme's own."""
    system, state0 = pair(stiffness=50.0)
    runs = [run(rj.NullSpace(system), state0, EnergyMomentum(), T1 / n, T1) for n in (20, 40)]
    changes = [abs(float(sol.energy[-1] - sol.energy[0])) for sol in runs]
    assert changes[0] / changes[1] == pytest.approx(16.0, rel=0.2)
    for sol in runs:
        momentum = np.einsum("i,tij->tj", [1.0, 2.0], np.asarray(sol.states.velocity))
        assert np.max(np.abs(momentum - momentum[0])) < 1e-13


@pytest.mark.exhaustive
@pytest.mark.parametrize("solver", [EnergyMomentum(), Variational()], ids=["energy", "variation"])
def test_momentum_of_free_systems(run, solver):
    system, state0 = pair(stiffness=200.0)
    sol = run(rj.Absolute(system), state0, solver, 0.01, 1.0)
    for momentum in (sol.linear_momentum, sol.angular_momentum):
        assert float(np.ptp(momentum, axis=0).max()) < 1e-12
    if isinstance(solver, EnergyMomentum):
        assert np.ptp(sol.energy) < 1e-11


@pytest.mark.exhaustive
def test_damping_dissipates_its_work(run):
    """The motion converges to the exact one with order 2, and so does the loss of energy."""
    system, state0 = pair(stiffness=200.0, damping=3.0)
    model = rj.Absolute(system)
    exact = rj.simulate(model, state0, 1.0, ts=[0.0, 1.0], rtol=1e-10, atol=1e-10)
    loss = float(exact.energy[0] - exact.energy[-1])
    errors = []
    for dt in (0.005, 0.0025):
        sol = run(model, state0, EnergyMomentum(), dt, 1.0)
        error = sol.states.position[-1] - exact.states.position[-1]
        errors.append(float(jnp.max(jnp.abs(error))))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.1)
    assert loss > 1.0
    assert float(sol.energy[0] - sol.energy[-1]) == pytest.approx(loss, rel=1e-5)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "solver",
    [EnergyMomentum(), EnergyMomentum(form="saddle-point"), Variational()],
    ids=["energy", "mean-quaternion", "variation"],
)
def test_derivatives_against_differences(solver):
    """Forward and reverse mode agree, and with differences of the same steps."""
    problem = problems.chain(2)
    mass = jnp.asarray(problem.system.bodies[1].mass)

    def height(mass):
        system = eqx.tree_at(lambda s: s.bodies[1].mass, problem.system, mass)
        model = rj.NullSpace(system)
        sol = rj.simulate(model, problem.state0, 0.1, solver=solver, dt=0.02, max_steps=8)
        return sol.states.position[-1, 1, 2]

    both = jax.jit(lambda mass: jax.jvp(height, (mass,), (1.0,)))
    forward = both(mass)[1]
    assert abs(jax.jit(jax.grad(height))(mass) / forward - 1.0) < 1e-10
    step = 1e-2
    near = np.array([both(mass + k * step)[0] for k in (-3, -2, -1, 1, 2, 3)])
    difference = np.array([-1, 9, -45, 45, -9, 1]) @ near / (60 * step)
    assert float(forward) == pytest.approx(difference, rel=1e-8)


@pytest.mark.exhaustive
def test_prescribed_motion(run):
    """A driven turntable: the angle is the given one, the rest converges with order 2."""
    problem = problems.turntable()
    model = rj.NullSpace(problem.system)
    exact = rj.simulate(model, problem.state0, T1, rtol=1e-10, atol=1e-10).states
    errors = []
    for steps in (40, 80):
        sol = run(model, problem.state0, EnergyMomentum(), T1 / steps, T1)
        assert float(jnp.max(sol.position_drift)) < 1e-12
        errors.append(float(jnp.max(jnp.abs(sol.states.position[-1] - exact.position[-1]))))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.1)


@pytest.mark.exhaustive
def test_joints_in_plain_diffrax(run):
    model, state0 = MODELS["four-bar"]()
    solver = EnergyMomentum()
    sol = diffrax.diffeqsolve(
        ModelTerm(model), solver, 0.0, T1, T1 / STEPS, model.encode(state0),
        stepsize_controller=diffrax.ConstantStepSize(),
    )  # fmt: skip
    same = run(model, state0, solver, T1 / STEPS, T1)
    np.testing.assert_allclose(sol.ys[-1], same.ys[-1], rtol=0, atol=1e-12)


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
