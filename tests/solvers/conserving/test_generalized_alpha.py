"""The Lie-group generalised-alpha method: orders, joints, multipliers, damping, failures."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from solvers.conserving.models import at_steps, slope, state_errors

import rigidjax as rj
from rigidjax import problems
from rigidjax.solvers import GeneralizedAlpha
from rigidjax.solvers.lie.alpha_step import coefficients
from rigidjax.solvers.lie.base import GroupUnknowns
from rigidjax.solvers.lie.dynamics import Dynamics
from rigidjax.solvers.lie.generalized_alpha import AlphaState, _step_equations
from rigidjax.solvers.lie.tree_elimination import plan_tree


@pytest.mark.parametrize("radius", [0.0, 0.3, 0.9, 1.0])
def test_coefficients_of_the_method(radius):
    """Second order, and the spectral radius at infinite frequency from the amplification matrix."""
    c = coefficients(radius)
    assert c.gamma == pytest.approx(0.5 + c.force - c.mass)
    # q'' = - W^2 q at h = 1, W -> infinity: the update of (q, v, a), with q'' at both ends.
    big = 1e12
    left = np.array(
        [[1, 0, -c.beta], [0, 1, -c.gamma], [(1 - c.force) * big, 0, 1 - c.mass]], float
    )
    right = np.array(
        [[1, 1, 0.5 - c.beta], [0, 1, 1 - c.gamma], [-c.force * big, 0, -c.mass]], float
    )
    eigenvalues = np.linalg.eigvals(np.linalg.solve(left, right))
    assert np.max(np.abs(eigenvalues)) == pytest.approx(radius, abs=2e-3)


@pytest.mark.parametrize("make", [rj.NullSpace, lambda s: rj.Absolute(s, index=3)])
def test_heavy_top_against_reference(make):
    """One body on a fixed point in both formulations: order 2, as accurate as each other."""
    problem = problems.heavy_top()
    end = rj.simulate(rj.NullSpace(problem.system), problem.state0, 0.5, rtol=1e-12, atol=1e-12)
    end = jax.tree.map(lambda leaf: leaf[0], end.states)
    model, counts = make(problem.system), (100, 200, 400)
    states = at_steps(model, problem.state0, 0.5, GeneralizedAlpha(), counts)
    assert slope(counts, state_errors(states, end)) == pytest.approx(2, abs=0.1)
    assert np.max(np.abs(np.linalg.norm(states.orientation, axis=-1) - 1)) < 1e-14


def test_damping():
    """A stiff spring in a step of ten periods: rung down by radius < 1, kept by radius = 1."""
    body = rj.Body("b", 1.0, (1.0, 1.0, 1.0), position=(1.0, 0.0, 0.0))
    spring = rj.Spring("ground", "b", (0, 0, 0), (1, 0, 0), stiffness=4e6, length=1.0)
    system = rj.System(body, (), spring)
    state0 = rj.State([[1.0, 0, 0]], None, [[1.0, 0, 0]])
    model = rj.NullSpace(system)

    def remaining_energy(radius):
        solver = GeneralizedAlpha(radius)
        return float(rj.simulate(model, state0, 3.0, solver=solver, dt=0.03).energy[0])

    assert remaining_energy(1.0) == pytest.approx(0.5, rel=0.3)
    assert remaining_energy(0.5) < 1e-6


def test_failed_newton_is_reported():
    """Ten rad in a step: a named result after the first one."""
    problem = problems.heavy_top_fast()
    solution = rj.simulate(
        rj.NullSpace(problem.system), problem.state0, 0.1, solver=GeneralizedAlpha(), dt=0.02,
        throw=False, max_steps=10,
    )  # fmt: skip
    assert solution.result == rj.RESULTS.nonlinear_divergence
    assert int(solution.stats["num_steps"]) == 1


def test_forces_between_distant_bodies_need_the_whole_matrix():
    bodies = [rj.Body(name, 1.0, (0.3, 0.4, 0.5), (k, 0, 0)) for k, name in enumerate("abcd")]
    joints = [
        rj.Revolute("a", "b", (0.5, 0, 0), (0, 1, 0.3)),
        rj.Universal("c", "b", (1.5, 0, 0), (0, 1, 0), (0, 0, 1)),  # b is the child of both
        rj.Prismatic("a", "d", (0, 1, 0.2)),
    ]

    def is_sparse(*springs):
        forces = [rj.Spring(*ends, (0, 0, 0), (0, 1, 0), 5.0) for ends in springs]
        system = rj.System(bodies, joints, [rj.Gravity((0, 0, -9.81)), *forces])
        prepared = rj.Absolute(system, rj.Quaternion(), index=3).prepared_system
        return plan_tree(prepared) is not None

    assert is_sparse() and is_sparse(("b", "c")) and not is_sparse(("c", "d"))


def branched_system(*forces):
    """A floating tree with branches, all kinds of joints, one of them with its child as base."""
    names = ("base", "left", "tip", "right", "ball", "slide")
    xs = ((0, 0, 0), (1, 0, 0.2), (2, 0.1, 0), (-1, 0, 0.3), (0, 1, 0), (0.2, 2, 0.4))
    bodies = [
        rj.Body(name, 1.0 + k, (0.3, 0.4, 0.5), x)
        for k, (name, x) in enumerate(zip(names, xs, strict=True))
    ]
    joints = [
        rj.Revolute("base", "left", (0.5, 0, 0), (0, 1, 0.3), name="one"),
        rj.Revolute("tip", "left", (1.5, 0, 0), (1, 1, 0), name="two"),
        rj.Universal("base", "right", (-0.5, 0, 0), (0, 1, 0), (0, 0, 1)),
        rj.Spherical("base", "ball", (0, 0.5, 0)),
        rj.Prismatic("ball", "slide", (0, 1, 0.2)),
    ]
    bushing = rj.Bushing("base", "left", (0.5, 0, 0), 30.0, 0.5)
    return rj.System(bodies, joints, [rj.Gravity((0, 0, -9.81)), bushing, *forces])


def test_newton_matrix_of_a_tree_is_solved_by_its_structure(rng):
    system = branched_system()
    model = rj.Absolute(system, rj.Quaternion(), index=3)
    twists = rng.standard_normal((2, 6, 3))
    start = system.reference_state()
    start = rj.consistent_state(system, rj.State(start.position, start.orientation, *twists))
    y0, t0, h = model.encode(start), jnp.zeros(()), jnp.array(0.05)

    @jax.jit
    def compare(right):
        unknowns, dynamics = GroupUnknowns(model), Dynamics(model.prepared_system)
        pose, w = unknowns.pose(y0), unknowns.twists(y0)
        rate = dynamics.accelerations(t0, pose, w)
        state = AlphaState(rate, rate, 0.0 * w, h, 0.0 * y0, jnp.array(0))
        step = _step_equations(
            unknowns, dynamics, t0, t0 + h, y0, pose, w, state, coefficients(0.8)
        )
        z = 1e-2 * jnp.sin(jnp.arange(right.size))
        return step.solve(step.factor(z), right), step.jacobian(z)

    right = rng.standard_normal(6 * 6 + 5 + 5 + 4 + 3 + 5)
    found, J = compare(right)
    np.testing.assert_allclose(J @ found, right, atol=1e-9)
    np.testing.assert_allclose(found, np.linalg.solve(J, right), rtol=1e-9, atol=1e-9)
