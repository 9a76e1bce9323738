"""Orientation as a unit quaternion."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..annotations import Scalar, Vector3
from ..checks import ArrayInput, vector_leaf
from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns
from ..rotations import so3
from ..state import State
from .base import AbstractSensor, locate_mount, sensor_name
from .calibration import ZERO


class Attitude(AbstractSensor):
    r"""The orientation of a body: unit quaternions, scalar first, body to space.

    It reads $p\,\exp(b)$, the orientation of sensor axes that are rotated by a bias $b$ from those
    of the body; by default $b = 0$. The residual is the rotation vector of
    $\bar p_\mathrm{measured}\,p_\mathrm{predicted}$, sensor components, rad, whatever the sign of
    the quaternions. It is smooth for differences below pi.

    **Arguments:**

    - `body`, name of the body, or of a `Frame` whose orientation is measured instead; `None` if
      there is only one body.
    - `bias`, $b$, the rotation vector from the axes of the body (or the frame) to those of the
      sensor, (3,) rad; it can be fitted. An orientation has no scale.
    - `name`, instead of "attitude of ...", if a body has several.

    **Errors:** `ValueError` for a wrong shape or an unknown body.
    """

    body: str | None = eqx.field(static=True)
    bias: Vector3
    label: str | None = eqx.field(static=True)
    channels: ClassVar[tuple[str, ...]] = ("phi1", "phi2", "phi3")
    unit: ClassVar[str] = "rad"
    depends_on_translation: ClassVar[bool] = False
    value_shape: ClassVar[tuple[int, ...]] = (4,)

    def __init__(self, body: str | None = None, bias: ArrayInput = ZERO, name: str | None = None):
        self.body = body
        self.bias = vector_leaf(bias, "Attitude(bias=...)")
        self.label = name

    @property
    def name(self) -> str:
        return sensor_name("attitude", self.body, self.label)

    def check(self, model: AbstractFormulation) -> None:
        locate_mount(model, self.body, "Attitude")

    def check_values(self, values: Array, argument: str) -> Array:
        norm = np.linalg.norm(np.asarray(values), axis=-1)
        wrong = np.flatnonzero(~(np.abs(norm - 1) <= 1e-3))
        if wrong.size:
            raise ValueError(
                f"`{argument}` must be unit quaternions, scalar first, to 1e-3; sample {wrong[0]} "
                f"has length {norm[wrong[0]]:.6g}. Divide it by its length if it is a rotation."
            )
        return values / norm[..., None]

    def predict(self, model: AbstractFormulation, t: Scalar, y: Unknowns) -> Float[Array, "4"]:
        row, frame = locate_mount(model, self.body, "Attitude")
        p = model.decode(t, y).orientation[row]
        p = p if frame is None else so3.multiply(p, frame.orientation.astype(p.dtype))
        return so3.multiply(p, self._bias_quaternion(p))

    def _bias_quaternion(self, p: Float[Array, "*L 4"]) -> Float[Array, "4"]:
        """Return the quaternion of the bias in the precision of `p`."""
        return so3.exp_quaternion(self.bias.astype(p.dtype))

    def residual(self, predicted: Float[Array, "4"], measured: Float[Array, "4"]) -> Vector3:
        return so3.log_quaternion(so3.multiply(so3.conjugate(measured), predicted))

    def start(self, model: AbstractFormulation, state: State, measured: Float[Array, "4"]) -> State:
        row, frame = locate_mount(model, self.body, "Attitude")
        p = state.orientation
        measured = so3.multiply(
            jnp.asarray(measured, p.dtype), so3.conjugate(self._bias_quaternion(p))
        )
        if frame is not None:
            measured = so3.multiply(measured, so3.conjugate(frame.orientation.astype(p.dtype)))
        return eqx.tree_at(lambda s: s.orientation, state, p.at[row].set(measured))
