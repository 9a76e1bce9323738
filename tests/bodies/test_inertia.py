"""Inertia: identities between the forms, physicality, derivatives at equal moments."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from scipy.spatial.transform import Rotation

from rigidjax.bodies import (
    Body,
    FixedPointBody,
    MassProperties,
    euler_tensor,
    inertia_from_euler_tensor,
    inertia_tensor,
    nearest_physical,
    principal_axes,
    principal_euler_values,
    rotate_inertia,
)


def cloud(rng, count=7):
    """Point masses: (count,) kg and their positions (count, 3) m."""
    return rng.uniform(0.5, 2.0, count), rng.normal(size=(count, 3))


def inertia_of_points(masses, points):
    """Inertia about the origin straight from its definition."""
    total = np.zeros((3, 3))
    for m, x in zip(masses, points, strict=True):
        total += m * (x @ x * np.eye(3) - np.outer(x, x))
    return total


@pytest.fixture
def points(rng):
    masses, x = cloud(rng)
    center = masses @ x / masses.sum()
    return masses, x, center, inertia_of_points(masses, x - center)


@pytest.fixture
def properties(points):
    masses, _, center, inertia = points
    return MassProperties(masses.sum(), center, inertia)


def test_euler_tensor_is_second_moment_of_mass(points):
    masses, x, center, inertia = points
    expected = np.einsum("k,ki,kj->ij", masses, x - center, x - center)
    np.testing.assert_allclose(euler_tensor(jnp.asarray(inertia)), expected, atol=1e-13)
    np.testing.assert_allclose(inertia_from_euler_tensor(expected), inertia, atol=1e-13)


def test_euler_values_of_the_papers():
    # Lang, Examples A and B.
    example_a = principal_euler_values(jnp.array([50.0, 42.0, 10.0]))
    np.testing.assert_allclose(example_a, [1.0, 9.0, 41.0], rtol=1e-15)
    example_b = principal_euler_values(jnp.array([41.6, 11.6, 50.0]))
    np.testing.assert_allclose(example_b, [10.0, 40.0, 1.6], rtol=1e-14)
    as_tensor = principal_euler_values(jnp.diag(jnp.array([41.6, 11.6, 50.0])))
    np.testing.assert_allclose(as_tensor, [1.6, 10.0, 40.0], rtol=1e-14)


def test_principal_and_tensor_forms_agree(rng):
    moments = jnp.array([2.0, 3.0, 4.0])
    R = jnp.asarray(Rotation.random(rng=rng).as_matrix())
    tensor = rotate_inertia(moments, R)
    found, axes = principal_axes(tensor)
    np.testing.assert_allclose(found, moments, rtol=1e-14)
    np.testing.assert_allclose(rotate_inertia(found, axes), tensor, atol=1e-14)
    np.testing.assert_allclose(jnp.linalg.det(axes), 1.0, rtol=1e-14)
    np.testing.assert_allclose(
        inertia_tensor(euler_tensor(moments)), euler_tensor(inertia_tensor(moments)), atol=1e-15
    )
    np.testing.assert_allclose(
        inertia_from_euler_tensor(euler_tensor(moments)), moments, rtol=1e-15
    )


FORMS = {
    "euler_tensor": (
        lambda p: (p.mass, p.center, p.euler_tensor()),
        lambda value: MassProperties.from_euler_tensor(*value),
    ),
    "pseudo_inertia": (MassProperties.pseudo_inertia, MassProperties.from_pseudo_inertia),
    "parameters": (MassProperties.parameters, MassProperties.from_parameters),
    "log_cholesky": (MassProperties.log_cholesky, MassProperties.from_log_cholesky),
    "principal": (
        lambda p: (p.mass, p.center, *p.principal()),
        lambda value: MassProperties(value[0], value[1], rotate_inertia(value[2], value[3])),
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_conversions_between_forms_are_inverse(form, properties):
    to_form, from_form = FORMS[form]
    again = from_form(to_form(properties))
    np.testing.assert_allclose(again.mass, properties.mass, rtol=1e-14)
    np.testing.assert_allclose(again.center, properties.center, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(again.tensor, properties.tensor, atol=1e-12)


def test_forms_from_their_definitions(points, properties):
    masses, x, _, _ = points
    homogeneous = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    pseudo = np.einsum("k,ki,kj->ij", masses, homogeneous, homogeneous)
    np.testing.assert_allclose(properties.pseudo_inertia(), pseudo, atol=1e-12)
    i = inertia_of_points(masses, x)
    expected = np.concatenate(
        [[masses.sum()], masses @ x, [i[0, 0], i[0, 1], i[1, 1], i[0, 2], i[1, 2], i[2, 2]]]
    )
    np.testing.assert_allclose(properties.parameters(), expected, atol=1e-12)


def test_log_cholesky_is_the_factor_of_the_pseudo_inertia(properties):
    alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3 = np.asarray(properties.log_cholesky())
    factor = np.exp(alpha) * np.array(
        [[np.exp(d1), s12, s13, t1], [0, np.exp(d2), s23, t2], [0, 0, np.exp(d3), t3], [0, 0, 0, 1]]
    )
    np.testing.assert_allclose(factor @ factor.T, properties.pseudo_inertia(), atol=1e-12)


def test_rotation_shift_and_sum_of_mass_properties(points, rng):
    masses, x, _, _ = points
    R = Rotation.random(rng=rng).as_matrix()
    origin = rng.normal(size=3)

    def of(part, y):
        m, y = masses[part], y[part]
        center = m @ y / m.sum()
        return MassProperties(m.sum(), center, inertia_of_points(m, y - center))

    whole = of(slice(None), x)
    moved = whole.transformed(jnp.asarray(R), jnp.asarray(origin))
    direct = of(slice(None), x @ R.T + origin)
    np.testing.assert_allclose(moved.center, direct.center, atol=1e-13)
    np.testing.assert_allclose(moved.tensor, direct.tensor, atol=1e-12)
    together = of(slice(0, 4), x).combined(of(slice(4, None), x))
    np.testing.assert_allclose(together.pseudo_inertia(), whole.pseudo_inertia(), atol=1e-12)
    np.testing.assert_allclose(
        whole.inertia_about(jnp.zeros(3)), inertia_of_points(masses, x), atol=1e-12
    )


def test_second_derivatives_at_equal_moments():
    to_form, from_form = FORMS["log_cholesky"]
    weights = jnp.arange(1.0, 10.0).reshape(3, 3)
    moments = jnp.array([[2.0, 2.0, 2.0], [2.0, 2.0, 3.0], [3.0, 2.0, 2.0]])

    def cost(tensor):
        again = from_form(to_form(MassProperties(2.0, jnp.array([0.1, 0.2, 0.3]), tensor)))
        return (weights * again.tensor**2).sum()

    gradients = jax.jit(jax.vmap(lambda i: jax.grad(cost)(jnp.diag(i))))(moments)
    hessians = jax.jit(jax.vmap(lambda i: jax.hessian(cost)(jnp.diag(i))))(moments)
    # There and back is the identity on symmetric tensors.
    symmetric = 0.5 * (weights + weights.T)
    for i, gradient in zip(moments, gradients, strict=True):
        np.testing.assert_allclose(
            0.5 * (gradient + gradient.T), 2 * symmetric * np.diag(i), atol=1e-10
        )
    assert np.isfinite(hessians).all()


# --- physicality -------------------------------------------------------------------------------


@pytest.mark.parametrize("owner", [Body, FixedPointBody])
@pytest.mark.parametrize(
    ("moments", "which"), [((4, 1, 2), "E1"), ((1, 4, 2), "E2"), ((1, 2, 4), "E3")]
)
def test_non_physical_moments_name_the_euler_value(owner, moments, which):
    def build(moments):
        if owner is Body:
            return Body("a", 1.0, moments).inertia
        return FixedPointBody(moments).inertia

    with pytest.raises(ValueError, match=rf"principal Euler value {which} = .* is negative"):
        build(moments)
    # Traced: the same message, one for each index.
    with pytest.raises(eqx.EquinoxRuntimeError, match=rf"principal Euler value {which} ="):
        eqx.filter_jit(build)(jnp.array(moments, float))


def test_non_physical_tensor_raises(rng):
    R = jnp.asarray(Rotation.random(rng=rng).as_matrix())
    bad = rotate_inertia(jnp.array([1.0, 2.0, 4.0]), R)
    with pytest.raises(ValueError, match=r"smallest principal Euler value, -0\.5, is negative"):
        Body("a", 1.0, bad)
    with pytest.raises(eqx.EquinoxRuntimeError, match="smallest principal Euler value is negative"):
        eqx.filter_jit(lambda i: Body("a", 1.0, i).inertia)(bad)
    np.testing.assert_allclose(Body("a", 1.0, bad, physical=False).inertia, bad, atol=1e-15)


@pytest.mark.float32
@pytest.mark.parametrize("moments", [(1, 1, 2), (1, 1, 0), (0, 0, 0), (0.1, 0.2, 0.3), (1, 2, 3)])
def test_flat_and_thin_bodies_are_physical(moments, rng):
    assert Body("a", 1.0, moments).inertia.shape == (3,)
    build = eqx.filter_jit(lambda tensor: Body("a", 1.0, tensor).inertia)
    for R in Rotation.random(5, rng=rng).as_matrix():
        tensor = R @ np.diag(moments) @ R.T
        assert np.isfinite(build(jnp.asarray(tensor))).all()
        Body("a", 1.0, tensor)


# The last one is the pendulum start of the racket, in g m^2.
@pytest.mark.parametrize(
    "moments", [(1, 2, 4), (0.1, 5, 1), (3, -1, 1), (1, 1, 1), (-1, -1, -1), (20.7, 18.8, 1.391)]
)
@pytest.mark.parametrize("margin", [0.0, 0.02, 0.3])
def test_nearest_physical_against_constrained_minimisation(moments, margin):
    start = np.array(moments, float)
    nearest, moved = nearest_physical(start, margin)
    bound = margin * abs(start.sum()) / 2
    euler = np.asarray(euler_tensor(nearest))
    assert euler.min() >= bound - 1e-14
    assert bool(moved) == (np.asarray(euler_tensor(jnp.asarray(start))).min() < bound)
    matrix = np.array([[-1, 1, 1], [1, -1, 1], [1, 1, -1]]) / 2
    found = scipy.optimize.minimize(
        lambda i: ((i - start) ** 2).sum(),
        np.abs(start).sum() * np.ones(3),
        jac=lambda i: 2 * (i - start),
        constraints=[
            {"type": "ineq", "fun": lambda i: matrix @ i - bound, "jac": lambda i: matrix}
        ],
        method="SLSQP",
        options={"ftol": 1e-15},
    )
    np.testing.assert_allclose(nearest, found.x, atol=1e-6)


def test_nearest_physical_tensor_keeps_axes_and_derivatives(rng):
    R = jnp.asarray(Rotation.random(rng=rng).as_matrix())
    moments = jnp.array([1.0, 2.0, 4.0])
    nearest, moved = nearest_physical(rotate_inertia(moments, R), 0.01)
    assert moved
    expected = rotate_inertia(nearest_physical(moments, 0.01).inertia, R)
    np.testing.assert_allclose(nearest, expected, atol=1e-14)
    Body("a", 1.0, nearest)
    # Not moved: the identity, also where moments are equal and eigenvectors have no derivative.
    jacobian = jax.jit(jax.jacfwd(lambda i: nearest_physical(i).inertia))(jnp.eye(3))
    np.testing.assert_allclose(jacobian[0, 0, 0, 0], 1.0)
    hessian = jax.jit(jax.hessian(lambda i: nearest_physical(i).inertia.sum()))(jnp.eye(3))
    assert np.isfinite(hessian).all()
    # Moved, two moments equal, principal form.
    gradient = jax.jacrev(lambda i: nearest_physical(i).inertia)(jnp.array([1.0, 1.0, 4.0]))
    assert np.isfinite(gradient).all()


def test_nearest_physical_rejects_invalid_margin():
    with pytest.raises(ValueError, match=r"margin=.* must be at least 0 and below 1/3.*0\.5"):
        nearest_physical([1.0, 1.0, 1.0], 0.5)
    with pytest.raises(ValueError, match=r"must have shape \(3,\) or \(3, 3\)"):
        nearest_physical([1.0, 1.0])
