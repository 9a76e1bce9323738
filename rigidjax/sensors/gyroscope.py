"""Angular velocity in body components."""

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp

from ..annotations import Scalar, Vector3
from ..checks import ArrayInput, scalar_leaf, vector_leaf
from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns
from ..state import State
from .base import AbstractReading, in_axes_of, locate_mount, scale_leaf, sensor_name
from .calibration import ONE, ZERO, apply_calibration, remove_calibration
from .history import unknowns_at_other_time


class Gyroscope(AbstractReading):
    r"""A gyroscope with three axes, rad/s.

    It reads $s \circ \exp(\tilde m)^T \Omega(t - \tau) + b$ with the angular velocity in body
    components; by default it reads $\Omega$.

    **Arguments:**

    - `body`, name of the body, or of a `Frame` whose axes take the place of those of the body;
      `None` if there is only one body.
    - `bias`, $b$, (3,) rad/s; `scale`, $s$, (3,); `misalignment`, $m$, the rotation vector from
      body axes to sensor axes, (3,) rad; `delay`, $\tau$, s, see `Delayed`, or `None`. All can be
      fitted, the delay only if it is given as a number.
    - `name`, instead of "gyroscope of ...", if a body has several.

    **Errors:** `ValueError` for a wrong shape, a scale of zero, or an unknown body.
    """

    body: str | None = eqx.field(static=True)
    bias: Vector3
    scale: Vector3
    misalignment: Vector3
    delay: Scalar | None
    label: str | None = eqx.field(static=True)
    channels: ClassVar[tuple[str, ...]] = ("omega1", "omega2", "omega3")
    unit: ClassVar[str] = "rad/s"
    depends_on_translation: ClassVar[bool] = False
    value_shape: ClassVar[tuple[int, ...]] = (3,)

    def __init__(
        self,
        body: str | None = None,
        bias: ArrayInput = ZERO,
        scale: ArrayInput = ONE,
        misalignment: ArrayInput = ZERO,
        delay: ArrayInput | None = None,
        name: str | None = None,
    ):
        self.body = body
        self.bias = vector_leaf(bias, "Gyroscope(bias=...)")
        self.scale = scale_leaf(scale, "Gyroscope(scale=...)")
        self.misalignment = vector_leaf(misalignment, "Gyroscope(misalignment=...)")
        self.delay = None if delay is None else scalar_leaf(delay, "Gyroscope(delay=...)")
        self.label = name

    @property
    def name(self) -> str:
        return sensor_name("gyroscope", self.body, self.label)

    def check(self, model: AbstractFormulation) -> None:
        locate_mount(model, self.body, "Gyroscope")

    def predict(self, model: AbstractFormulation, t: Scalar, y: Unknowns) -> Vector3:
        if self.delay is not None:
            y = unknowns_at_other_time(model, t, y, self.delay)
            t = t - self.delay
        row, frame = locate_mount(model, self.body, "Gyroscope")
        omega = in_axes_of(frame, model.decode(t, y).angular_velocity[row])
        return apply_calibration(omega, self.bias, self.scale, self.misalignment)

    def on_time(self) -> tuple["Gyroscope", Callable[[Any], Any] | None]:
        if self.delay is None:
            return self, None
        return eqx.tree_at(lambda s: s.delay, self, None), lambda t: t - self.delay

    def start(self, model: AbstractFormulation, state: State, measured: Vector3) -> State:
        row, frame = locate_mount(model, self.body, "Gyroscope")
        omega = state.angular_velocity
        ideal = remove_calibration(jnp.asarray(measured), self.bias, self.scale, self.misalignment)
        ideal = ideal if frame is None else frame.rotation @ ideal
        return eqx.tree_at(
            lambda s: s.angular_velocity, state, omega.at[row].set(ideal.astype(omega.dtype))
        )
