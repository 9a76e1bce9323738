"""Closed loops, redundant ones too."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import systems
from formulations.cases import error

import rigidjax as rj
from rigidjax.mechanics.dynamics.loops import loop_blocks
from rigidjax.mechanics.stacked.system import PreparedSystem

FAST = {"compiler_options": {"xla_backend_optimization_level": 0}}
ZERO = jnp.zeros(())


def test_accelerations_of_a_redundant_loop_balance_with_finite_reactions():
    """The planar four-bar hinged in space: three of its constraints are redundant."""
    model = systems.model("four-bar")
    system, y = model.system, model.encode(systems.case("four-bar").state)

    def evaluate(y):
        return model.motion(ZERO, y)[2], model.accelerations(ZERO, y), model.reactions(ZERO, y)

    moving, of, reactions = jax.tree.map(np.asarray, jax.jit(evaluate, **FAST)(y))
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(reactions))
    mass = np.array([float(body.mass) for body in system.bodies])
    gravity = np.asarray(system.forces[0].vector)
    inward, names = mass[:, None] * (of.linear - gravity), [body.name for body in system.bodies]
    found = {name: np.zeros(3) for name in (*names, "ground")}
    for joint in system.joints:
        found[joint.child] += reactions[joint.name].force
        found[joint.parent] -= reactions[joint.name].force
    assert error(np.stack([found[name] for name in names]), inward) < 1e-11
    # Power of gravity is the rate of kinetic energy: the hinges do no work.
    inertia = np.stack([np.asarray(body.inertia) for body in system.bodies])
    power = np.einsum("l,li,li", mass, moving.linear, of.linear - gravity)
    power = power + np.einsum("li,li,li", inertia, moving.angular, of.angular)
    assert np.abs(power) < 1e-11


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
