"""Orientation as a unit quaternion."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns
from ..rotations import so3
from ..state import State
from .base import AbstractSensor, mounted, mounted_name


class Attitude(AbstractSensor):
    r"""The orientation of a body: unit quaternions, scalar first, body to space.

    The residual is the rotation vector of $\bar p_\mathrm{measured}\,p$, body components, rad; the
    sign of a quaternion does not matter. It is smooth for differences below pi.

    **Arguments:** `body`, the name of the body, or that of a `Frame`, whose orientation it is
    then; not needed if there is only one.
    """

    body: str | None = eqx.field(static=True, default=None)
    channels: ClassVar[tuple[str, ...]] = ("phi1", "phi2", "phi3")
    unit: ClassVar[str] = "rad"
    value_shape: ClassVar[tuple[int, ...]] = (4,)

    @property
    def name(self) -> str:
        return mounted_name("attitude", self.body)

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
        return p if frame is None else so3.multiply(p, frame.orientation.astype(p.dtype))

    def residual(
        self, predicted: Float[Array, "4"], measured: Float[Array, "4"]
    ) -> Float[Array, "3"]:
        return so3.log_quaternion(so3.multiply(so3.conjugate(measured), predicted))

    def start(self, model: AbstractFormulation, state: State, measured: Float[Array, "4"]) -> State:
        row, frame = mounted(model, self.body, "Attitude")
        p = state.orientation
        measured = jnp.asarray(measured, p.dtype)
        if frame is not None:
            measured = so3.multiply(measured, so3.conjugate(frame.orientation.astype(p.dtype)))
        return eqx.tree_at(lambda s: s.orientation, state, p.at[row].set(measured))
