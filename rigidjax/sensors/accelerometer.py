"""Specific force at a point of a body."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from ..annotations import Scalar, Vector3
from ..bodies.fixed_point import FixedPointBody
from ..bodies.potentials import GravityPotential
from ..checks import ArrayInput, vector_leaf
from ..forces import Gravity
from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns
from ..rotations import so3
from ..small_arrays import cross
from .base import AbstractReading, in_axes_of, locate_mount, scale_leaf, sensor_name
from .calibration import ONE, ZERO, apply_calibration


class Accelerometer(AbstractReading):
    r"""An accelerometer with three axes: the specific force at a point, m/s^2.

    It reads $s \circ C f + b$ with the specific force in body components,
    $f = R^T(\ddot x - g) + \dot\Omega \times u + \Omega \times (\Omega \times u)$, and the rotation
    $C = \exp(\tilde m)^T$ from body to sensor axes. At rest it reads the acceleration of gravity,
    directed upwards. The gravity $g$ is the sum of the model's `Gravity` forces, or the gravity of
    the `GravityPotential` of a `FixedPointBody`; other potentials count as applied forces.

    **Arguments:**

    - `body`, name of the body, or of a `Frame` whose axes take the place of those of the body;
      `None` if there is only one body.
    - `point`, $u$, from the centre of mass (on a `FixedPointBody` from the fixed point, on a frame
      from its origin), (3,) m, components of the body or the frame.
    - `bias`, $b$, (3,) m/s^2; `scale`, $s$, (3,); `misalignment`, $m$, the rotation vector from
      body axes to sensor axes, (3,) rad. These and `point` can be fitted.
    - `name`, instead of "accelerometer of ...", if a body has several.

    **Errors:** `ValueError` for a wrong shape, a scale of zero, an unknown body, or a
    `FixedPointBody` whose potential does not define the acceleration of gravity.
    """

    body: str | None = eqx.field(static=True)
    point: Vector3
    bias: Vector3
    scale: Vector3
    misalignment: Vector3
    label: str | None = eqx.field(static=True)
    channels: ClassVar[tuple[str, ...]] = ("f1", "f2", "f3")
    unit: ClassVar[str] = "m/s^2"
    depends_on_translation: ClassVar[bool] = False
    value_shape: ClassVar[tuple[int, ...]] = (3,)

    def __init__(
        self,
        body: str | None = None,
        point: ArrayInput = ZERO,
        bias: ArrayInput = ZERO,
        scale: ArrayInput = ONE,
        misalignment: ArrayInput = ZERO,
        name: str | None = None,
    ):
        self.body = body
        self.point = vector_leaf(point, "Accelerometer(point=...)")
        self.bias = vector_leaf(bias, "Accelerometer(bias=...)")
        self.scale = scale_leaf(scale, "Accelerometer(scale=...)")
        self.misalignment = vector_leaf(misalignment, "Accelerometer(misalignment=...)")
        self.label = name

    @property
    def name(self) -> str:
        return sensor_name("accelerometer", self.body, self.label)

    def check(self, model: AbstractFormulation) -> None:
        locate_mount(model, self.body, "Accelerometer")
        gravity(model)

    def predict(self, model: AbstractFormulation, t: Scalar, y: Unknowns) -> Vector3:
        row, frame = locate_mount(model, self.body, "Accelerometer")
        state, rates = model.decode(t, y), model.accelerations(t, y)
        point = self.point if frame is None else frame.on_body(self.point)
        point = point.astype(state.orientation.dtype)
        specific_force = rates.linear[row] - gravity(model)
        force = point_acceleration(
            so3.rotate(so3.conjugate(state.orientation[row]), specific_force),
            state.angular_velocity[row],
            rates.angular[row],
            point,
        )
        force = in_axes_of(frame, force)
        return apply_calibration(force, self.bias, self.scale, self.misalignment)


def gravity(model: AbstractFormulation) -> Vector3:
    """Return the acceleration of gravity in a model, (3,) m/s^2, space components.

    **Errors:** `ValueError` for a `FixedPointBody` whose potential does not define it.
    """
    system = model.system
    if isinstance(system, FixedPointBody):
        if system.potential is None:
            return jnp.zeros(3, system.inertia.dtype)
        if isinstance(system.potential, GravityPotential):
            return system.potential.gravity
        raise ValueError(
            "`Accelerometer` needs the acceleration of gravity, which the potential "
            f"`{type(system.potential).__name__}` of this `FixedPointBody` does not define; use "
            "`rj.GravityPotential(first_moment, gravity)`."
        )
    vectors = [force.vector for force in system.forces if isinstance(force, Gravity)]
    return sum(vectors, jnp.zeros(3, system.bodies[0].mass.dtype))


def point_acceleration(
    acceleration: Vector3, omega: Vector3, omega_dot: Vector3, arm: Vector3
) -> Vector3:
    r"""Return $a_0 + \dot\omega \times r + \omega \times (\omega \times r)$, m/s^2, shape (3,).

    That is the acceleration of the point at `arm`, $r$. All vectors are in the same components.

    **Source:** Geradin-Rixen (122), (123).
    """
    centripetal = cross(omega, cross(omega, arm))
    return acceleration + cross(omega_dot, arm) + centripetal
