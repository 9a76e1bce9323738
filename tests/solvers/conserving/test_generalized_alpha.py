"""The Lie-group generalised-alpha method: orders, joints, multipliers, damping, failures."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from solvers.conserving.lie_cases import accurate, at_steps, slope, state_errors

import rigidjax as rj
from rigidjax import problems
from rigidjax.formulations.descriptor import Descriptor
from rigidjax.solvers import GeneralizedAlpha
from rigidjax.solvers.lie.alpha_step import coefficients
from rigidjax.solvers.lie.base import GroupUnknowns
from rigidjax.solvers.lie.dynamics import Dynamics
from rigidjax.solvers.lie.generalized_alpha import AlphaState, _step_equations
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


@pytest.mark.exhaustive
def test_second_order(chain):
    """Positions, velocities and multipliers, at whichever step their error is largest."""
    solution, reference = chain
    for values, exact in (
        (solution.states.position, reference.states.position),
        (solution.states.angular_velocity, reference.states.angular_velocity),
        (solution.multipliers, reference.multipliers),
    ):
        error = jnp.max(jnp.abs(values - exact), axis=tuple(range(1, values.ndim)))
        assert slope(COUNTS, error) == pytest.approx(2, abs=0.2)


@pytest.mark.exhaustive
def test_constraints_hold_to_round_off(chain):
    """Positions to round-off; velocities to the error of the method; multipliers of both kinds."""
    solution, _ = chain
    assert np.max(solution.position_drift) < 1e-14
    assert 1e-6 < np.max(solution.velocity_drift[-1]) < 1e-2
    assert slope(COUNTS, np.max(solution.velocity_drift, axis=1)) == pytest.approx(2, abs=0.2)


@pytest.mark.exhaustive
def test_first_step_from_consistent_accelerations():
    """Multipliers are of second order from the first step on, with strong damping too.

    They agree with the saddle-point system, by automatic differentiation, at the same pose and
    velocity: it imposes the constraints on accelerations at a velocity that violates them by the
    error of the method.
    """
    system, state0 = tumbling_chain(2)
    model, dts = rj.Absolute(system, index=3), jnp.array([4e-3, 2e-3, 1e-3])
    exact = rj.simulate(rj.NullSpace(system), state0, 4e-3, ts=dts[::-1], rtol=1e-12, atol=1e-12)

    @jax.jit
    @jax.vmap
    def run(dt):
        return rj.simulate(model, state0, dt, solver=GeneralizedAlpha(0.3), dt=dt, max_steps=2).ys[
            0
        ]

    ys = run(dts)
    lam = ys[:, model.layout.size :]
    error = jnp.max(jnp.abs(lam - exact.multipliers[::-1]), axis=1)
    assert slope(1 / dts, error) == pytest.approx(2, abs=0.2)
    at = Descriptor(model).accelerations_and_multipliers
    others = jnp.stack([at(t, y[: model.layout.size])[1] for t, y in zip(dts, ys, strict=True)])
    gap = jnp.max(jnp.abs(lam - others), axis=1)
    assert slope(1 / dts, gap) == pytest.approx(2, abs=0.2) and gap[-1] < 2e-3


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


@pytest.mark.exhaustive
def test_redundant_constraints():
    """A four-bar linkage in space, three constraints too many: closed to round-off, order 2."""
    problem = problems.four_bar()
    # `Absolute` needs inertia about every axis, the thin rods of the problem have none.

    def inertias(s):
        return [body.inertia for body in s.bodies]

    system = eqx.tree_at(inertias, problem.system, replace_fn=lambda I: I + 0.01)
    model, t1, counts = rj.Absolute(system, index=3), 0.1, (20, 40, 80)
    assert model.num_multipliers == 3 + 20
    end = accurate(rj.NullSpace(system), problem.state0, t1)

    @jax.jit
    @jax.vmap
    def run(dt):
        solution = rj.simulate(
            model, problem.state0, t1, solver=GeneralizedAlpha(0.8), dt=dt, max_steps=82
        )
        y = solution.ys[0]
        return solution, model.multipliers(t1, y)[3:] - model.joint_multipliers(t1, y)

    solution, gap = run(t1 / jnp.array(counts, float))
    states = jax.tree.map(lambda leaf: leaf[:, 0], solution.states)
    assert slope(counts, state_errors(states, end)) == pytest.approx(2, abs=0.2)
    assert np.max(solution.position_drift) < 1e-14
    # The multipliers of least norm, of which forces are about 100 N.
    gap = jnp.max(jnp.abs(gap), axis=1)
    assert slope(counts, gap) == pytest.approx(2, abs=0.3) and gap[-1] < 0.1


@pytest.mark.exhaustive
def test_prescribed_motion():
    """A driven rod is where it has to be; the moment that drives it is of second order."""

    def motion(t):
        return 0.8 * jnp.sin(3.0 * t)

    rod = rj.Body("rod", 2.0, (0.1, 0.2, 0.15), position=(0.5, 0.0, 0.0))
    joint = rj.Revolute("ground", "rod", (0, 0, 0), (0, 1.0, 0), motion=motion)
    system = rj.System(rod, [joint], rj.Gravity((0.0, 0.0, -9.81)))
    model, t1, counts = rj.Absolute(system, index=3), 0.4, (20, 40, 80)

    def state(t):
        angle, rate = jax.jvp(motion, (t,), (jnp.ones_like(t),))
        s, c, zero = jnp.sin(angle), jnp.cos(angle), jnp.zeros_like(t)
        half = 0.5 * angle
        return rj.State(
            0.5 * jnp.stack([c, zero, -s]),
            jnp.stack([jnp.cos(half), zero, jnp.sin(half), zero]),
            0.5 * rate * jnp.stack([-s, zero, -c]),
            jnp.stack([zero, rate, zero]),
        )

    @jax.jit
    @jax.vmap
    def run(dt):
        solution = rj.simulate(
            model, state(jnp.array(0.0)), t1, solver=GeneralizedAlpha(0.8), dt=dt, max_steps=82
        )
        return solution.states.position[0], solution.multipliers[0, -1]

    (position, last), end = run(t1 / jnp.array(counts, float)), state(jnp.array(t1))
    np.testing.assert_allclose(position - end.position, 0, atol=1e-14)
    y = rj.Absolute(system).start(end, t1)
    drive = model.reactions(t1, y)["revolute ground-rod"].drive
    # About the joint: (J + m l^2) phi'' less the moment of the weight; axis and angle as above.
    acceleration = jax.grad(jax.grad(motion))(t1)
    expected = (0.2 + 2.0 * 0.25) * acceleration - 2.0 * 9.81 * end.position[0, 0]
    assert drive == pytest.approx(float(expected), rel=1e-10)
    error = jnp.abs(jnp.abs(last) - jnp.abs(drive))
    assert slope(counts, error) == pytest.approx(2, abs=0.2)


@pytest.mark.exhaustive
def test_shorter_last_step():
    """A short last step leaves multipliers at second order: 10 1/2 steps against 10 and 11."""
    system, state0 = tumbling_chain(1)
    model, t1 = rj.Absolute(system, index=3), 0.21
    reference = rj.simulate(rj.NullSpace(system), state0, t1, rtol=1e-11, atol=1e-11).multipliers

    @jax.jit
    @jax.vmap
    def gap(dt):
        lam = rj.simulate(
            model, state0, t1, solver=GeneralizedAlpha(0.7), dt=dt, max_steps=50
        ).multipliers
        return jnp.max(jnp.abs(lam - reference))

    short, long, between = gap(jnp.array([t1 / 11, t1 / 10, t1 / 10.5]))
    assert between < 3 * max(short, long)


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


@pytest.mark.exhaustive
def test_contradictory_joints_are_reported():
    """A slide driven away from a rod that holds it: a named result, no wrong state."""
    slider = rj.Body("b", 1.0, (1.0, 1.0, 1.0), position=(1.0, 0.0, 0.0))
    joints = [
        rj.Prismatic("ground", "b", (1.0, 0, 0), motion=lambda t: 5.0 * t),
        rj.Distance("ground", "b", (1.0, 1.0, 0.0), (1.0, 0.0, 0.0)),
    ]
    system = rj.System(slider, joints)
    state0 = rj.State([[1.0, 0, 0]], None, [[5.0, 0, 0]])
    solution = rj.simulate(
        rj.Absolute(system, index=3), state0, 1.0, solver=GeneralizedAlpha(), dt=0.1, throw=False,
        max_steps=12,
    )  # fmt: skip
    assert solution.result == rj.RESULTS.nonlinear_divergence


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


@pytest.mark.exhaustive
def test_backwards_with_diffrax():
    """There and back again by a scheme without damping, to its order."""
    problem = problems.heavy_top()
    model = rj.Absolute(problem.system, index=3)
    term, solver, y0 = (
        rj.solvers.ModelTerm(model),
        GeneralizedAlpha(1.0),
        model.encode(problem.state0),
    )

    def run(t0, t1, y):
        dt = (t1 - t0) / 100
        return diffrax.diffeqsolve(term, solver, t0, t1, dt, y).ys[-1]

    there = run(0.0, 0.2, y0)
    assert np.max(np.abs(there[:4] - y0[:4])) > 0.1
    np.testing.assert_allclose(run(0.2, 0.0, there)[:8], y0[:8], atol=2e-3)


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


@pytest.mark.exhaustive
@pytest.mark.exhaustive
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
