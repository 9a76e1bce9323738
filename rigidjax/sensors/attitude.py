"""Orientation as a unit quaternion."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..checks import ArrayInput, vector_leaf
from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns
from ..rotations import so3
from ..state import State
from .base import AbstractSensor, mounted, mounted_name
from .calibration import ZERO


class Attitude(AbstractSensor):
    r"""The orientation of a body: unit quaternions, scalar first, body to space.

    It reads $p\,\exp(b)$, the orientation of sensor axes that are turned by a bias $b$ from those
    of the body; as it stands that is $p$. The residual is the rotation vector of
    $\bar p_\mathrm{measured}\,p_\mathrm{predicted}$, sensor components, rad; the sign of a
    quaternion does not matter. It is smooth for differences below pi.

    **Arguments:**

    - `body`, the name of the body, or that of a `Frame`, whose orientation it is then; not needed
      if there is only one.
    - `bias`, $b$, the rotation vector that takes the axes of the body (of the frame) to those of
      the sensor, (3,) rad; it can be fitted. An orientation has no scale.
    - `name`, in place of "attitude of ...", where a body has several.

    **Errors:** `ValueError` for a wrong shape or an unknown body.
    """

    body: str | None = eqx.field(static=True)
    bias: Float[Array, "3"]
    label: str | None = eqx.field(static=True)
    channels: ClassVar[tuple[str, ...]] = ("phi1", "phi2", "phi3")
    unit: ClassVar[str] = "rad"
    value_shape: ClassVar[tuple[int, ...]] = (4,)

    def __init__(self, body: str | None = None, bias: ArrayInput = ZERO, name: str | None = None):
        self.body = body
        self.bias = vector_leaf(bias, "Attitude(bias=...)")
        self.label = name

    @property
    def name(self) -> str:
        return mounted_name("attitude", self.body, self.label)

    def check(self, model: AbstractFormulation) -> None:
        mounted(model, self.body, "Attitude")

    def check_values(self, values: Array, argument: str) -> Array:
        norm = np.linalg.norm(np.asarray(values), axis=-1)
        wrong = np.flatnonzero(~(np.abs(norm - 1) <= 1e-3))
        if wrong.size:
            raise ValueError(
                f"`{argument}` must be unit quaternions, scalar first, to 1e-3; sample {wrong[0]} "
                f"has length {norm[wrong[0]]:.6g}. Divide it by its length if it is a rotation."
            )
        return values / norm[..., None]

    def predict(
        self, model: AbstractFormulation, t: Float[Array, ""], y: Unknowns
    ) -> Float[Array, "4"]:
        row, frame = mounted(model, self.body, "Attitude")
        p = model.decode(t, y).orientation[row]
        p = p if frame is None else so3.multiply(p, frame.orientation.astype(p.dtype))
        return so3.multiply(p, self._turn(p))

    def _turn(self, p):
        """Return the quaternion of the bias in the precision of `p`."""
        return so3.exp_quaternion(self.bias.astype(p.dtype))

    def residual(
        self, predicted: Float[Array, "4"], measured: Float[Array, "4"]
    ) -> Float[Array, "3"]:
        return so3.log_quaternion(so3.multiply(so3.conjugate(measured), predicted))

    def start(self, model: AbstractFormulation, state: State, measured: Float[Array, "4"]) -> State:
        row, frame = mounted(model, self.body, "Attitude")
        p = state.orientation
        measured = so3.multiply(jnp.asarray(measured, p.dtype), so3.conjugate(self._turn(p)))
        if frame is not None:
            measured = so3.multiply(measured, so3.conjugate(frame.orientation.astype(p.dtype)))
        return eqx.tree_at(lambda s: s.orientation, state, p.at[row].set(measured))
