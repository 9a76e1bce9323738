"""The Lie-group generalised-alpha method: orders, joints, multipliers, damping, failures."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from solvers.conserving.lie_cases import at_steps, slope, state_errors

import rigidjax as rj
from rigidjax import problems
from rigidjax.solvers import GeneralizedAlpha
from rigidjax.solvers.lie.alpha_step import coefficients
from rigidjax.solvers.lie.tree_elimination import plan_tree


def tumbling_chain(n):
    """A chain of rods on ball joints in three-dimensional motion."""
    problem = problems.chain(n)
    rates = np.random.default_rng(1).normal(size=(2, n, 3))
    state = rj.State(problem.state0.position, problem.state0.orientation, *rates)
    return problem.system, rj.consistent_state(problem.system, state)


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


COUNTS = (25, 50, 100)


@pytest.fixture(scope="module")
def chain():
    """Two rods: runs at three steps, saved at common times, and the same of another method."""
    system, state0 = tumbling_chain(2)
    # Late enough for the transient part of the errors, which alternates, to have died out.
    ts, t1 = np.linspace(0.0, 0.25, 26)[15:], 0.25
    reference = rj.simulate(rj.NullSpace(system), state0, t1, ts=ts, rtol=1e-11, atol=1e-11)
    model = rj.Absolute(system, index=3)

    @jax.jit
    @jax.vmap
    def run(dt):
        return rj.simulate(
            model, state0, t1, ts=ts, solver=GeneralizedAlpha(0.7), dt=dt, max_steps=102
        )

    return run(t1 / jnp.array(COUNTS, float)), reference


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


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda s: rj.Absolute(s), "got index=0. For another index use `rj.solvers.Radau5"),
        (lambda s: rj.Absolute(s, rj.Directors(), index=3), "got `Directors`"),
        (lambda s: rj.NullSpace(s, rates="space"), "in body rates; got `NullSpace`"),
    ],
)
def test_unsupported_models_raise(make, message):
    problem = problems.heavy_top()
    with pytest.raises(ValueError, match=message):
        rj.simulate(make(problem.system), problem.state0, 0.1, solver=GeneralizedAlpha(), dt=0.01)


def test_invalid_arguments_raise():
    for radius in (-0.1, 1.1, "0.9", float("nan")):
        with pytest.raises(ValueError, match="must be a number from 0"):
            GeneralizedAlpha(radius)
    problem = problems.chain(1)
    with pytest.raises(ValueError, match="null-space coordinates with joints use"):
        rj.simulate(
            rj.NullSpace(problem.system), problem.state0, 0.1, solver=GeneralizedAlpha(), dt=0.01
        )
    with pytest.raises(ValueError, match="steps of a fixed length"):
        rj.simulate(
            rj.Absolute(problem.system, index=3), problem.state0, 0.1, solver=GeneralizedAlpha()
        )


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


def test_forces_between_distant_bodies_need_the_whole_matrix():
    prepared = [
        rj.Absolute(branched_system(*forces), rj.Quaternion(), index=3).prepared_system
        for forces in (
            (),
            [rj.Spring("tip", "slide", (2, 0, 0), (0.2, 2, 0), 5.0)],
            [rj.Spring("tip", "left", (2, 0, 0), (1, 0, 0), 5.0)],
        )
    ]
    assert [plan_tree(one) is None for one in prepared] == [False, True, False]
