"""Readings that are late."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..checks import ArrayInput, scalar_leaf
from ..formulations import AbstractAbsolute, AbstractFormulation
from ..formulations.charts import Unknowns
from ..state import State
from .base import AbstractSensor


class Delayed(AbstractSensor):
    r"""Another sensor, whose sample with the time stamp $t$ is that of $t - \tau$.

    The motion is followed back by one Runge-Kutta step of order 4, so that the error of the state
    is of order $\tau^5$: for delays that are short against the motion, such as those of filters and
    buses. A force that jumps within the delay is not seen as such.

    **Arguments:** `sensor`; `delay`, $\tau$, s, that can be fitted (negative for a clock ahead).
    **Errors:** `TypeError` for what is no sensor; `ValueError` for models of index 1 to 3, which
    have no vector field.
    """

    sensor: AbstractSensor
    delay: Float[Array, ""]

    def __init__(self, sensor: AbstractSensor, delay: ArrayInput):
        if not isinstance(sensor, AbstractSensor):
            raise TypeError(f"`Delayed(sensor, delay)` takes a sensor; got {sensor!r}.")
        self.sensor = sensor
        self.delay = scalar_leaf(delay, "Delayed(delay=...)")

    @property
    def channels(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.sensor.channels

    @property
    def unit(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.sensor.unit

    def unit_in(self, model: AbstractFormulation) -> str:
        return self.sensor.unit_in(model)

    @property
    def value_shape(self) -> tuple[int, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.sensor.value_shape

    @property
    def name(self) -> str:
        return f"delayed {self.sensor.name}"

    def check(self, model: AbstractFormulation) -> None:
        self.sensor.check(model)
        check_delay(model)

    def check_values(self, values: Array, argument: str) -> Array:
        return self.sensor.check_values(values, argument)

    def predict(self, model: AbstractFormulation, t: Float[Array, ""], y: Unknowns) -> Array:
        return self.sensor.predict(model, t - self.delay, earlier(model, t, y, self.delay))

    def residual(self, predicted: Array, measured: Array) -> Float[Array, " C"]:
        return self.sensor.residual(predicted, measured)

    def start(self, model: AbstractFormulation, state: State, measured: Array) -> State:
        return self.sensor.start(model, state, measured)

    def tracked_joints(self, model: AbstractFormulation) -> tuple[str, ...]:
        return self.sensor.tracked_joints(model)


def check_delay(model: AbstractFormulation) -> None:
    """Raise `ValueError` for a model whose motion cannot be followed back."""
    if isinstance(model, AbstractAbsolute) and model.index != 0:
        raise ValueError(
            "A sensor with a delay follows the motion back, for which "
            f"`{type(model).__name__}(index={model.index})` has no vector field. Use "
            "`rj.NullSpace(system)` or `rj.Absolute(system, index=0)`."
        )


def earlier(
    model: AbstractFormulation, t: Float[Array, ""], y: Unknowns, delay: Float[Array, ""]
) -> Any:
    """The unknowns at `t - delay`, by one step of the classical Runge-Kutta method."""
    h = -jnp.asarray(delay, t.dtype)

    def moved(slope, part):
        return jax.tree.map(lambda a, k: a + part * h * k, y, slope)

    k1 = model.vector_field(t, y)
    k2 = model.vector_field(t + 0.5 * h, moved(k1, 0.5))
    k3 = model.vector_field(t + 0.5 * h, moved(k2, 0.5))
    k4 = model.vector_field(t + h, moved(k3, 1.0))
    mean = jax.tree.map(lambda a, b, c, d: (a + 2.0 * (b + c) + d) / 6.0, k1, k2, k3, k4)
    return moved(mean, 1.0)
