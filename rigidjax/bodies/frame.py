"""Frames on bodies, by name."""

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from ..annotations import Matrix3, Vector3
from ..checks import ArrayInput, finite_leaf
from ..rotations.euler_map import euler_map
from ..rotations.matrix import product, to_body, to_space
from ..small_arrays import cross
from .body import Body, unit_quaternion


class Frame(eqx.Module):
    r"""A frame that is attached to a body: a tool, a camera, a sensor's axes.

    Give frames to `System(frames=...)`. The name of a frame can then be used wherever the name of
    a body is accepted: in `jacobian` and its rate, `forward_kinematics` and `apply_impulse`, and by
    sensors (which measure at the origin, in the axes of the frame), forces, joints and constraints.
    `Solution.frames` contains the poses of the frames.

    **Arguments:**

    - `name`, different from the names of bodies and other frames.
    - `body`, the name of the body.
    - `point`, the origin, from the centre of mass, (3,) m, body components.
    - `orientation`, unit quaternion (4,), scalar first, from the frame to the body.

    Point and orientation are leaves.

    **Errors:** `TypeError` or `ValueError` for a name that is empty, `"ground"` or not a string, a
    wrong shape, or a quaternion off the unit length by more than 1e-6.
    """

    name: str = eqx.field(static=True)
    body: str = eqx.field(static=True)
    point: Vector3
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
    def rotation(self) -> Matrix3:
        """Rotation matrix, frame to body."""
        return euler_map(self.orientation)

    def on_body(self, point: Vector3) -> Vector3:
        """Convert a point, (3,) m, from the frame to body components from the centre of mass."""
        return self.point + to_space(self.rotation, point)

    def in_space(self, body: Body) -> tuple[Vector3, Matrix3]:
        """Return origin, (3,) m, and rotation, frame to space, in the reference pose of the body.

        Points and axes of joints and springs are given in these space components (see
        `AbstractJoint`).
        """
        return self.at(body.position, euler_map(body.orientation))

    def origin(self, body: Body) -> np.ndarray:
        """Return the origin in the reference pose of the body, (3,) m, by NumPy on the host."""
        w, *v = np.asarray(body.orientation)
        p = np.asarray(self.point)
        return np.asarray(body.position) + p + 2.0 * np.cross(v, w * p + np.cross(v, p))

    def at(self, x: Vector3, R: Matrix3) -> tuple[Vector3, Matrix3]:
        """Return origin and rotation, frame to space, with the body at `x` and rotation `R`."""
        return x + to_space(R, self.point), product(R, self.rotation)

    def twist(self, R: Matrix3, v: Vector3, omega: Vector3) -> tuple[Vector3, Vector3]:
        """Return the velocity of the origin, space, and the angular velocity, frame components.

        **Arguments:** `R`, rotation of the body, body to space; `v`, velocity of its centre of
        mass, (3,) m/s, space components; `omega`, its angular velocity, (3,) rad/s, body
        components.
        """
        return v + to_space(R, cross(omega, self.point)), to_body(self.rotation, omega)
