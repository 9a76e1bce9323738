"""Specific force at a point of a body."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..bodies.fixed_point import FixedPointBody
from ..bodies.potentials import GravityPotential
from ..checks import ArrayInput, vector_leaf
from ..forces import Gravity
from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns
from ..kinematics import point_acceleration
from ..rotations import so3
from .base import AbstractReading, in_axes_of, mounted, mounted_name, scale_leaf
from .calibration import ONE, ZERO, reading


class Accelerometer(AbstractReading):
    r"""An accelerometer with three axes: the specific force at a point, m/s^2.

    It reads $s \circ C f + b$ with the specific force in body components,
    $f = R^T(\ddot x - g) + \dot\Omega \times u + \Omega \times (\Omega \times u)$, and the rotation
    $C = \exp(\tilde m)^T$ from body to sensor axes. At rest it reads the acceleration of gravity
    upwards. The gravity $g$ is that of the model: the sum of its `Gravity` forces, that of the
    `GravityPotential` of a `FixedPointBody`, zero without; other potentials are applied forces.

    **Arguments:**

    - `body`, its name, or that of a `Frame` whose axes take the place of those of the body; `None`
      if there is only one.
    - `point`, $u$, from the centre of mass (of a `FixedPointBody`: from the fixed point; of a
      frame: from its origin), (3,) m, components of the body (of the frame).
    - `bias`, $b$, (3,) m/s^2; `scale`, $s$, (3,); `misalignment`, $m$, the rotation vector that
      takes body axes to sensor axes, (3,) rad. They and `point` can be fitted.
    - `name`, in place of "accelerometer of ...", where a body has several.

    **Errors:** `ValueError` for a wrong shape, a scale of zero, an unknown body, or a
    `FixedPointBody` with a potential that does not say what the acceleration of gravity is.
    """

    body: str | None = eqx.field(static=True)
    point: Float[Array, "3"]
    bias: Float[Array, "3"]
    scale: Float[Array, "3"]
    misalignment: Float[Array, "3"]
    label: str | None = eqx.field(static=True)
    channels: ClassVar[tuple[str, ...]] = ("f1", "f2", "f3")
    unit: ClassVar[str] = "m/s^2"
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
        return mounted_name("accelerometer", self.body, self.label)

    def check(self, model: AbstractFormulation) -> None:
        mounted(model, self.body, "Accelerometer")
        gravity(model)

    def predict(
        self, model: AbstractFormulation, t: Float[Array, ""], y: Unknowns
    ) -> Float[Array, "3"]:
        row, frame = mounted(model, self.body, "Accelerometer")
        state, rates = model.decode(t, y), model.accelerations(t, y)
        point = self.point if frame is None else frame.on_body(self.point)
        point = point.astype(state.orientation.dtype)
        upwards = rates.linear[row] - gravity(model)
        force = point_acceleration(
            so3.rotate(so3.conjugate(state.orientation[row]), upwards),
            state.angular_velocity[row],
            rates.angular[row],
            point,
        )
        force = in_axes_of(frame, force)
        return reading(force, self.bias, self.scale, self.misalignment)


def gravity(model: AbstractFormulation) -> Float[Array, "3"]:
    """Acceleration of gravity in a model, (3,) m/s^2, space components.

    **Errors:** `ValueError` for a `FixedPointBody` whose potential does not say it.
    """
    system = model.system
    if isinstance(system, FixedPointBody):
        if system.potential is None:
            return jnp.zeros(3, system.inertia.dtype)
        if isinstance(system.potential, GravityPotential):
            return system.potential.gravity
        raise ValueError(
            "`Accelerometer` needs the acceleration of gravity, which the potential "
            f"`{type(system.potential).__name__}` of this `FixedPointBody` does not say; use "
            "`rj.GravityPotential(first_moment, gravity)`."
        )
    vectors = [force.vector for force in system.forces if isinstance(force, Gravity)]
    return sum(vectors, jnp.zeros(3, system.bodies[0].mass.dtype))
