"""Frames on bodies, by name."""

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from ..checks import ArrayInput, finite_leaf
from ..native.ops import cross
from ..rotations.euler_map import euler_map
from ..rotations.matrix import product, to_body, to_space
from .body import Body, unit_quaternion


class Frame(eqx.Module):
    r"""A frame that is attached to a body: a tool, a camera, a sensor's axes.

    Give frames to `System(frames=...)`. Models then take their names where they take those of
    bodies: `jacobian` and its rate, `forward_kinematics`, `apply_impulse`; sensors stand in their
    origin and measure in their axes, forces act and joints are put there, constraints see them;
    `Solution.frames` has their poses.

    **Arguments:**

    - `name`, other than those of bodies and other frames.
    - `body`, the name of the body.
    - `point`, the origin, from the centre of mass, (3,) m, body components.
    - `orientation`, unit quaternion (4,), scalar first, from the frame to the body.

    Point and orientation are leaves. **Errors:** `TypeError` or `ValueError` for a name that is
    none or `"ground"`, a wrong shape, a quaternion that is not of unit length within 1e-6.
    """

    name: str = eqx.field(static=True)
    body: str = eqx.field(static=True)
    point: Float[Array, "3"]
    orientation: Float[Array, "4"]

    def __init__(
        self,
        name: str,
        body: str,
        point: ArrayInput = (0.0, 0.0, 0.0),
        orientation: ArrayInput = (1.0, 0.0, 0.0, 0.0),
    ):
        for argument, value in (("name", name), ("body", body)):
            if not isinstance(value, str):
                raise TypeError(f"`Frame({argument}=...)` must be a string; got {value!r}.")
            if not value or value == "ground":
                raise ValueError(
                    f'`Frame({argument}=...)` must be a non-empty name other than "ground"; got '
                    f"{value!r}."
                )
        self.name, self.body = name, body
        argument = "Frame(point=...)"
        self.point = finite_leaf(point, argument, (3,))
        self.orientation = unit_quaternion(orientation, "Frame(orientation=...)")

    @property
    def rotation(self) -> Float[Array, "3 3"]:
        """Rotation matrix, frame to body."""
        return euler_map(self.orientation)

    def on_body(self, point: Float[Array, "3"]) -> Float[Array, "3"]:
        """A point given from the origin in components of the frame, from the centre of mass in
        body components."""
        return self.point + to_space(self.rotation, point)

    def in_space(self, body: Body) -> tuple[Float[Array, "3"], Float[Array, "3 3"]]:
        """Origin, (3,) m, and rotation matrix, frame to space, in the reference pose of its body.

        Points and axes of joints and springs are such components (see `AbstractJoint`).
        """
        return self.at(body.position, euler_map(body.orientation))

    def origin(self, body: Body) -> np.ndarray:
        """The origin alone, of known values, on the host."""
        w, *v = np.asarray(body.orientation)
        p = np.asarray(self.point)
        return np.asarray(body.position) + p + 2.0 * np.cross(v, w * p + np.cross(v, p))

    def at(
        self, x: Float[Array, "3"], R: Float[Array, "3 3"]
    ) -> tuple[Float[Array, "3"], Float[Array, "3 3"]]:
        """The same where the body is at `x` with the rotation matrix `R`."""
        return x + to_space(R, self.point), product(R, self.rotation)

    def twist(
        self, R: Float[Array, "3 3"], v: Float[Array, "3"], omega: Float[Array, "3"]
    ) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
        """Velocity of the origin, space components, and angular velocity, components of the frame,
        where the body moves with `v`, space components, and `omega`, body components."""
        return v + to_space(R, cross(omega, self.point)), to_body(self.rotation, omega)
