"""Closed forms of the absolute formulations against the dense saddle-point problem.

The dense side uses nothing but `to_matrix`, `mass_matrix`, `constraint` and `tangent`: the terms of
Lagrange's equations come from automatic differentiation of the kinetic energy, generalized
forces from that of the points where the forces act.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from formulations import cases

import rigidjax as rj
from rigidjax.formulations.constrained import constrained_acceleration, internal_multipliers
from rigidjax.rotations import so3
from rigidjax.rotations.base import AbstractRotation

POINT, PUSH = np.array([0.3, -0.2, 0.4]), np.array([1.5, -0.7, 2.0])
ARM, FOLLOWER = np.array([-0.1, 0.5, 0.2]), np.array([0.4, 0.9, -1.1])
INERTIAS = {"principal": (50.0, 42.0, 10.0), "tensor": cases.TENSOR, "sphere": (2.0, 2.0, 2.0)}


def law(t, R, omega):
    return jnp.cos(t) * R[0] - 0.4 * omega


def energy(positions, rotations):
    return 0.7 * jnp.sum(rotations[0][0] ** 3) + rotations[0][2, 1] * rotations[0][1, 2]


def system(inertia, follower):
    forces = [
        rj.PointForce("a", POINT, PUSH),
        rj.Torque("a", law),
        rj.Torque("a", (0.2, 0.3, -0.4), "space"),
        rj.Potential(energy),
    ]
    if follower:
        forces.append(rj.PointForce("a", ARM, FOLLOWER, "body"))
    return rj.System(rj.Body("a", 2.0, inertia), forces=forces)


def couple(rotation, R, H, moment):
    """Generalized force of a moment; off the manifold forces on the directors with that moment."""
    if isinstance(rotation, rj.Directors):
        return 0.5 * (jnp.linalg.inv(R).T @ so3.skew(moment)).T.reshape(9)
    return H.T @ moment


def saddle_point(rotation, inertia, t, a, a_dot, follower):
    """Lang (6): second derivatives of the coordinates, and multipliers."""
    inertia = jnp.asarray(inertia)
    R, H = rotation.to_matrix(a), rotation.tangent(a)
    M = rotation.mass_matrix(a, inertia)
    slope = jax.jvp(lambda a: rotation.mass_matrix(a, inertia) @ a_dot, (a,), (a_dot,))[1]
    slope -= jax.grad(lambda a: 0.5 * a_dot @ rotation.mass_matrix(a, inertia) @ a_dot)(a)

    def work(a):
        R_varied = rotation.to_matrix(a)
        total = PUSH @ R_varied @ POINT - energy(None, R_varied[None])
        return total + (R @ FOLLOWER) @ (R_varied @ ARM) if follower else total

    moment = law(t, R, H @ a_dot) + R.T @ jnp.array([0.2, 0.3, -0.4])
    Q = jax.grad(work)(a) + couple(rotation, R, H, moment)
    G = jax.jacfwd(rotation.constraint)(a)
    bend = jax.jvp(lambda a: jax.jvp(rotation.constraint, (a,), (a_dot,))[1], (a,), (a_dot,))[1]
    m = rotation.num_constraints
    matrix = jnp.block([[M, G.T], [G, jnp.zeros((m, m))]])
    solution = jnp.linalg.solve(matrix, jnp.concatenate([Q - slope, -bend]))
    return solution[: len(a)], solution[len(a) :]


def samples(rotation, on_manifold):
    """Coordinates and rates; off the manifold as far as the closed form claims to hold."""
    rng = np.random.default_rng(3)
    if rotation.num_constraints == 0:
        a = np.asarray(rotation.center()) + rng.uniform(-0.5, 0.5, (40, 3))
        return jnp.asarray(a), jnp.asarray(rng.normal(size=(40, 3)))
    p = rng.normal(size=(40, 4))
    p /= np.linalg.norm(p, axis=1, keepdims=True)
    a = jax.vmap(rotation.from_quaternion)(jnp.asarray(p))
    if on_manifold:
        return a, jax.vmap(rotation.rate)(a, jnp.asarray(rng.normal(size=(40, 3))))
    if isinstance(rotation, rj.Directors):
        a = a + 0.1 * rng.normal(size=a.shape)
    return a, jnp.asarray(rng.normal(size=a.shape))


def compare(rotation, inertia, on_manifold):
    inertia = INERTIAS[inertia]
    model = rj.Absolute(system(inertia, on_manifold), rotation)
    n, t = rotation.num_coordinates, jnp.array(0.4)

    def errors(a, a_dot):
        y = jnp.concatenate([jnp.zeros(3), a, jnp.zeros(3), a_dot])
        a_ddot, lam = saddle_point(rotation, inertia, t, a, a_dot, on_manifold)
        return {
            "acceleration": cases.error(model.vector_field(t, y)[n + 6 :], a_ddot),
            "multipliers": cases.error(model.multipliers(t, y), lam),
        }

    found = jax.jit(jax.vmap(errors))(*samples(rotation, on_manifold))
    return {key: float(jnp.max(value)) for key, value in found.items()}


@pytest.mark.parametrize(
    ("rotation", "inertia"),
    [
        (rj.Quaternion(radial_inertia="half-trace"), "principal"),
        (rj.RotationVector(), "tensor"),
        (rj.EulerAngles("ZXZ"), "sphere"),
    ],
    ids=lambda x: x if isinstance(x, str) else cases.rotation_name(x),
)
def test_saddle_point_agrees_on_the_manifold(rotation, inertia):
    # The saddle-point matrix has a condition number of up to a few hundred.
    assert np.max(list(compare(rotation, inertia, True).values())) < 1e-12


@pytest.mark.parametrize(
    ("rotation", "inertia"),
    [
        (rj.Quaternion(), "tensor"),
        (rj.Quaternion(radial_inertia="half-trace"), "sphere"),
        (rj.Directors(), "tensor"),
    ],
    ids=lambda x: x if isinstance(x, str) else cases.rotation_name(x),
)
def test_saddle_point_agrees_off_the_manifold(rotation, inertia):
    """Directors wherever they are; quaternions of unit length with any rates."""
    errors = compare(rotation, inertia, False)
    assert errors["acceleration"] < 1e-12
    if isinstance(rotation, rj.Directors):
        assert errors["multipliers"] < 1e-12


def test_multipliers_in_null_space_coordinates():
    """Both formulations have equal multipliers, ordered by body."""
    bodies, rotation = cases.two_bodies(), rj.Quaternion(radial_inertia="half-trace")
    states = cases.random_states(np.random.default_rng(4), bodies, 16)
    models = [
        rj.Absolute(bodies, rotation),
        rj.NullSpace(bodies, rotation),
        rj.NullSpace(bodies, rotation, rates="space"),
    ]
    t = jnp.array(0.6)
    first, *others = (
        jax.jit(jax.vmap(lambda s, m=model: m.multipliers(t, m.encode(s))))(states)
        for model in models
    )
    assert first.shape == (16, 2 * rotation.num_constraints)
    for other in others:
        assert cases.error(other, first) < 1e-13


@pytest.mark.parametrize("formulation", [rj.NullSpace, rj.Absolute])
def test_minimal_parametrizations_have_no_multipliers(formulation):
    for rotation in (rj.RotationVector(), rj.EulerAngles("ZXZ")):
        model = formulation(cases.heavy_top(), rotation)
        y = jnp.zeros(6).at[1].set(0.3)
        assert model.multipliers(jnp.zeros(()), y).shape == (0,)
        assert [float(x) for x in model.drift(jnp.zeros(()), y)] == [0.0, 0.0]
        assert model.project(jnp.zeros(()), y) is y


def test_fallback_without_closed_forms():
    methods = {name: (lambda self, *args: None) for name in AbstractRotation.__abstractmethods__}
    kind = type(
        "Strange", (AbstractRotation,), {**methods, "num_coordinates": 4, "num_constraints": 1}
    )
    a = jnp.zeros(4)
    with pytest.raises(
        ValueError, match="no closed form of the index-1 equations for Strange; use"
    ):
        constrained_acceleration(kind(), a, a, jnp.ones(3), None)
    with pytest.raises(ValueError, match="no closed-form multipliers for Strange"):
        internal_multipliers(kind(), a, a, jnp.ones(3), None, None)
