"""Lang's pull-back: joints written for directors serve quaternions (Section 5, Table 2)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from formulations.cases import error, round_off
from joints import cases as joint_cases
from mechanics import cases
from scipy.linalg import block_diag

import rigidjax as rj
from rigidjax.mechanics.kinematics.constraints import constraint_values
from rigidjax.mechanics.kinematics.poses import assemble_poses, joint_frames_at
from rigidjax.rotations.euler_map import (
    euler_differential,
    euler_differential_inverse,
    euler_map_directors,
)

# Joint: external constraints, degrees of freedom, multipliers of directors and of quaternions.
TABLE_2 = {
    "Planar": (3, 9, 15, 5), "Spherical": (3, 9, 15, 5), "Cylindrical": (4, 8, 16, 6),
    "Prismatic": (5, 7, 17, 7), "Revolute": (5, 7, 17, 7),
}  # fmt: skip


def pair(kind):
    """Two bodies in space and one joint between them, with a pose that it allows."""
    rng = np.random.default_rng(8)
    system = rj.System(cases.bodies(rng, 2), [joint_cases.KINDS[kind]("body 0", "body 1")])
    x, p = cases.random_positions(system, [("body 0", "body 1", kind)], rng)
    return system, jnp.asarray(x), jnp.asarray(p)


def constraint(system, rotation):
    """The joint's constraints as a function of the coordinates (x1, a1, x2, a2)."""
    prepared = rj.NullSpace(system, rotation).prepared_system

    def g(q):
        rows = q.reshape(2, -1)
        R = jax.vmap(rotation.to_matrix)(rows[:, 3:])
        poses = assemble_poses(prepared, rows[:, :3], R, jnp.zeros(0))
        return constraint_values(prepared, jnp.zeros(()), joint_frames_at(prepared, poses))

    return g


def mass_matrix(system, rotation, p):
    blocks = []
    for body, a in zip(system.bodies, p, strict=True):
        blocks += [float(body.mass) * np.eye(3), np.asarray(rotation.mass_matrix(a, body.inertia))]
    return block_diag(*blocks)


@pytest.mark.exhaustive(but=("Spherical",))
@pytest.mark.parametrize("kind", TABLE_2)
def test_pull_back_of_a_lower_pair(kind):
    system, x, p = pair(kind)
    quaternion, directors = rj.Quaternion(), rj.Directors()
    d = jnp.stack([euler_map_directors(row) for row in p])
    q_p, q_d = (jnp.concatenate([x, a], axis=1).ravel() for a in (p, d))
    U = block_diag(*(part for row in p for part in (np.eye(3), euler_differential(row))))
    inverse = block_diag(
        *(part for row in p for part in (np.eye(3), euler_differential_inverse(row)))
    )
    g_d, G_d = both(constraint(system, directors), q_d)
    g_p, G_p = both(constraint(system, quaternion), q_p)
    assert error(g_d, 0.0 * g_d) < round_off(50) and error(g_p, 0.0 * g_p) < round_off(50)
    # Lang (59): the gradient by the chain rule.
    assert error(G_d @ U, G_p) < round_off(50)
    external, dof, of_directors, of_quaternions = TABLE_2[kind]
    assert len(g_p) == external
    assert system.num_dof == dof
    assert 2 * directors.num_constraints + external == of_directors
    assert 2 * quaternion.num_constraints + external == of_quaternions
    # Lang (61): the same null space, pulled back, and the same mass matrix of the rates.
    T_d, T_p = null_space(system, directors, q_d), null_space(system, quaternion, q_p)
    assert T_p.shape == (14, dof)
    assert error(inverse @ T_d, T_p) < round_off(50)
    assert error(U @ T_p, T_d) < round_off(50)
    assert error(G_p @ T_p, 0.0 * (G_p @ T_p)) < round_off(50)
    M_d = mass_matrix(system, directors, d)
    M_p = mass_matrix(system, quaternion, p)
    assert error(T_p.T @ (U.T @ M_d @ U) @ T_p, T_d.T @ M_d @ T_d) < round_off(50)
    assert error(T_p.T @ M_p @ T_p, T_d.T @ M_d @ T_d) < round_off(50)


def both(function, q):
    """Value and gradient."""
    return jax.jit(lambda q: (function(q), jax.jacrev(function)(q)))(q)


def null_space(system, rotation, q):
    """Rates of all coordinates for every generalised velocity, from the vector field."""
    model = rj.NullSpace(system, rotation)

    def rates(nu):
        y = jnp.concatenate([q, nu])
        return model.vector_field(jnp.zeros(()), y)[: q.size]

    return jax.jit(jax.jacfwd(rates))(jnp.zeros(system.num_dof))
