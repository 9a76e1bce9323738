"""Mass properties of solid bodies of simple shape and constant density.

Each function takes the dimensions in m and exactly one of `density` (kg/m^3; for a rod kg/m) and
`mass` (kg). The inertia is about the centre of mass, in principal axes except for meshes.
"""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..checks import ArrayInput, as_leaf, check, float_array
from .mass_properties import MassProperties
from .mesh import Mesh


def box(
    size: ArrayInput, *, density: ArrayInput | None = None, mass: ArrayInput | None = None
) -> MassProperties:
    """Return the mass properties of a box, edges along the axes, origin at the centre.

    **Arguments:** `size`, the three edge lengths, (3,) m.
    """
    name = "box(size=...)"
    s = as_leaf(check(float_array(size, name, (3,)), _positive, _must_be_positive(name)))
    total = _mass("box", s[0] * s[1] * s[2], density, mass)
    a, b, c = s[0] * s[0], s[1] * s[1], s[2] * s[2]
    return _properties_about_center(total, jnp.stack([b + c, c + a, a + b]) / 12)


def cylinder(
    radius: ArrayInput,
    length: ArrayInput,
    *,
    density: ArrayInput | None = None,
    mass: ArrayInput | None = None,
) -> MassProperties:
    """Return the mass properties of a circular cylinder along the third axis, origin at the centre.

    **Arguments:** `radius`, m; `length`, m.
    """
    r = _dimension(radius, "cylinder(radius=...)")
    h = _dimension(length, "cylinder(length=...)")
    total = _mass("cylinder", math.pi * r * r * h, density, mass)
    across = (3 * r * r + h * h) / 12
    return _properties_about_center(total, jnp.stack([across, across, r * r / 2]))


def sphere(
    radius: ArrayInput, *, density: ArrayInput | None = None, mass: ArrayInput | None = None
) -> MassProperties:
    """Return the mass properties of a sphere, origin at the centre.

    **Arguments:** `radius`, m.
    """
    r = _dimension(radius, "sphere(radius=...)")
    total = _mass("sphere", 4 / 3 * math.pi * r * r * r, density, mass)
    return _properties_about_center(total, jnp.stack([r * r, r * r, r * r]) * (2 / 5))


def ellipsoid(
    semi_axes: ArrayInput, *, density: ArrayInput | None = None, mass: ArrayInput | None = None
) -> MassProperties:
    """Return the mass properties of an ellipsoid, origin at the centre.

    **Arguments:** `semi_axes`, half the diameters along the axes, (3,) m.
    """
    name = "ellipsoid(semi_axes=...)"
    s = as_leaf(check(float_array(semi_axes, name, (3,)), _positive, _must_be_positive(name)))
    total = _mass("ellipsoid", 4 / 3 * math.pi * s[0] * s[1] * s[2], density, mass)
    a, b, c = s[0] * s[0], s[1] * s[1], s[2] * s[2]
    return _properties_about_center(total, jnp.stack([b + c, c + a, a + b]) / 5)


def cone(
    radius: ArrayInput,
    height: ArrayInput,
    *,
    density: ArrayInput | None = None,
    mass: ArrayInput | None = None,
) -> MassProperties:
    """Return the mass properties of a circular cone, origin at the apex.

    Its axis is the third axis, which points towards the base. The centre of mass is at 3/4 of the
    height.

    **Arguments:** `radius` of the base, m; `height`, m.
    **Source:** Betsch-Siebert 5.2.
    """
    r = _dimension(radius, "cone(radius=...)")
    h = _dimension(height, "cone(height=...)")
    total = _mass("cone", math.pi * r * r * h / 3, density, mass)
    across = 3 / 80 * (4 * r * r + h * h)
    center = jnp.stack([jnp.zeros_like(h), jnp.zeros_like(h), 0.75 * h])
    return MassProperties(total, center, total * jnp.stack([across, across, 0.3 * r * r]))


def rod(
    length: ArrayInput,
    radius: ArrayInput = 0.0,
    *,
    density: ArrayInput | None = None,
    mass: ArrayInput | None = None,
) -> MassProperties:
    """Return the mass properties of a rod along the third axis, origin at the centre.

    A rod of radius zero has no inertia about its axis; joints must then govern that rotation.

    **Arguments:** `length`, m; `radius`, m, may be zero; `density`, mass per **length**, kg/m.
    """
    h = _dimension(length, "rod(length=...)")
    name = "rod(radius=...)"
    valid = lambda x: (x >= 0) & (x < float("inf"))  # noqa: E731
    r = as_leaf(check(float_array(radius, name, ()), valid, f"`{name}` must not be negative."))
    total = _mass("rod", h, density, mass)
    across = h * h / 12 + r * r / 4
    return _properties_about_center(total, jnp.stack([across, across, r * r / 2]))


def mesh(
    mesh: Mesh, *, density: ArrayInput | None = None, mass: ArrayInput | None = None
) -> MassProperties:
    """Return the mass properties of the solid inside a closed mesh, in the axes of the mesh.

    **Errors:** `ValueError` if the mesh is not closed, or encloses no volume.
    """
    volume, center, covariance = mesh.solid()
    total = _mass("mesh", jnp.asarray(volume), density, mass)
    inertia = np.trace(covariance) * np.eye(3) - covariance
    return MassProperties(total, center, total * inertia)


def _positive(x: Array) -> Array:
    return (x > 0) & (x < float("inf"))


def _must_be_positive(argument: str) -> str:
    return f"`{argument}` must be positive and finite, in m."


def _dimension(value: ArrayInput, argument: str) -> Float[Array, ""]:
    return as_leaf(check(float_array(value, argument, ()), _positive, _must_be_positive(argument)))


def _mass(
    shape: str, volume: Array, density: ArrayInput | None, mass: ArrayInput | None
) -> Float[Array, ""]:
    if (density is None) == (mass is None):
        which = "neither" if mass is None else "both"
        raise ValueError(f"`{shape}` takes exactly one of `density` and `mass`; got {which}.")
    name = f"{shape}(mass=...)" if density is None else f"{shape}(density=...)"
    value = float_array(mass if density is None else density, name, ())
    value = as_leaf(check(value, _positive, f"`{name}` must be positive and finite."))
    return value if density is None else value * volume


def _properties_about_center(
    mass: Float[Array, ""], radii_squared: Float[Array, "3"]
) -> MassProperties:
    return MassProperties(mass, jnp.zeros_like(radii_squared), mass * radii_squared)
