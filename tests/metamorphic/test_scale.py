"""Mechanisms of every size, thickness and mass: what they do follows from their shape."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.linalg
from metamorphic import mechanisms
from metamorphic.mechanisms import FAST, FORMULATIONS, ZERO
from metamorphic.transforms import Units, in_units, stack_trees

import rigidjax as rj
from rigidjax.mechanics.dynamics.constraint_elimination import flatten_jacobian
from rigidjax.mechanics.dynamics.loads import apply_mass, free_forces
from rigidjax.mechanics.kinematics.constraints import constraint_jacobian, constraint_rates
from rigidjax.mechanics.kinematics.poses import (
    differentiate_along_motion,
    joint_frames_at,
    kinematics_for_forces,
)


def alike(systems):
    """Systems stacked as if they had the same static parts, which some take from their numbers."""
    structure = jax.tree.structure(systems[0])
    return stack_trees([jax.tree.unflatten(structure, jax.tree.leaves(s)) for s in systems])


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_states_are_checked_by_the_size_of_the_mechanism(formulation):
    """A gap of a hundred-thousandth of a link is refused at every size; round-off never is."""
    problem = rj.problems.four_bar(thickness=0.05)
    wrong = np.array(problem.state0.position)
    wrong[1] += 1e-5
    for size in (1e-6, 1e3):
        units = Units(metre=size, second=1e3)
        model = FORMULATIONS[formulation](in_units(problem.system, units))
        model.encode(in_units(problem.state0, units))
        with pytest.raises(ValueError, match="positions of the state violate the joint"):
            model.encode(in_units(rj.State(wrong, problem.state0.orientation), units))
        fast = rj.State(
            problem.state0.position, problem.state0.orientation,
            problem.state0.velocity * (1.0 + 1e-4), problem.state0.angular_velocity,
        )  # fmt: skip
        with pytest.raises(ValueError, match="velocities of the state violate the joint"):
            model.encode(in_units(fast, units))
    assert in_units(problem.system, Units(metre=1e-9)).num_dof == 1


RATIOS = (1e-6, 1e-3, 1e3, 1e6)


def heavier(system, ratio, bodies):
    """With other masses of some of the bodies."""
    new = [
        eqx.tree_at(lambda b: (b.mass, b.inertia), body, (body.mass * ratio, body.inertia * ratio))
        if i in bodies
        else body
        for i, body in enumerate(system.bodies)
    ]
    return rj.System(new, system.joints, system.forces)


def exact(G, M, f, gamma):
    """Accelerations with 50 digits; independent constraints are found by pivoting."""
    _, R, pivots = scipy.linalg.qr(G.T, pivoting=True, mode="economic")
    rows = pivots[: len(R)][np.abs(np.diag(R)) > 1e-9 * np.abs(R[0, 0])]
    with mpmath.workdps(50):
        A = mpmath.matrix(np.block([[M, G[rows].T], [G[rows], np.zeros((len(rows), len(rows)))]]))
        return np.array(mpmath.lu_solve(A, mpmath.matrix([*f, *-gamma[rows]])), float)[: len(f)]


def problem_of(system, state):
    """Matrices of $M w' + G^T lambda = f$, $G w' = -gamma$, and the accelerations found."""
    out = {}
    for name, formulation in FORMULATIONS.items():
        model = formulation(system)
        y = model.pack(state)
        out[name] = model.accelerations(ZERO, y)
    prepared = model.prepared_system
    poses, joint_frames, twists = model.motion(ZERO, y)
    forces = free_forces(
        prepared, ZERO, kinematics_for_forces(prepared, poses, joint_frames, twists)
    )
    rate = lambda t, poses: constraint_rates(prepared, t, joint_frames_at(prepared, poses), twists)  # noqa: E731
    _, gamma = differentiate_along_motion(rate, ZERO, poses, twists)
    unit = jnp.eye(6 * prepared.num_bodies).reshape(-1, prepared.num_bodies, 6)
    M = jax.vmap(lambda w: apply_mass(prepared, w[:, :3], w[:, 3:]).ravel())(unit)
    return (
        flatten_jacobian(constraint_jacobian(prepared, ZERO, joint_frames)),
        M,
        forces.ravel(),
        gamma,
        out,
    )


@pytest.mark.parametrize("bodies", [(1,), (0, 2), (2,)])
def test_mass_ratios(bodies):
    """A link of a chain that is lighter or heavier than the others by 1e6."""
    system, state = mechanisms.chain()
    # Rates of ball joints at random.
    model = rj.NullSpace(system)
    y = model.pack(state)
    rates = np.random.default_rng(2).normal(size=9)
    state = model.decode(ZERO, y.at[model.layout.num_positions :].set(rates))
    systems = [heavier(system, ratio, bodies) for ratio in RATIOS]
    G, M, f, gamma, found = jax.tree.map(np.asarray, program()(alike(systems), state))
    for k in range(len(RATIOS)):
        true = exact(G[k], M[k], f[k], gamma[k]).reshape(-1, 6)
        for name in FORMULATIONS:
            linear, angular = found[name].linear[k], found[name].angular[k]
            assert np.abs(linear - true[:, :3]).max() < 1e-8 * np.abs(true[:, :3]).max()
            assert np.abs(angular - true[:, 3:]).max() < 1e-8 * np.abs(true[:, 3:]).max()


@functools.cache
def program():
    return jax.jit(jax.vmap(problem_of, in_axes=(0, None)), compiler_options=FAST)
