"""Angular velocity in body components."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...formulations import AbstractFormulation
from ...formulations.charts import Unknowns
from ...state import State
from .base import AbstractSensor, body_row


class Gyroscope(AbstractSensor):
    r"""An ideal gyroscope: $\Omega$ in body components, rad/s.

    **Arguments:** `body`, the name of the body; not needed if there is only one.
    """

    body: str | None = eqx.field(static=True, default=None)
    channels: ClassVar[tuple[str, ...]] = ("omega1", "omega2", "omega3")
    unit: ClassVar[str] = "rad/s"
    value_shape: ClassVar[tuple[int, ...]] = (3,)

    @property
    def name(self) -> str:
        return "gyroscope" if self.body is None else f"gyroscope of {self.body}"

    def check(self, model: AbstractFormulation) -> None:
        body_row(model, self.body, "Gyroscope")

    def check_values(self, values: Array, argument: str) -> Array:
        return values

    def predict(
        self, model: AbstractFormulation, t: Float[Array, ""], y: Unknowns
    ) -> Float[Array, "3"]:
        return model.decode(t, y).angular_velocity[body_row(model, self.body, "Gyroscope")]

    def residual(
        self, predicted: Float[Array, "3"], measured: Float[Array, "3"]
    ) -> Float[Array, "3"]:
        return predicted - measured

    def start(self, model: AbstractFormulation, state: State, measured: Float[Array, "3"]) -> State:
        row = body_row(model, self.body, "Gyroscope")
        omega = state.angular_velocity
        measured = jnp.asarray(measured, omega.dtype)
        return eqx.tree_at(lambda s: s.angular_velocity, state, omega.at[row].set(measured))
