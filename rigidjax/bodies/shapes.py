"""Mass properties of solid bodies of simple shape and constant density.

Each function takes the dimensions in m and exactly one of `density` (kg/m^3; for a rod kg/m) and
`mass` (kg). The inertia is about the centre of mass, in principal axes except for meshes.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Array

from ..annotations import Scalar
from ..by_numpy import evaluate
from ..checks import ArrayInput, as_leaf, check, float_array
from .mass_properties import MassProperties
from .mesh import Mesh


def box(
    size: ArrayInput, *, density: ArrayInput | None = None, mass: ArrayInput | None = None
) -> MassProperties:
    """Return the mass properties of a box, edges along the axes, origin at the centre.

    **Arguments:** `size`, the three edge lengths, (3,) m.
    """
    return _solid("box", _measure_box, density, mass, _dimensions(size, "box(size=...)"))


def _measure_box(xp: Any, s: Array) -> tuple[Array, Array]:
    a, b, c = s[0] * s[0], s[1] * s[1], s[2] * s[2]
    return s[0] * s[1] * s[2], xp.stack([b + c, c + a, a + b]) / 12


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
    return _solid("cylinder", _measure_cylinder, density, mass, r, h)


def _measure_cylinder(xp: Any, r: Array, h: Array) -> tuple[Array, Array]:
    across = (3 * r * r + h * h) / 12
    return math.pi * r * r * h, xp.stack([across, across, r * r / 2])


def sphere(
    radius: ArrayInput, *, density: ArrayInput | None = None, mass: ArrayInput | None = None
) -> MassProperties:
    """Return the mass properties of a sphere, origin at the centre.

    **Arguments:** `radius`, m.
    """
    r = _dimension(radius, "sphere(radius=...)")
    return _solid("sphere", _measure_sphere, density, mass, r)


def _measure_sphere(xp: Any, r: Array) -> tuple[Array, Array]:
    return 4 / 3 * math.pi * r * r * r, xp.stack([r * r, r * r, r * r]) * (2 / 5)


def ellipsoid(
    semi_axes: ArrayInput, *, density: ArrayInput | None = None, mass: ArrayInput | None = None
) -> MassProperties:
    """Return the mass properties of an ellipsoid, origin at the centre.

    **Arguments:** `semi_axes`, half the diameters along the axes, (3,) m.
    """
    s = _dimensions(semi_axes, "ellipsoid(semi_axes=...)")
    return _solid("ellipsoid", _measure_ellipsoid, density, mass, s)


def _measure_ellipsoid(xp: Any, s: Array) -> tuple[Array, Array]:
    a, b, c = s[0] * s[0], s[1] * s[1], s[2] * s[2]
    return 4 / 3 * math.pi * s[0] * s[1] * s[2], xp.stack([b + c, c + a, a + b]) / 5


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
    return _solid("cone", _measure_cone, density, mass, r, h)


def _measure_cone(xp: Any, r: Array, h: Array) -> tuple[Array, Array, Array]:
    across = 3 / 80 * (4 * r * r + h * h)
    squares = xp.stack([across, across, 0.3 * r * r])
    return math.pi * r * r * h / 3, squares, xp.stack([0 * h, 0 * h, 0.75 * h])


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
    r = check(float_array(radius, name, ()), valid, f"`{name}` must not be negative.")
    return _solid("rod", _measure_rod, density, mass, h, r)


def _measure_rod(xp: Any, h: Array, r: Array) -> tuple[Array, Array]:
    across = h * h / 12 + r * r / 4
    return h, xp.stack([across, across, r * r / 2])


def mesh(
    mesh: Mesh, *, density: ArrayInput | None = None, mass: ArrayInput | None = None
) -> MassProperties:
    """Return the mass properties of the solid inside a closed mesh, in the axes of the mesh.

    **Errors:** `ValueError` if the mesh is not closed, or encloses no volume.
    """
    volume, center, covariance = mesh.solid()
    of_density, value = _mass_or_density("mesh", density, mass)
    total = as_leaf(value) * volume if of_density else value
    inertia = np.trace(covariance) * np.eye(3) - covariance
    return MassProperties(total, center, total * inertia)


def _positive(x: Array) -> Array:
    return (x > 0) & (x < float("inf"))


def _dimension(value: ArrayInput, argument: str) -> Scalar:
    return _dimensions(value, argument, ())


def _dimensions(value: ArrayInput, argument: str, shape: tuple[int, ...] = (3,)) -> Array:
    message = f"`{argument}` must be positive and finite, in m."
    return check(float_array(value, argument, shape), _positive, message)


def _mass_or_density(
    shape: str, density: ArrayInput | None, mass: ArrayInput | None
) -> tuple[bool, Scalar]:
    """Return whether the density is given, and its checked value or that of the mass."""
    if (density is None) == (mass is None):
        which = "neither" if mass is None else "both"
        raise ValueError(f"`{shape}` takes exactly one of `density` and `mass`; got {which}.")
    name = f"{shape}(mass=...)" if density is None else f"{shape}(density=...)"
    value = float_array(mass if density is None else density, name, ())
    return density is not None, check(value, _positive, f"`{name}` must be positive and finite.")


def _solid(
    shape: str,
    measure: Callable[..., tuple[Array, ...]],
    density: ArrayInput | None,
    mass: ArrayInput | None,
    *dimensions: Array,
) -> MassProperties:
    """Return the mass properties of a solid.

    **Arguments:** `measure`, a function of the array module and the dimensions that returns the
    volume, the squares of the radii of gyration, and the centre of mass if that is not the origin.
    """
    of_density, value = _mass_or_density(shape, density, mass)
    return MassProperties(*evaluate(_properties, measure, of_density)(value, *dimensions))


def _properties(
    measure: Callable[..., tuple[Array, ...]],
    of_density: bool,
    xp: Any,
    value: Array,
    *dimensions: Array,
) -> tuple[Array, Array, Array]:
    volume, squares, *center = measure(xp, *dimensions)
    total = value * volume if of_density else value
    return total, center[0] if center else xp.zeros_like(squares), total * squares
