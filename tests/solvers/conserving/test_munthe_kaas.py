"""Munthe-Kaas methods: orders, the group, joints, error control, failures."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from solvers.conserving.models import accurate, at_steps, attitude_errors, slope, state_errors

import rigidjax as rj
from rigidjax import problems
from rigidjax.solvers import RK4, MuntheKaas

# Moderate rates: every method is in its asymptotic range with few steps.
STATE = problems.free_body().state0
INERTIA = np.array([6.0, 8.0, 3.0])


@pytest.fixture(scope="module")
def slow_body():
    """The free body at a tenth of the rates, its exact end after 2 s."""
    problem = problems.free_body()
    state0 = rj.State(None, STATE.orientation, None, 0.1 * STATE.angular_velocity)
    end = jax.jit(problem.solution)(problem.system, state0, jnp.array([2.0]))
    return problem.system, state0, jax.tree.map(lambda leaf: leaf[0], end)


ORDERS = {
    "RK4": (MuntheKaas(RK4()), 4, (40, 80, 160)),
    "Dopri5": (MuntheKaas(diffrax.Dopri5()), 5, (20, 40, 80)),
    "truncated": (MuntheKaas(diffrax.Dopri5(), truncated=1), 3, (20, 40, 80)),
}


@pytest.mark.parametrize("name", ORDERS)
def test_order_of_convergence(name, slow_body):
    """The order of the tableau, or what a truncated series leaves of it."""
    system, state0, end = slow_body
    solver, order, counts = ORDERS[name]
    assert solver.order(None) == order
    states = at_steps(rj.NullSpace(system), state0, 2.0, solver, counts)
    assert slope(counts, attitude_errors(states, end)) == pytest.approx(order, abs=0.2)


def test_estimate_of_the_classical_method():
    """RK4's embedded weights satisfy the conditions of order 3, but not of order 4."""
    tableau = RK4.tableau
    A = np.zeros((5, 5))
    for i, row in enumerate(tableau.a_lower):
        A[i + 1, : i + 1] = row
    for b, order in ((tableau.b_sol, 4), (tableau.b_sol + tableau.b_error, 3)):
        c = A.sum(axis=1)
        assert np.isclose(b.sum(), 1) and np.isclose(b @ c, 1 / 2)
        assert np.isclose(b @ c**2, 1 / 3) and np.isclose(b @ A @ c, 1 / 6)
        assert np.isclose(b @ A @ A @ c, 1 / 24) == (order == 4)


def _euler(omega):
    return np.cross(INERTIA * omega, omega) / INERTIA


def _skew(v):
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def _dexp_inv(psi, omega):
    """Evaluate the series in matrices, which is independent of the closed form."""
    ad, term, total = _skew(psi), np.array(omega), np.array(omega)
    for j, b in enumerate(scipy.special.bernoulli(30)[1:], start=1):
        term = -ad @ term / j
        total = total + b * term
    return total


def _one_step(solver, dt, omega):
    model = rj.NullSpace(rj.FixedPointBody(INERTIA))
    state0 = rj.State(orientation=[[1.0, 0, 0, 0]], angular_velocity=[omega])
    states = rj.simulate(model, state0, dt, solver=solver, dt=dt).states
    R = rj.Quaternion().to_matrix(states.orientation[0, 0])
    return np.asarray(R), np.asarray(states.angular_velocity[0, 0])


def test_step_against_the_paper():
    """Terze (B.1) with dexp^-1 for `dexp`, written with matrix exponentials and the series."""
    h, w0 = 0.1, np.array([2.0, -1.0, 3.0])
    K1, k1 = h * w0, h * _euler(w0)
    K2, k2 = h * _dexp_inv(K1 / 2, w0 + k1 / 2), h * _euler(w0 + k1 / 2)
    K3, k3 = h * _dexp_inv(K2 / 2, w0 + k2 / 2), h * _euler(w0 + k2 / 2)
    K4, k4 = h * _dexp_inv(K3, w0 + k3), h * _euler(w0 + k3)
    R, omega = _one_step(MuntheKaas(RK4()), h, w0)
    expected = scipy.linalg.expm(_skew((K1 + 2 * K2 + 2 * K3 + K4) / 6))
    np.testing.assert_allclose(R, expected, atol=1e-15)
    np.testing.assert_allclose(omega, w0 + (k1 + 2 * k2 + 2 * k3 + k4) / 6, atol=1e-15)


def test_quaternions_keep_unit_length():
    """After 1e5 steps of 0.3 rad the error is below 1e-14, without normalisation."""
    problem, dt, count = problems.free_body(), 0.01, 100_000
    ts = np.linspace(0, dt * count, 51)[1:]
    solution = rj.simulate(
        rj.NullSpace(problem.system), problem.state0, ts[-1], ts=ts, solver=MuntheKaas(), dt=dt,
        max_steps=count + 10,
    )  # fmt: skip
    assert int(solution.stats["num_steps"]) == count
    lengths = np.linalg.norm(np.asarray(solution.ys[:, :4]), axis=1)
    assert np.max(np.abs(lengths - 1)) < 1e-14


def test_order_of_a_tumbling_chain():
    """Order 4 in everything, against diffrax's Dopri8."""
    problem = problems.chain(2)
    rates = np.random.default_rng(1).normal(size=(2, 2, 3))
    state0 = rj.State(problem.state0.position, problem.state0.orientation, *rates)
    state0 = rj.consistent_state(problem.system, state0)
    model, counts = rj.NullSpace(problem.system), (32, 64, 128)
    end = accurate(model, state0, 0.3)
    errors = state_errors(at_steps(model, state0, 0.3, MuntheKaas(RK4()), counts), end)
    assert slope(counts, errors) == pytest.approx(4, abs=0.35)
    assert errors[-1] < 2e-5


def test_error_control_and_dense_output():
    """Errors follow the tolerance, at steps and between them; quaternions keep unit length."""
    problem = problems.heavy_top()
    model, ts = rj.NullSpace(problem.system), np.linspace(0.0, 1.0, 38)[1:]
    reference = rj.simulate(model, problem.state0, 1.0, ts=ts, rtol=1e-13, atol=1e-13).states

    @jax.jit
    @jax.vmap
    def run(tolerance):
        return rj.simulate(
            model, problem.state0, 1.0, ts=ts, solver=MuntheKaas(diffrax.Tsit5()), rtol=tolerance,
            atol=tolerance, max_steps=2000,
        )  # fmt: skip

    solution = run(jnp.array([1e-6, 1e-8, 1e-10]))
    errors = attitude_errors(solution.states, reference)
    assert np.all(errors < 200 * np.array([1e-6, 1e-8, 1e-10])) and np.all(errors > 1e-12)
    lengths = np.linalg.norm(np.asarray(solution.ys)[..., :4], axis=-1)
    np.testing.assert_allclose(lengths, 1, atol=1e-14)
    np.testing.assert_array_equal(solution.stats["num_rhs"], 7 * solution.stats["num_steps"])
    steps = np.asarray(solution.stats["num_steps"], float)
    assert 0.1 < np.log10(steps[2] / steps[0]) / 4 < 0.3


def test_too_large_rotation_is_reported():
    """A fixed step of more than a turn ends with a named result."""
    problem = problems.heavy_top_fast()
    settings = dict(solver=MuntheKaas(), dt=0.02, max_steps=20)
    model = rj.NullSpace(problem.system)
    solution = rj.simulate(model, problem.state0, 0.1, throw=False, **settings)
    assert solution.result == rj.RESULTS.chart_left
    assert int(solution.stats["num_steps"]) == 1
    with pytest.raises(rj.SimulationError, match="turned by 2 pi or more within one step"):
        rj.simulate(model, problem.state0, 0.1, **settings)


def test_adaptive_steps_stay_in_the_chart():
    """A first step over many revolutions is shortened until it is accepted."""
    problem = problems.heavy_top_fast()
    model = rj.NullSpace(problem.system)
    controller = diffrax.PIDController(rtol=1e-8, atol=1e-8)
    solution = rj.simulate(
        model, problem.state0, 0.05, solver=MuntheKaas(), dt=0.05, stepsize_controller=controller
    )
    assert int(solution.stats["num_rejected_steps"]) > 0
    end = accurate(model, problem.state0, 0.05)
    assert np.max(np.abs(solution.states.angular_velocity[0] - end.angular_velocity)) < 1e-4
