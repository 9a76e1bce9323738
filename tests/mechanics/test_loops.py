"""Closed loops, redundant ones too, and prescribed motions."""

import functools
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from formulations.cases import error, round_off

import rigidjax as rj
from rigidjax.mechanics.dynamics.constraint_elimination import flatten_jacobian
from rigidjax.mechanics.dynamics.loops import loop_blocks, loop_gradient
from rigidjax.mechanics.dynamics.select import _DENSE_CONSTRAINTS
from rigidjax.mechanics.kinematics.constraints import constraint_jacobian, constraint_rates
from rigidjax.mechanics.kinematics.poses import Twists, assemble_poses, joint_frames_at
from rigidjax.mechanics.kinematics.trees import twists_from_velocities
from rigidjax.mechanics.stacked.system import PreparedSystem

FAST = {"xla_backend_optimization_level": 0}
ZERO = jnp.zeros(())
GRAVITY = np.array([0.0, -9.81, 0.0])
POINTS = np.array([(0.0, 0.0, 0.0), (0.0, 1.0, 0.0), (2.0, 1.5, 0.0), (3.0, 0.0, 0.0)])


def four_bar():
    """A planar four-bar of thin rods hinged in space: three of its constraints are redundant."""
    ends = list(itertools.pairwise(POINTS))
    rods = [
        rj.Body(f"{i}", 1.0 + i, (0.02, 0.3, 0.31), 0.5 * (a + b)) for i, (a, b) in enumerate(ends)
    ]
    pairs = [("ground", "0"), ("0", "1"), ("1", "2"), ("ground", "2")]
    hinges = [rj.Revolute(*pair, x, (0.0, 0.0, 1.0)) for pair, x in zip(pairs, POINTS, strict=True)]
    return rj.System(rods, hinges, rj.Gravity(GRAVITY))


def four_bar_at_speed():
    """The four-bar with arbitrary twists: nearest consistent ones, accelerations, one number."""
    model = rj.NullSpace(four_bar())
    rng = np.random.default_rng(3)
    state = model.system.reference_state()
    twists = rng.normal(size=(2, 3, 3))

    def unknowns(speed):
        return model.pack(rj.State(state.position, state.orientation, *(speed * twists)))

    def evaluate(speed):
        y = unknowns(speed)
        _, joint_frames, moving = model.motion(ZERO, y)
        rate = constraint_rates(model.prepared_system, ZERO, joint_frames, moving)
        G = flatten_jacobian(constraint_jacobian(model.prepared_system, ZERO, joint_frames))
        of = model.accelerations(ZERO, y)
        reactions = model.reactions(ZERO, y)
        return rate, G, moving, of, reactions, jnp.stack(model.drift(ZERO, y))

    def smooth(speed):
        of = model.accelerations(ZERO, unknowns(speed))
        return jnp.sum(of.linear * twists[0]) + jnp.sum(of.angular * twists[1])

    return model.system, evaluate, smooth


def evaluate_compiled(function, *speeds):
    out = jax.jit(jax.vmap(function), compiler_options=FAST)(jnp.array(speeds))
    return jax.tree.map(np.asarray, out)


@functools.cache
def evaluate_four_bar():
    system, evaluate, _ = four_bar_at_speed()
    return system, evaluate_compiled(evaluate, 1.0)


@pytest.mark.exhaustive
def test_velocities_of_a_redundant_loop_are_consistent():
    system, (rate, G, moving, _, _, drift) = evaluate_four_bar()
    assert np.linalg.matrix_rank(G[0], tol=1e-9) == 17 == G.shape[1] - 3
    assert np.abs(moving.angular[:, :, 2]).min() > 1e-3
    assert error(rate, 0.0 * rate) < round_off(100)
    assert drift.max() < round_off(100)
    # All of it stays in the plane.
    assert np.abs(moving.linear[:, :, 2]).max() < round_off(100)
    assert system.topology.loops != ()


@pytest.mark.exhaustive
def test_accelerations_of_a_redundant_loop_balance_with_finite_reactions():
    system, (_, _, moving, of, reactions, _) = evaluate_four_bar()
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(reactions))
    mass = np.array([float(body.mass) for body in system.bodies])
    inward = mass[:, None] * (of.linear - GRAVITY)
    force = {name: reaction.force for name, reaction in reactions.items()}
    first, second, third, fourth = (force[joint.name] for joint in system.joints)
    wanted = np.stack([first - second, second - third, third + fourth], axis=1)
    assert error(wanted, inward) < 1e-11
    # Power of gravity is the rate of kinetic energy: the hinges do no work.
    inertia = np.stack([np.asarray(body.inertia) for body in system.bodies])
    power = np.einsum("l,kli,kli->k", mass, moving.linear, of.linear - GRAVITY)
    power = power + np.einsum("li,kli,kli->k", inertia, moving.angular, of.angular)
    assert np.abs(power).max() < 1e-11


@pytest.mark.exhaustive
def test_derivatives_through_a_redundant_loop():
    _, _, smooth = four_bar_at_speed()
    value, slope = evaluate_compiled(jax.value_and_grad(smooth), 1.0, 0.99, 1.01)
    # The accelerations are quadratic in the speed, so that central differences are exact.
    assert error(slope[:1], (value[2:] - value[1:2]) / 0.02) < 1e-10


@pytest.mark.exhaustive
def test_projection_of_many_loops():
    """Trees that are eliminated joint by joint, under loops: the loops are no part of that."""
    problem = rj.problems.n_four_bar(6)
    model = rj.NullSpace(problem.system)
    assert model.prepared_system.num_tree_constraints > _DENSE_CONSTRAINTS
    y = model.encode(problem.state0)
    moved = y + 1e-4 * np.random.default_rng(5).normal(size=y.shape)
    project = jax.jit(lambda y: model.project(ZERO, y)).lower(y).compile(FAST)
    once = project(moved)
    # Newton: an error of 1e-4 becomes 1e-8, then round-off.
    assert np.max(np.asarray(model.drift(0.0, project(once)))) < 1e-12
    assert np.max(np.abs(once - moved)) < 1e-2
    np.testing.assert_allclose(project(y), y, atol=1e-12)


def arm():
    """A hinge that follows a motion, off centre, and a pendulum on it."""
    angle = lambda t: 0.7 * jnp.sin(3.0 * t)  # noqa: E731
    bodies = [rj.Body("arm", 2.0, (0.1, 0.2, 0.25), (0.4, 0.1, 0.0))]
    hinge = rj.Revolute("ground", "arm", (0.0, 0.0, 0.1), (0.0, 0.0, 2.0), angle)
    return rj.System(bodies, [hinge], rj.Gravity((0.0, -9.81, 0.0)))


@pytest.mark.exhaustive
def test_driven_hinge_follows_its_motion_with_the_moment_of_inverse_dynamics():
    system, times = arm(), jnp.linspace(0.0, 1.0, 9)

    def at(t):
        q = 0.7 * jnp.sin(3.0 * t)
        turn, half = jnp.array([jnp.cos(q), jnp.sin(q)]), 0.5 * q
        x = jnp.array([0.4 * turn[0] - 0.1 * turn[1], 0.4 * turn[1] + 0.1 * turn[0], 0.0])
        p = jnp.array([jnp.cos(half), 0.0, 0.0, jnp.sin(half)])
        state = rj.State(x, p)
        out = []
        for model in (rj.NullSpace(system), rj.Absolute(system)):
            start = rj.NullSpace(system).decode(t, rj.NullSpace(system).pack(state, None, t))
            y = model.pack(start, None, t)
            (reaction,) = model.reactions(t, y).values()
            of = model.accelerations(t, y)
            out.append((start.angular_velocity[0, 2], of.angular[0, 2], reaction.drive, x))
        return out

    for rate, change, drive, x in jax.jit(jax.vmap(at), compiler_options=FAST)(times):
        wanted = -6.3 * np.sin(3.0 * times)
        assert error(rate, 2.1 * np.cos(3.0 * times)) < round_off(20)
        assert error(change, wanted) < round_off(50)
        # Steiner: 0.25 + 2 (0.4^2 + 0.1^2) about the axis, less the moment of gravity.
        moment = (0.25 + 2.0 * 0.17) * wanted + 2.0 * 9.81 * x[:, 0]
        assert error(drive, moment) < round_off(100)


@pytest.mark.exhaustive
def test_driven_hinge_in_a_simulation():
    system = arm()
    state = system.reference_state()
    model = rj.NullSpace(system)
    start = model.decode(ZERO, model.pack(state))
    times = jnp.array([0.4, 1.0])
    solution = rj.simulate(model, start, 1.0, ts=times, rtol=1e-10, atol=1e-10)
    p = np.asarray(solution.states.orientation)[:, 0]
    wanted = 0.7 * np.sin(3.0 * np.asarray(times))
    assert error(2.0 * np.arctan2(p[:, 3], p[:, 0]), wanted) < 1e-8


def _rings(count, connected):
    """Rings of five bodies, each on the ground or on the one before, and a pendulum."""
    bodies, joints = [], []
    angles = 0.1 + np.arange(6) * np.pi / 3
    for r in range(count):
        points = np.stack([3.0 * r + np.cos(angles), np.sin(angles), 0.0 * angles], axis=1)
        names = [f"{r} {k}" for k in range(5)]
        for k, name in enumerate(names):
            middle = 0.5 * (points[k] + points[k + 1])
            bodies.append(rj.Body(name, 1.0, (0.1, 0.12, 0.2), position=middle))
        base = "0 2" if connected and r else "ground"
        for k, (first, second) in enumerate(itertools.pairwise([base, *names, base])):
            if k == 1:
                joint = rj.Universal(first, second, points[k], (0, 0, 1.0), (0, 1.0, 0))
            else:
                joint = rj.Revolute(first, second, points[k], (0, 0, 1.0))
            joints.append(joint)
    bodies.append(rj.Body("pendulum", 1.0, (0.1, 0.1, 0.1), position=(0, 0, -3.0)))
    joints.append(rj.Revolute("ground", "pendulum", (0, 0, -2.0), (0, 1.0, 0)))
    return bodies, joints


@pytest.mark.parametrize("connected", [False, True])
@pytest.mark.exhaustive
def test_loops_without_common_joints_are_independent(connected):
    """Each has its own rows and columns of the gradient, which is zero outside of them."""
    system = rj.System(*_rings(3, connected), [rj.Gravity((0, -9.81, 0))])
    prepared = PreparedSystem(system)
    reference = prepared.reference
    poses = assemble_poses(prepared, reference.positions, reference.rotations, jnp.zeros(0))
    loops = loop_gradient(prepared, jnp.zeros(()), poses, joint_frames_at(prepared, poses))
    assert [(len(rows), len(columns)) for rows, columns in loops.blocks.parts] == [(5, 6)] * 3
    outside = np.ones(loops.matrix.shape, bool)
    for rows, columns in loops.blocks.parts:
        outside[np.ix_(rows, columns)] = False
        assert np.linalg.matrix_rank(loops.matrix[np.ix_(rows, columns)], tol=1e-9) == 3
    assert np.abs(loops.matrix[outside]).max() < 1e-15
    # Hexagons of three freedoms, and the pendulum.
    assert system.num_dof == 10


@pytest.mark.exhaustive
@pytest.mark.exhaustive
def test_gradients_of_loops_of_different_lengths():
    """Joints of one kind close loops of four and five bodies, one of them hung on the other: on all
    rates the gradient is that of what the joints see of the twists."""
    bodies, joints = _rings(1, False)
    corners = np.array([[0, 2.0, 0], [1.0, 3.0, 0.2], [0, 4.0, 0], [-1.0, 3.0, 0], [0, 2.0, 0]])
    names = [f"square {k}" for k in range(4)]
    for name, (a, b) in zip(names, itertools.pairwise(corners), strict=True):
        bodies.append(rj.Body(name, 1.0, (0.1, 0.12, 0.2), position=0.5 * (a + b)))
    for first, second, point in zip(["0 1", *names], [*names, names[0]], corners, strict=True):
        joints.append(rj.Revolute(first, second, point, (0.1, 0, 1.0)))
    prepared = PreparedSystem(rj.System(bodies, joints))
    reference = prepared.reference
    rng = np.random.default_rng(5)
    x = reference.positions + 0.05 * rng.normal(size=reference.positions.shape)
    poses = assemble_poses(prepared, x, reference.rotations, jnp.zeros(0))
    joint_frames = joint_frames_at(prepared, poses)
    loops = loop_gradient(prepared, ZERO, poses, joint_frames)
    assert len({tuple(np.flatnonzero(row)) for row in np.abs(loops.matrix) > 1e-12}) > 1

    def rates(nu):
        twists = twists_from_velocities(prepared, poses, loops.moving, nu)
        seen = Twists(twists[:, :3], twists[:, 3:])
        return constraint_rates(prepared, ZERO, joint_frames, seen, loops_only=True)

    wanted = jax.jacfwd(rates)(jnp.zeros(len(loops.scale)))
    found = loops.units[:, None] * loops.matrix / loops.scale[None]
    assert np.abs(found - wanted).max() < round_off(50)


@pytest.mark.exhaustive
@pytest.mark.exhaustive
def test_derivatives_through_several_loops():
    """Reverse mode against forward mode, and against differences; XLA's program and a kernel."""
    bodies, joints = _rings(2, True)
    system = rj.System(bodies, joints, [rj.Gravity((0, -9.81, 0))])

    def squares(point):
        changed = eqx.tree_at(lambda s: s.joints[3].point, system, point)
        model = rj.NullSpace(changed)
        y = model.chart(changed.reference_state())
        return sum(jnp.sum(x**2) for x in jax.tree.leaves(model.vector_field(0.0, y, None)))

    point = jnp.asarray(joints[3].point)
    along = jnp.array([0.3, -0.2, 0.1])
    forward = jax.jit(lambda x: jax.jvp(squares, (x,), (along,))[1])(point)
    for function in (jax.jit(jax.grad(squares)), rj.native.jit(jax.grad(squares))):
        assert abs(function(point) @ along - forward) < 1e-9 * abs(forward)
    value = jax.jit(squares)
    h = 1e-4
    slope = (value(point + h * along) - value(point - h * along)) / (2 * h)
    assert abs(slope - forward) < 1e-5 * abs(forward)


def test_coupled_loops_are_one_component():
    bodies, joints = _rings(2, False)
    joints.append(rj.Coupling(joints[0], joints[6], 1.0))
    prepared = PreparedSystem(rj.System(bodies, joints))
    blocks = loop_blocks(prepared)
    assert [(len(rows), len(columns)) for rows, columns in blocks.parts] == [(11, 12)]
    joints[-1] = rj.Constraint(
        lambda t, poses: poses["0 4"][0][0] - poses["pendulum"][0][0], ("0 4", "pendulum")
    )
    blocks = loop_blocks(PreparedSystem(rj.System(bodies, joints)))
    assert sorted((len(rows), len(columns)) for rows, columns in blocks.parts) == [(5, 6), (6, 7)]
