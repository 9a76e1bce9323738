"""Bodies from shapes: against sampled bodies and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rigidjax.bodies import Body, shapes


def integrate_by_midpoints(inside, low, high, count=60):
    """Volume, centre and inertia for unit density by the mid-point rule."""
    axes = [
        lo + (hi - lo) * (np.arange(count) + 0.5) / count for lo, hi in zip(low, high, strict=True)
    ]
    x = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    x = x[inside(*x.T)]
    cell = np.prod((np.array(high) - np.array(low)) / count)
    center = x.mean(axis=0)
    y = x - center
    square = (y**2).sum(axis=1)
    inertia = cell * (square.sum() * np.eye(3) - y.T @ y)
    return len(x) * cell, center, inertia


SHAPES = {
    "box": (
        lambda **k: shapes.box((1.0, 2.0, 3.0), **k),
        (lambda x, y, z: x == x, (-0.5, -1.0, -1.5), (0.5, 1.0, 1.5)),
    ),
    "cylinder": (
        lambda **k: shapes.cylinder(0.5, 2.0, **k),
        (lambda x, y, z: x**2 + y**2 < 0.25, (-0.5, -0.5, -1.0), (0.5, 0.5, 1.0)),
    ),
    "sphere": (
        lambda **k: shapes.sphere(0.7, **k),
        (lambda x, y, z: x**2 + y**2 + z**2 < 0.49, (-0.7,) * 3, (0.7,) * 3),
    ),
    "ellipsoid": (
        lambda **k: shapes.ellipsoid((0.5, 1.0, 1.5), **k),
        (lambda x, y, z: 4 * x**2 + y**2 + (z / 1.5) ** 2 < 1, (-0.5, -1.0, -1.5), (0.5, 1.0, 1.5)),
    ),
    "cone": (
        lambda **k: shapes.cone(0.5, 1.0, **k),
        (lambda x, y, z: x**2 + y**2 < (z / 2) ** 2, (-0.5, -0.5, 0.0), (0.5, 0.5, 1.0)),
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_against_sampled_bodies(name):
    build, grid = SHAPES[name]
    volume, center, inertia = integrate_by_midpoints(*grid)
    found = build(density=2.0)
    # The mid-point rule with 60 cells across misses up to about 0.5 % at a curved surface.
    np.testing.assert_allclose(found.mass, 2 * volume, rtol=5e-3)
    np.testing.assert_allclose(found.center, center, atol=2e-3)
    np.testing.assert_allclose(found.tensor, 2 * inertia, atol=5e-3 * 2 * np.trace(inertia) / 2)
    by_mass = build(mass=found.mass)
    np.testing.assert_allclose(by_mass.inertia, found.inertia, rtol=1e-15)


def test_shape_closed_forms_agree_with_each_other():
    np.testing.assert_allclose(
        shapes.ellipsoid((0.7, 0.7, 0.7), density=3.0).inertia,
        shapes.sphere(0.7, density=3.0).inertia,
        rtol=1e-14,
    )
    rod = shapes.rod(2.0, 0.5, mass=3.0)
    np.testing.assert_allclose(rod.inertia, shapes.cylinder(0.5, 2.0, mass=3.0).inertia)
    thin = shapes.rod(2.0, density=1.5)
    np.testing.assert_allclose(thin.mass, 3.0)
    np.testing.assert_allclose(thin.inertia, [1.0, 1.0, 0.0])
    # Betsch-Siebert 5.2.
    cone = shapes.cone(0.05, 0.1, density=2700)
    mass = 2700 * np.pi * 0.05**2 * 0.1 / 3
    np.testing.assert_allclose(cone.mass, mass)
    np.testing.assert_allclose(
        cone.inertia, [3 * mass / 80 * 0.02, 3 * mass / 80 * 0.02, 0.3 * mass * 0.05**2], rtol=1e-14
    )
    about_apex = cone.inertia_about(jnp.zeros(3))
    np.testing.assert_allclose(about_apex[0, 0], cone.inertia[0] + mass * 0.075**2, rtol=1e-14)


def test_bodies_from_shapes():
    bodies = [
        Body.box("a", (1.0, 2.0, 3.0), mass=2.0, position=(1.0, 0.0, 0.0)),
        Body.cylinder("b", 0.5, 2.0, density=2.0, velocity=(1.0, 0.0, 0.0)),
        Body.sphere("c", 0.7, mass=1.0, angular_velocity=(0.0, 0.0, 1.0)),
        Body.cone("d", 0.5, 1.0, mass=1.0, orientation=(0.0, 1.0, 0.0, 0.0)),
        Body.rod("e", 2.0, mass=1.0),
        Body.ellipsoid("f", (1.0, 2.0, 3.0), mass=1.0),
    ]
    assert [body.name for body in bodies] == list("abcdef")
    np.testing.assert_array_equal(bodies[0].position, [1, 0, 0])
    np.testing.assert_allclose(bodies[0].inertia, np.array([13, 10, 5]) / 6, rtol=1e-15)
    np.testing.assert_allclose(bodies[0].mass_properties.tensor, bodies[0].inertia_tensor)
    # Differentiable with respect to the dimensions.
    slope = jax.grad(lambda r: Body.sphere("c", r, mass=1.0).inertia[0])(0.5)
    np.testing.assert_allclose(slope, 0.4)


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda: shapes.sphere(1.0), "exactly one of .* got neither"),
        (lambda: shapes.sphere(1.0, mass=1, density=1), "exactly one.*got both"),
        (lambda: shapes.sphere(-1.0, mass=1), r"sphere\(radius=...\)` must be positive"),
        (lambda: shapes.sphere(1.0, mass=-1), r"sphere\(mass=...\)` must be positive"),
        (lambda: shapes.box((1.0, 0.0, 1.0), mass=1), r"box\(size=...\)` must be pos"),
        (lambda: shapes.box((1.0, 1.0), mass=1), r"box\(size=...\)` must have shape"),
        (lambda: shapes.cylinder(1.0, np.inf, mass=1), r"cylinder\(length=...\)"),
        (lambda: shapes.cone(1.0, 1.0, density=0.0), r"cone\(density=...\)"),
        (lambda: shapes.rod(1.0, -1.0, mass=1.0), r"rod\(radius=...\)` must not be neg"),
        (lambda: shapes.ellipsoid(1.0, mass=1.0), r"ellipsoid\(semi_axes=...\)"),
        (lambda: Body.sphere("a", 1.0, mass=1.0, axis=1), "no argument 'axis'; `orientation` is"),
    ],
)
def test_invalid_shapes_raise(build, match):
    with pytest.raises((ValueError, TypeError), match=match):
        build()
