"""A rigid body that can be part of a system."""

import os
import warnings
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..annotations import Matrix3, Scalar, Vector3
from ..checks import (
    ArrayInput,
    as_leaf,
    check,
    check_all,
    finite_rule,
    float_array,
    is_traced,
    vector_leaf,
)
from ..rotations.so3 import rotate
from ..signals.laws import as_law, check_shapes, law_result
from . import shapes
from .euler_equations import rotational_energy
from .inertia import checked_inertia, inertia_tensor
from .mass_properties import MassProperties, checked_mass
from .mesh import Mesh

SHAPES = ("box", "cylinder", "sphere", "cone", "rod", "ellipsoid")


class Body(eqx.Module):
    r"""A rigid body: its mass and inertia, and its reference pose and velocity.

    The body frame has its origin at the centre of mass.

    **Arguments:**

    - `name`, unique in a system; `"ground"` is the inertial frame and cannot be used.
    - `mass`, kg. Zero, with zero inertia, makes a massless link inside a tree (`NullSpace`,
      `Relative`); a run raises an error if the joints allow a motion that moves no mass. A function
      of time, or an `rj.Signal`, makes a body that loses or gains mass; the field `mass` is then
      its value at t = 0 and `mass_law` the function. Mass that leaves takes its momentum along and
      exerts no force, so add thrust as a force.
    - `inertia`, about the centre of mass, principal (3,) or symmetric (3, 3), kg m^2, body axes.
    - `position` of the centre of mass, (3,) m, space components.
    - `orientation`, unit quaternion (4,), scalar first, body to space.
    - `velocity` of the centre of mass, (3,) m/s, space components.
    - `angular_velocity`, (3,) rad/s, body components.
    - `physical=False` admits an inertia that no distribution of mass has.
    - `shape`, the kind of solid that the viewer draws with this mass and inertia: `"box"`,
      `"cylinder"`, `"sphere"`, `"cone"`, `"rod"` or `"ellipsoid"`, as set by the class methods, or
      a `Mesh` in body components; with `None` the viewer derives the kind from the inertia.
    - `mass_law`, the mass as a function of time; only `dataclasses.replace` passes it.

    All fields but the name and the shape are leaves of the module. Checks are made when a body is
    constructed, not when its leaves are replaced.

    **Errors:** `ValueError` for wrong array shapes, an unknown `shape`, negative mass, inertia
    without mass, an inertia that is not physical (the message names the negative principal Euler
    value), or a quaternion that is zero, NaN or off the unit length by more than 1e-6 (smaller
    deviations are normalised).
    """

    name: str = eqx.field(static=True)
    mass: Scalar
    mass_law: Any
    inertia: Vector3 | Matrix3
    position: Vector3
    orientation: Float[Array, "4"]
    velocity: Vector3
    angular_velocity: Vector3
    shape: str | Mesh | None = eqx.field(static=True)

    def __init__(
        self,
        name: str,
        mass: ArrayInput | Callable[[Scalar], Scalar],
        inertia: ArrayInput,
        position: ArrayInput = (0.0, 0.0, 0.0),
        orientation: ArrayInput = (1.0, 0.0, 0.0, 0.0),
        velocity: ArrayInput = (0.0, 0.0, 0.0),
        angular_velocity: ArrayInput = (0.0, 0.0, 0.0),
        *,
        physical: bool = True,
        shape: str | Mesh | None = None,
        mass_law: Callable[..., Scalar] | None = None,
    ):
        if not isinstance(name, str):
            raise TypeError(f"`Body(name=...)` must be a string; got {name!r}.")
        if not name or name == "ground":
            raise ValueError(
                f'`Body(name=...)` must be a non-empty name other than "ground", which is the '
                f"inertial frame; got {name!r}."
            )
        if shape is not None and not isinstance(shape, Mesh) and shape not in SHAPES:
            raise ValueError(
                f"`Body(shape=...)` must be one of {SHAPES}, a `Mesh` or None; got {shape!r}."
            )
        self.name = name
        self.shape = shape
        self.mass_law = mass_law
        if callable(mass):
            self.mass_law = as_law(mass, "Body(mass=...)")
            check_shapes(self.mass_at, ())
            mass = self.mass_at(jnp.zeros(()))
        self.mass = checked_mass(mass, "Body(mass=...)", or_none=self.mass_law is None)
        self.inertia = checked_inertia(inertia, "Body(inertia=...)", physical)
        if physical:
            self.mass = _mass_of_inertia(self.mass, self.inertia)
        self.position = vector_leaf(position, "Body(position=...)")
        self.orientation = unit_quaternion(orientation, "Body(orientation=...)")
        self.velocity = vector_leaf(velocity, "Body(velocity=...)")
        self.angular_velocity = vector_leaf(angular_velocity, "Body(angular_velocity=...)")

    @classmethod
    def box(
        cls,
        name: str,
        size: ArrayInput,
        *,
        density: ArrayInput | None = None,
        mass: ArrayInput | None = None,
        **pose: ArrayInput,
    ) -> "Body":
        """Make a box with edges `size`, (3,) m, along the body axes; see `shapes.box`.

        `pose` stands for `position`, `orientation`, `velocity` and `angular_velocity`.
        """
        properties = shapes.box(size, density=density, mass=mass)
        return _from_shape(name, "box", properties, pose)

    @classmethod
    def cylinder(
        cls,
        name: str,
        radius: ArrayInput,
        length: ArrayInput,
        *,
        density: ArrayInput | None = None,
        mass: ArrayInput | None = None,
        **pose: ArrayInput,
    ) -> "Body":
        """Make a cylinder along the third body axis; see `shapes.cylinder`."""
        properties = shapes.cylinder(radius, length, density=density, mass=mass)
        return _from_shape(name, "cylinder", properties, pose)

    @classmethod
    def sphere(
        cls,
        name: str,
        radius: ArrayInput,
        *,
        density: ArrayInput | None = None,
        mass: ArrayInput | None = None,
        **pose: ArrayInput,
    ) -> "Body":
        """Make a sphere; see `shapes.sphere`."""
        properties = shapes.sphere(radius, density=density, mass=mass)
        return _from_shape(name, "sphere", properties, pose)

    @classmethod
    def cone(
        cls,
        name: str,
        radius: ArrayInput,
        height: ArrayInput,
        *,
        density: ArrayInput | None = None,
        mass: ArrayInput | None = None,
        **pose: ArrayInput,
    ) -> "Body":
        """Make a cone along the third body axis; see `shapes.cone`.

        Its apex is at (0, 0, -3/4 height) from the centre of mass. `position` is the position of
        the centre of mass, as for every body.
        """
        properties = shapes.cone(radius, height, density=density, mass=mass)
        return _from_shape(name, "cone", properties, pose)

    @classmethod
    def rod(
        cls,
        name: str,
        length: ArrayInput,
        radius: ArrayInput = 0.0,
        *,
        density: ArrayInput | None = None,
        mass: ArrayInput | None = None,
        **pose: ArrayInput,
    ) -> "Body":
        """Make a rod along the third body axis, `density` in kg/m; see `shapes.rod`."""
        properties = shapes.rod(length, radius, density=density, mass=mass)
        return _from_shape(name, "rod", properties, pose)

    @classmethod
    def ellipsoid(
        cls,
        name: str,
        semi_axes: ArrayInput,
        *,
        density: ArrayInput | None = None,
        mass: ArrayInput | None = None,
        **pose: ArrayInput,
    ) -> "Body":
        """Make an ellipsoid with `semi_axes`, (3,) m, along its axes; see `shapes.ellipsoid`."""
        properties = shapes.ellipsoid(semi_axes, density=density, mass=mass)
        return _from_shape(name, "ellipsoid", properties, pose)

    @classmethod
    def mesh(
        cls,
        name: str,
        mesh: Mesh | str | os.PathLike[str],
        *,
        density: ArrayInput | None = None,
        mass: ArrayInput | None = None,
        origin: ArrayInput | None = None,
        **pose: ArrayInput,
    ) -> "Body":
        """Make the solid inside a closed surface, with the axes of the mesh; see `shapes.mesh`.

        **Arguments:** `name`, unique in a system; `mesh`, the surface, or the path of an STL or OBJ
        file in m (see `Mesh.read` for other units); `density`, kg/m^3; `mass`, kg, instead of the
        density; `origin`, the position of the origin of the mesh, (3,) m, space components, instead
        of `position`; `pose`, arguments of `Body`: `position`, of the centre of mass,
        `orientation`, `velocity`, `angular_velocity`.
        **Errors:** `ValueError` for a bad file, an open surface, or both `origin` and `position`.
        **Warnings:** for shells that overlap, and for a file of improbable size without a unit.
        """
        surface = mesh if isinstance(mesh, Mesh) else Mesh.read(mesh)
        properties = shapes.mesh(surface, density=density, mass=mass)
        for doubt in surface.doubts():
            warnings.warn(f"`Body.mesh({name!r}, ...)`: {doubt}", stacklevel=2)
        center = surface.solid().center
        body = _from_shape(name, surface.placed(offset=-center), properties, pose)
        if origin is None:
            return body
        if "position" in pose:
            raise ValueError("`Body.mesh` takes `origin` or `position`; got both.")
        position = vector_leaf(origin, "Body.mesh(origin=...)") + rotate(
            body.orientation, jnp.asarray(center)
        )
        return eqx.tree_at(lambda b: b.position, body, position)

    def mass_at(self, t: Scalar) -> Scalar:
        """Return the mass at a time, kg.

        **Errors:** `ValueError` if `mass_law` does not return a number.
        """
        if self.mass_law is None:
            return self.mass
        subject = "The function `Body(mass=...)` must return a number, shape ()"
        return law_result(self.mass_law(t), (), subject).astype(jnp.result_type(t, float))

    @property
    def inertia_tensor(self) -> Matrix3:
        """Inertia about the centre of mass as a tensor (3, 3), kg m^2, body axes."""
        return inertia_tensor(self.inertia)

    @property
    def mass_properties(self) -> MassProperties:
        """Mass, centre of mass (the origin) and inertia, for conversion to any other form."""
        center = jnp.zeros_like(self.position)
        return MassProperties(self.mass, center, self.inertia, physical=False)

    def kinetic_energy(self, velocity: Vector3, omega: Vector3) -> Scalar:
        r"""Return the kinetic energy $\frac12 m |\dot x|^2 + \frac12 \Omega \cdot I \Omega$, J.

        **Arguments:** `velocity` of the centre of mass, (3,) m/s; `omega`, (3,) rad/s, body
        components.
        """
        square = velocity[0] * velocity[0] + velocity[1] * velocity[1] + velocity[2] * velocity[2]
        return 0.5 * self.mass * square + rotational_energy(self.inertia, omega)


def unit_quaternion(orientation: ArrayInput, argument: str) -> Float[Array, "4"]:
    """Check that a quaternion, scalar first, has unit length within 1e-6, and normalise it.

    **Errors:** `ValueError`, or a runtime error if traced, naming `argument`.
    """
    rules = [
        finite_rule(argument),
        (
            lambda p: (abs(p) > 0).any(),
            f"`{argument}` is the zero quaternion, which is no rotation; the identity is "
            f"(1, 0, 0, 0).",
        ),
        (
            # The square differs from 1 by twice as much as the length.
            lambda p: abs(_square(p) - 1) <= 2e-6,
            f"`{argument}` must be a unit quaternion, scalar first, to within 1e-6: divide it by "
            f"its length.",
        ),
    ]
    p = check_all(float_array(orientation, argument, (4,)), rules)
    # NumPy for concrete values: a JAX operation outside a trace is far slower.
    sqrt = jnp.sqrt if is_traced(p) else np.sqrt
    return as_leaf(p / sqrt(_square(p)))


def _mass_of_inertia(mass: Array, inertia: Array) -> Array:
    """Return the mass; raise `ValueError` if it is zero and the inertia is not."""
    is_concrete = not is_traced((mass, inertia))
    # NumPy for concrete values, see `unit_quaternion`.
    moments = np.abs(np.asarray(inertia)).sum() if is_concrete else abs(inertia).sum()
    mass = mass if is_concrete else mass + 0.0 * moments
    message = "`Body(mass=...)` of a body that has inertia must be positive, in kg."
    return check(mass, lambda m: (m > 0) | (moments == 0), message)


def _square(p: Array | np.ndarray) -> Any:
    return p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3]


def _from_shape(
    name: str, shape: str | Mesh, properties: MassProperties, pose: dict[str, Any]
) -> Body:
    unknown = set(pose) - {"position", "orientation", "velocity", "angular_velocity"}
    if unknown:
        raise TypeError(
            f"`Body` has no argument {', '.join(sorted(unknown))!r}; `orientation` is a quaternion."
        )
    return Body(name, properties.mass, properties.inertia, **pose, shape=shape)
