"""Lang's Example C against an integration with 45 digits."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

import rigidjax as rj
from rigidjax import problems
from rigidjax.rotations import euler_map
from tools.exact.two_bodies import integrate

FORMULATIONS = {
    "null space, quaternion": (rj.NullSpace, rj.Quaternion),
    "null space, directors": (rj.NullSpace, rj.Directors),
    "absolute, quaternion": (rj.Absolute, rj.Quaternion),
    "absolute, directors": (rj.Absolute, rj.Directors),
}


def errors(states, true):
    """Largest errors of positions (m) and matrices; of velocities and rates, relative to their
    largest (250 m/s and 80 rad/s in the fast variant)."""
    matrices = jax.vmap(jax.vmap(euler_map))
    relative = lambda a, b: jnp.max(jnp.abs(a - b)) / jnp.max(jnp.abs(b))  # noqa: E731
    return [
        float(x)
        for x in (
            jnp.max(jnp.abs(states.position - true.position)),
            jnp.max(jnp.abs(matrices(states.orientation) - matrices(true.orientation))),
            relative(states.velocity, true.velocity),
            relative(states.angular_velocity, true.angular_velocity),
        )
    ]


@pytest.mark.exhaustive(but=("absolute, quaternion",))
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_all_formulations_reach_the_reference(formulation):
    problem, (kind, rotation) = problems.two_bodies(), FORMULATIONS[formulation]
    model, options = kind(problem.system, rotation()), dict(rtol=1e-12, atol=1e-12)
    sol = rj.simulate(model, problem.state0, problem.t1, max_steps=20_000, **options)
    assert np.max(errors(sol.states, problem.reference([problem.t1]))) < 1e-8
    # Positions are up to 12 m, velocities up to 250 m/s.
    assert float(sol.position_drift[-1]) < 1e-13
    assert float(sol.velocity_drift[-1]) < 1e-12


def test_unknowns_are_those_of_the_paper():
    """Lang, Example C: 48, 28, 33 and 23 unknowns, 9 degrees of freedom."""
    system = problems.two_bodies().system
    counts = [k(system, r()).num_unknowns for k, r in FORMULATIONS.values()]
    assert counts == [23, 33, 28, 48]
    assert system.num_dof == 9


def test_initial_state_is_that_of_the_paper():
    problem = problems.two_bodies()
    state = problem.state0
    np.testing.assert_array_equal(state.position[0], 0)
    np.testing.assert_array_equal(state.velocity[0], 0)
    np.testing.assert_array_equal(state.angular_velocity, [[3, 2, 1], [24, 15, 12]])
    model = rj.NullSpace(problem.system)
    position, velocity = model.drift(0.0, model.encode(state))
    assert float(position) < 1e-14
    assert float(velocity) < 1e-13
    slow = problems.two_bodies_slow().state0
    np.testing.assert_allclose(10 * slow.velocity, state.velocity, rtol=1e-13, atol=1e-13)


def test_reference_conserves_the_energy():
    for build in (problems.two_bodies, problems.two_bodies_slow):
        problem = build()
        model = rj.NullSpace(problem.system)
        end = jax.tree.map(lambda leaf: leaf[0], problem.reference([problem.t1]))
        start, end = (model.energy(0.0, model.encode(s)) for s in (problem.state0, end))
        assert float(end) == pytest.approx(float(start), rel=1e-13)


def test_independent_integration_in_a_short_time():
    """The extrapolation with 45 digits against this package after 2 ms; and against itself."""
    found = integrate(1, "0.002", digits=30, columns=8)
    with mpmath.workdps(30):
        other = integrate(1, "0.002", digits=34, columns=10)
        gaps = [
            abs(mpmath.mpf(a) - mpmath.mpf(b))
            for rows in zip(found, other, strict=True)
            for row in zip(*rows, strict=True)
            for a, b in zip(*row, strict=True)
        ]
        assert max(gaps) < mpmath.mpf(10) ** -17
    problem = problems.two_bodies()
    end = jax.tree.map(lambda leaf: leaf[None], rj.State(*found.to_arrays()))
    sol = rj.simulate(rj.NullSpace(problem.system), problem.state0, 0.002, rtol=1e-12, atol=1e-12)
    assert np.max(errors(sol.states, end)) < 1e-12
