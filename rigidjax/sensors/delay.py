"""Sensors with a delay."""

from collections.abc import Sequence

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from ..checks import ArrayInput, scalar_leaf
from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns
from ..state import State
from .base import AbstractSensor
from .history import unknowns_at_other_time


class Delayed(AbstractSensor):
    r"""Another sensor, whose sample with the time stamp $t$ is that of $t - \tau$.

    Fits, `sensitivity` and designs read the run itself at $t - \tau$, to its tolerance, with the
    forces as they acted, also those that jump. Before its first sample a run has no motion; it is
    continued backwards from the start state, smoothly, by one step of Radau IIA of order 11. If the
    body was held until the run started, leave samples before `ts[0] + delay` out with `mask`.

    `predict` alone knows one state and continues from there in the same way; that is accurate
    for delays that are short against the motion, of which forces do not jump.

    **Arguments:** `sensor`; `delay`, $\tau$, s, that can be fitted (negative for a clock ahead).
    **Errors:** `TypeError` for what is no sensor.
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

    def check_values(self, values: Array, argument: str) -> Array:
        return self.sensor.check_values(values, argument)

    def predict(self, model: AbstractFormulation, t: Float[Array, ""], y: Unknowns) -> Array:
        y = unknowns_at_other_time(model, t, y, self.delay)
        return self.sensor.predict(model, t - self.delay, y)

    def in_range(
        self, model: AbstractFormulation, samples: Sequence[np.ndarray]
    ) -> tuple[AbstractSensor, list[str]]:
        sensor, notes = self.sensor.in_range(model, samples)
        return eqx.tree_at(lambda s: s.sensor, self, sensor), notes

    def on_time(self) -> tuple[AbstractSensor, Float[Array, ""]]:
        sensor, delay = self.sensor.on_time()
        return sensor, self.delay if delay is None else self.delay + delay

    def residual(self, predicted: Array, measured: Array) -> Float[Array, " C"]:
        return self.sensor.residual(predicted, measured)

    def start(self, model: AbstractFormulation, state: State, measured: Array) -> State:
        return self.sensor.start(model, state, measured)

    def tracked_joints(self, model: AbstractFormulation) -> tuple[str, ...]:
        return self.sensor.tracked_joints(model)
