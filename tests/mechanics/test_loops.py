"""Closed loops, redundant ones too, and prescribed motions."""

import itertools

import numpy as np

import rigidjax as rj
from rigidjax.mechanics.dynamics.loops import loop_blocks
from rigidjax.mechanics.stacked.system import PreparedSystem


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
