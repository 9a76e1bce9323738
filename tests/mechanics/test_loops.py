"""Closed loops, redundant ones too, and prescribed motions."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from formulations.cases import error

import rigidjax as rj
from rigidjax.mechanics.dynamics.constraint_elimination import flatten_jacobian
from rigidjax.mechanics.dynamics.loops import loop_blocks
from rigidjax.mechanics.kinematics.constraints import constraint_jacobian, constraint_rates
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
