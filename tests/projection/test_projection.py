"""Projections of perturbed unknowns: consistent, idempotent, and the nearest in their metric.

The nearest unknowns are computed in closed form: positions by the polar decomposition (the weighted
orthogonal Procrustes problem), velocities by linear least squares.
"""

import functools

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import systems
from formulations import cases
from numpy.linalg import det, lstsq, svd

import rigidjax as rj
from rigidjax.projection import Explicit, MassMetric

SYSTEMS = {
    "bodies": rj.System((rj.Body("one", 2.0, (0.5, 0.42, 0.3)), rj.Body("two", 3.0, cases.TENSOR))),
    # A plate: one Euler value and with it the mass matrix of the directors is singular.
    "plate": rj.FixedPointBody((1.0, 1.0, 2.0)),
}
INERTIAS = {
    "bodies": (np.diag([0.5, 0.42, 0.3]), np.array(cases.TENSOR)),
    "plate": (np.diag([1.0, 1.0, 2.0]),),
}
PROJECTIONS = {"explicit": Explicit(), "mass metric": MassMetric(), "hasty": MassMetric(None, 2)}
ZERO = jnp.zeros(())
COUNT = 24

every_projection = pytest.mark.parametrize("name", ["explicit", "mass metric"])


def samples(model, size, seed=43):
    """Consistent unknowns, and perturbed ones."""
    rng = np.random.default_rng(seed)
    states = cases.random_states(rng, model.system, COUNT)
    y = jax.vmap(model.pack)(states)
    return y, y + size * jnp.asarray(rng.normal(size=y.shape))


@functools.cache
def compile_projection(formulation, system, rotation, name):
    """A model, and its projection of a batch: unknowns and where it succeeded."""
    model = formulation(SYSTEMS[system], rotation)

    def project(y):
        y, result = PROJECTIONS[name](model, ZERO, y)
        return y, result == diffrax.RESULTS.successful

    return model, jax.jit(jax.vmap(project))


def worst_drift(model, y) -> list[float]:
    return [float(jnp.max(level)) for level in jax.vmap(lambda y: model.drift(ZERO, y))(y)]


@pytest.mark.parametrize(
    ("rotation", "name"), [(rj.Quaternion(), "explicit"), (rj.Directors(), "mass metric")]
)
def test_projected_unknowns_are_consistent(rotation, name):
    for formulation in (rj.Absolute, rj.NullSpace):
        model, project = compile_projection(formulation, "bodies", rotation, name)
        y, perturbed = samples(model, 0.05)
        before = worst_drift(model, perturbed)
        once, success = project(perturbed)
        assert np.all(success)
        assert before[0] > 0.05
        assert np.max(np.asarray(worst_drift(model, once))) < 3e-15
        if isinstance(model, rj.Absolute):
            assert before[1] > 0.05
        again, _ = project(once)
        assert cases.error(again, once) < 3e-15
        same, _ = project(y)
        assert cases.error(same, y) < 3e-15
        # Centres of mass, and in null-space coordinates all velocities, stay where they are.
        layout = model.layout
        start, of_body = layout.num_positions, 3 + layout.num_coordinates
        fixed = [i * of_body + k for i in range(2) for k in range(3)]
        fixed += [start + i * (3 + layout.num_rates) + k for i in range(2) for k in range(3)]
        assert np.array_equal(once[:, fixed], perturbed[:, fixed])
        if isinstance(model, rj.NullSpace):
            assert np.array_equal(once[:, start:], perturbed[:, start:])


def nearest_rotation(A, E):
    """The rotation R with the least tr((R - A) E (R - A)^T)."""
    U, _, V = svd(A @ E)
    return U @ np.diag([1.0, 1.0, det(U @ V)]) @ V


def nearest_rate(R, rate, E):
    """The R skew(w) with the least tr((R skew(w) - rate) E (R skew(w) - rate)^T)."""
    values, vectors = np.linalg.eigh(E)
    root = vectors @ np.diag(np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    basis = [R @ np.cross(np.eye(3), -axis) for axis in np.eye(3)]
    w = lstsq(np.stack([(b @ root).ravel() for b in basis], 1), (rate @ root).ravel())[0]
    return sum(w[k] * basis[k] for k in range(3))


def matrices(a):
    """The directors of all samples as matrices, columns d1, d2, d3."""
    return np.asarray(a).reshape(-1, 3, 3).transpose(0, 2, 1)


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("size", [1e-6, 0.05])
def test_mass_metric_of_directors_is_the_nearest(system, size):
    model, project = compile_projection(rj.Absolute, system, rj.Directors(), "mass metric")
    _, perturbed = samples(model, size)
    projected, success = project(perturbed)
    assert np.all(success)
    explicit, _ = compile_projection(rj.Absolute, system, rj.Directors(), "explicit")[1](perturbed)
    layout = model.layout
    for i, inertia in enumerate(INERTIAS[system]):
        E = 0.5 * np.trace(inertia) * np.eye(3) - inertia
        parts = [
            matrices(jax.vmap(get)(y)[1][:, i])
            for y in (perturbed, projected, explicit)
            for get in (layout.poses, layout.twists)
        ]
        A, A_dot, R, R_dot, other, _ = parts
        assert cases.error(R, np.stack([nearest_rotation(a, E) for a in A])) < 1e-14
        rates = [nearest_rate(r, v, E) for r, v in zip(R, A_dot, strict=True)]
        assert cases.error(R_dot, np.stack(rates)) < 1e-14
        distance = lambda B, A=A, E=E: np.einsum("tij,jk,tik->t", B - A, E, B - A)  # noqa: E731
        # The explicit projection is another one, and never nearer.
        assert np.all(distance(R) < distance(other))
        assert np.max(np.abs(other - R)) > 0.05 * size


@every_projection
@pytest.mark.parametrize("rotation", cases.REDUNDANT[:2], ids=cases.rotation_name)
def test_quaternions_are_normalised_in_both_metrics(rotation, name):
    """Lang (63): the radial direction is orthogonal to the sphere in every mass metric."""
    model, project = compile_projection(rj.Absolute, "bodies", rotation, name)
    _, perturbed = samples(model, 0.05)
    projected, _ = project(perturbed)
    layout = model.layout
    for i in range(2):
        levels = (layout.poses, layout.twists)
        (p, p_dot), found = (
            [np.asarray(jax.vmap(get)(y)[1][:, i]) for get in levels]
            for y in (perturbed, projected)
        )
        unit = p / np.linalg.norm(p, axis=1, keepdims=True)
        tangent = p_dot - np.sum(unit * p_dot, axis=1, keepdims=True) * unit
        assert cases.error(found[0], unit) < 1e-14
        assert cases.error(found[1], tangent) < 1e-14


@every_projection
def test_minimal_parametrizations_have_nothing_to_project(name):
    for rotation in (rj.RotationVector(), rj.EulerAngles("ZXZ")):
        for formulation in (rj.Absolute, rj.NullSpace):
            model = formulation(SYSTEMS["bodies"], rotation)
            y = jnp.arange(24.0)
            projected, result = PROJECTIONS[name](model, ZERO, y)
            assert projected is y
            assert result == diffrax.RESULTS.successful


def test_failed_iteration_is_reported():
    """The failure is in the result, without an exception; one failed body is sufficient."""
    model, project = compile_projection(rj.Absolute, "bodies", rj.Directors(), "mass metric")
    y, perturbed = samples(model, 0.05)
    first, second = (
        y.at[:, rows].set(perturbed[:, rows]) for rows in (slice(3, 12), slice(15, 24))
    )
    hasty = compile_projection(rj.Absolute, "bodies", rj.Directors(), "hasty")[1]
    for start in (perturbed, first, second):
        assert not np.any(hasty(start)[1])
    assert np.all(hasty(y)[1])
    # No gradient of the constraints: the saddle-point matrix is singular, at either level.
    assert not np.any(project(0.0 * y)[1])


def test_trees_are_closed_to_round_off():
    """By one Newton step if the violation is small relative to the mechanism, else by two."""
    model = systems.model("double pendulum")
    y = model.encode(systems.case("double pendulum").state)
    (x, a), velocities = model.layout.poses(y), model.layout.velocities(y)
    change = np.random.default_rng(1).normal(size=x.shape)
    project = jax.jit(lambda y: model.project(ZERO, y))
    for size in (1e-5, 2e-8, 1e-8, 1e-9):
        moved = model.layout.join_all(x + size * change, a, velocities, jnp.zeros(0))
        before, after = (jnp.max(model.gaps(ZERO, z)) for z in (moved, project(moved)))
        assert before > 0.1 * size and after < 1e-15
