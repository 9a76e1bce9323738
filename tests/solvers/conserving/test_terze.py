"""Terze's comparison: the Lie-group form against Formulations I and II at the same tableau."""

import jax.numpy as jnp
import numpy as np
from solvers.conserving.models import accurate, at_steps, attitude_errors, slope

import rigidjax as rj
from rigidjax import problems
from rigidjax.solvers import RK4, MuntheKaas


def _L(p):
    """Terze (C.3)."""
    p0, p1, p2, p3 = p
    return np.array([[-p1, p0, p3, -p2], [-p2, -p3, p0, p1], [-p3, p2, -p1, p0]])


def _rk4(f, y, h):
    k1 = h * f(y)
    k2 = h * f(y + k1 / 2)
    k3 = h * f(y + k2 / 2)
    k4 = h * f(y + k3)
    return y + (k1 + 2 * k2 + 2 * k3 + k4) / 6


def acceleration(J, q, v, moment=(0.0, 0.0, 0.0)):
    """(C.1) with a moment about the body axes."""
    L, L_dot = _L(q), _L(v)
    matrix = np.block([[4 * L.T @ J @ L, q[:, None]], [q[None], np.zeros((1, 1))]])
    load = 2 * L.T @ np.array(moment) - 8 * L_dot.T @ J @ L @ v
    return np.linalg.solve(matrix, np.append(load, -v @ v))[:4]


def formulation_1(J, p, omega, h, count):
    """(C.1) to (C.8) without a moment."""
    y = np.concatenate([p, 0.5 * _L(p).T @ omega])
    for _ in range(count):
        y = _rk4(lambda y: np.concatenate([y[4:], acceleration(J, y[:4], y[4:])]), y, h)
        q = y[:4] / np.sqrt(y[:4] @ y[:4])
        y = np.concatenate([q, y[4:] - (y[4:] @ q) * q])
    return y[:4], 2 * _L(y[:4]) @ y[4:]


def formulation_2(J, p, omega, h, count):
    """(C.9) to (C.11) and (C.7): quaternion and Euler's equations, normalised."""

    def f(y):
        q, w = y[:4], y[4:]
        return np.concatenate([0.5 * _L(q).T @ w, np.linalg.solve(J, np.cross(J @ w, w))])

    y = np.concatenate([p, omega])
    for _ in range(count):
        y = _rk4(f, y, h)
        y[:4] /= np.sqrt(y[:4] @ y[:4])
    return y[:4], y[4:]


J, OMEGA, P = np.diag([6.0, 8.0, 3.0]), np.array([2.0, -4.0, 3.0]), np.array([0.5, 0.5, -0.5, 0.5])


def _ours(make, counts):
    """Return quaternions after 1 s for a number of steps, normalised after each step."""
    model, state0 = make(rj.FixedPointBody(np.diag(J))), rj.State(None, P, None, OMEGA)
    states = at_steps(model, state0, 1.0, RK4(), counts)
    return np.asarray(states.orientation[:, 0]), np.asarray(states.angular_velocity[:, 0])


def test_formulation_2_of_the_paper():
    """It is `NullSpace` with the projection of `simulate`, to round-off."""
    p, omega = _ours(rj.NullSpace, (20,))
    expected = formulation_2(J, P, OMEGA, 0.05, 20)
    np.testing.assert_allclose(p[0], expected[0], atol=1e-13)
    np.testing.assert_allclose(omega[0], expected[1], atol=1e-12)


def printed_formulation(system):
    """Formulation I, with stages off the unit sphere."""
    return rj.EulerParameters(system, "simplified-gyroscopic", printed=True)


def test_formulation_1_of_the_paper():
    """It is `EulerParameters(printed=True)` with the projection of `simulate`, to round-off.

    `Absolute` takes |p| = 1 in the stages: another method, which agrees to the order of it.
    """
    counts = (20, 40, 80)
    expected = np.array([formulation_1(J, P, OMEGA, 1 / n, n)[0] for n in counts])
    np.testing.assert_allclose(_ours(printed_formulation, counts)[0], expected, atol=1e-13)
    gap = np.max(np.abs(_ours(rj.Absolute, counts)[0] - expected), axis=1)
    assert slope(counts, gap) > 3.7 and 1e-9 < gap[0] < 1e-4


def test_formulation_1_is_of_fourth_order_and_drifts():
    """With RK4; without (C.7) and (C.8) the length of the quaternion is off by the same order."""
    body = rj.FixedPointBody(np.diag(J), rj.AxialGravityPotential(3.0))
    state0, counts = rj.State(None, P, None, OMEGA), (20, 40, 80, 160)
    end = accurate(rj.NullSpace(body), state0, 1.0)
    errors = attitude_errors(at_steps(printed_formulation(body), state0, 1.0, RK4(), counts), end)
    assert abs(slope(counts[1:], errors[1:]) - 4.0) < 0.3
    drifts = [
        rj.simulate(
            printed_formulation(body), state0, 1.0, solver=RK4(), dt=1.0 / n, projection=False
        ).position_drift[-1]
        for n in counts[:3]
    ]
    assert drifts[0] > 1e-6 and slope(counts[:3], np.array(drifts)) > 3.5


def test_printed_accelerations_solve_the_printed_equations(rng):
    """(C.1) off the unit sphere, with a moment."""
    q, v = rng.normal(size=(2, 4))
    body = rj.FixedPointBody(np.diag(J), moment=rj.ConstantMoment((0.3, -0.2, 0.5)))
    found = printed_formulation(body).vector_field(jnp.zeros(()), jnp.concatenate([q, v]))
    expected = acceleration(J, q, v, (0.3, -0.2, 0.5))
    np.testing.assert_allclose(np.asarray(found)[4:], expected, rtol=1e-11)


def test_long_steps_of_a_fast_top():
    """A fast top in steps of 1.25 rad: ten times as accurate as either, or more, and order 4."""
    problem = problems.heavy_top_fast()
    counts = (40, 80, 160)
    end = accurate(rj.NullSpace(problem.system), problem.state0, 0.1)

    def errors(model, solver):
        return attitude_errors(at_steps(model, problem.state0, 0.1, solver, counts), end)

    first = errors(printed_formulation(problem.system), RK4())
    second = errors(rj.NullSpace(problem.system), RK4())
    lie = errors(rj.NullSpace(problem.system), MuntheKaas(RK4()))
    assert np.all(lie < 0.1 * first) and np.all(lie < 0.1 * second)
    assert np.all(lie < [2e-4, 2e-5, 2e-6])
