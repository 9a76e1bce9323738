"""Sensors with a delay or with a clock of their own."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from ..annotations import Scalar
from ..checks import ArrayInput, scalar_leaf
from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns
from ..state import State
from .base import AbstractSensor
from .history import unknowns_at_other_time


class Delayed(AbstractSensor):
    r"""A sensor whose sample with the time stamp $t$ belongs to the time $t - \tau - s t$.

    Fits, `sensitivity` and designs evaluate the run itself at this time, to its tolerance and with
    all jumps of forces. Times before the start of a run are reached by smooth continuation of the
    start state, one backward step of Radau IIA of order 11. If the body was held until the run
    started, exclude samples before `ts[0] + delay` by `mask`.

    `predict` alone sees one state and continues the motion from there by the same step. That is
    accurate for delays that are short compared with the motion, if forces do not jump.

    **Arguments:** `sensor`, whose readings are late; `delay`, $\tau$, s, negative for a clock that
    is ahead; `skew`, $10^6 s$, ppm, of a clock that runs at another rate, positive for one that is
    fast, or `None`. Both can be fitted, the skew only if it is given as a number.
    **Errors:** `TypeError` if `sensor` is not a sensor.
    """

    sensor: AbstractSensor
    delay: Scalar
    skew: Scalar | None

    def __init__(
        self, sensor: AbstractSensor, delay: ArrayInput = 0.0, skew: ArrayInput | None = None
    ):
        if not isinstance(sensor, AbstractSensor):
            raise TypeError(f"`Delayed(sensor, delay)` takes a sensor; got {sensor!r}.")
        self.sensor = sensor
        self.delay = scalar_leaf(delay, "Delayed(delay=...)")
        self.skew = None if skew is None else scalar_leaf(skew, "Delayed(skew=...)")

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

    def predict(self, model: AbstractFormulation, t: Scalar, y: Unknowns) -> Array:
        delay = self.delay if self.skew is None else t - self._true_time(t)
        y = unknowns_at_other_time(model, t, y, delay)
        return self.sensor.predict(model, t - delay, y)

    def _true_time(self, t: Any) -> Any:
        """Return the times of the motion, s, by time stamps, any shape."""
        return (t if self.skew is None else (1 - 1e-6 * self.skew) * t) - self.delay

    def in_range(
        self, model: AbstractFormulation, samples: Sequence[np.ndarray]
    ) -> tuple[AbstractSensor, list[str]]:
        sensor, notes = self.sensor.in_range(model, samples)
        return eqx.tree_at(lambda s: s.sensor, self, sensor), notes

    def on_time(self) -> tuple[AbstractSensor, Callable[[Any], Any]]:
        sensor, inner = self.sensor.on_time()
        return sensor, self._true_time if inner is None else lambda t: inner(self._true_time(t))

    def residual(self, predicted: Array, measured: Array) -> Float[Array, " C"]:
        return self.sensor.residual(predicted, measured)

    def start(self, model: AbstractFormulation, state: State, measured: Array) -> State:
        return self.sensor.start(model, state, measured)

    def tracked_joints(self, model: AbstractFormulation) -> tuple[str, ...]:
        return self.sensor.tracked_joints(model)
