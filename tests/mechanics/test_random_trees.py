"""Accelerations of random trees against Pinocchio's articulated-body algorithm.

The references are in `data/trees.npz`, written by `tools/exact/random_trees.py`.
"""

import functools
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rigidjax as rj
from rigidjax.mechanics.kinematics.constraints import constraint_values

KINDS = (
    "Spherical", "Revolute", "Prismatic", "Cylindrical", "Planar", "Universal", "Screw", "Weld",
    "free",
)  # fmt: skip


@functools.cache
def references():
    with np.load(pathlib.Path(__file__).parent / "data" / "trees.npz") as file:
        return dict(file)


def part(index):
    """One tree."""
    data = references()
    ends = np.cumsum(data["counts"])
    here = slice(ends[index] - data["counts"][index], ends[index])
    single = ("counts", "gravity", "pitch")
    tree = {key: value[here] for key, value in data.items() if key not in single}
    return tree | {"names": [f"{index}.{i}" for i in range(data["counts"][index])]}


def joint_of(tree, i):
    """The joint that body `i` hangs by, every third one the other way round."""
    kind, parent = KINDS[tree["kinds"][i]], tree["parents"][i]
    if kind == "free":
        return None
    bodies = ["ground" if parent < 0 else tree["names"][parent], tree["names"][i]]
    point, (first, second) = tree["points"][i], tree["axes"][i]
    if kind in ("Revolute", "Prismatic", "Cylindrical") and i % 3 == 1:
        bodies = bodies[::-1]
    if kind in ("Spherical", "Weld"):
        return getattr(rj, kind)(*bodies, point)
    if kind == "Prismatic":
        return rj.Prismatic(*bodies, first, point=point)
    if kind == "Universal":
        return rj.Universal(*bodies, point, first, second)
    if kind == "Screw":
        return rj.Screw(*bodies, point, first, references()["pitch"])
    return getattr(rj, kind)(*bodies, point, first)


def parts_of(tree):
    """Bodies, joints and forces."""
    p = Rotation.from_matrix(tree["reference_rotations"]).as_quat(scalar_first=True)
    bodies, joints, forces = [], [], []
    for i, name in enumerate(tree["names"]):
        x = tree["reference_positions"][i]
        bodies.append(rj.Body(name, tree["masses"][i], tree["inertias"][i], x, p[i]))
        joints += [joint] if (joint := joint_of(tree, i)) is not None else []
        forces.append(rj.PointForce(name, np.zeros(3), tree["forces"][i]))
        forces.append(rj.Torque(name, tree["moments"][i]))
    return bodies, joints, forces


def system_of(trees):
    """All trees as one system, the joints in another order than the bodies."""
    parts = [parts_of(tree) for tree in trees]
    bodies, joints, forces = ([x for part in parts for x in part[k]] for k in range(3))
    order = np.random.default_rng(len(bodies)).permutation(len(joints))
    gravity = rj.Gravity(references()["gravity"])
    return rj.System(bodies, [joints[j] for j in order], [gravity, *forces])


def accelerations(model, state):
    """Violation of the joints by the state, and the derivatives of its twists."""
    t = jnp.zeros(())
    y = model.pack(state)
    decoded = model.decode(t, y)
    violation = jnp.concatenate(
        [
            constraint_values(model.prepared_system, t, model.motion(t, y)[1]).ravel(),
            (decoded.velocity - state.velocity).ravel(),
            (decoded.angular_velocity - state.angular_velocity).ravel(),
        ]
    )
    rates = model.accelerations(t, y)
    return jnp.max(jnp.abs(violation)), rates.linear, rates.angular


@pytest.mark.exhaustive
# Compiling costs nearly all the time, and hardly depends on the number of bodies.
@pytest.mark.parametrize("indices", [range(0, 7), range(7, 13), range(13, 19), [19]], ids=str)
def test_accelerations_against_pinocchio(indices):
    trees = [part(index) for index in indices]
    tree = {key: np.concatenate([tree[key] for tree in trees]) for key in trees[0]}
    model = rj.NullSpace(system_of(trees))
    p = Rotation.from_matrix(tree["rotations"]).as_quat(scalar_first=True)
    state = rj.State(tree["positions"], p, tree["velocities"], tree["spins"])
    fast = {"xla_backend_optimization_level": 0}
    function = jax.jit(lambda state: accelerations(model, state), compiler_options=fast)
    violation, linear, angular = function(state)
    # The conventions of both programs for joints, frames and twists are the same.
    assert violation < 1e-12
    for found, wanted in ((linear, tree["linear"]), (angular, tree["angular"])):
        assert np.abs(found - wanted).max() < 1e-11 * np.abs(wanted).max()


def test_trees_contain_all_joints_and_free_bodies():
    kinds = np.bincount(references()["kinds"], minlength=len(KINDS))
    assert np.all(kinds >= 3)
    assert sorted(references()["counts"])[-1] == 40
