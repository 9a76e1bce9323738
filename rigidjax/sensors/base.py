"""What every sensor provides."""

import abc
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from ..bodies.fixed_point import FixedPointBody
from ..bodies.frame import Frame
from ..checks import ArrayInput, finite_leaf, is_traced
from ..forces.base import body_index
from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns
from ..rotations.matrix import to_body
from ..state import State


class AbstractSensor(eqx.Module):
    """A measured quantity, as a function of time and state.

    Arrays in a sensor (a bias, a mounting) are parameters that can be fitted. Sensors are keys of
    dictionaries: equal ones have the same kind, name and arrays.
    """

    channels: eqx.AbstractClassVar[tuple[str, ...]]
    """Names of the components of the residual."""
    unit: eqx.AbstractClassVar[str]
    """Unit of the residual and of the noise."""
    value_shape: eqx.AbstractClassVar[tuple[int, ...]]
    """Shape of one measured value."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """Unique name among the sensors of a run."""

    @abc.abstractmethod
    def check(self, model: AbstractFormulation) -> None:
        """Raise `ValueError` if `model` has not what is measured."""

    @abc.abstractmethod
    def check_values(self, values: Array, argument: str) -> Array:
        """Measured values (T, *value_shape) as they are used, or `ValueError`."""

    @abc.abstractmethod
    def predict(self, model: AbstractFormulation, t: Float[Array, ""], y: Unknowns) -> Array:
        """Value at one time, shape `value_shape`.

        **Arguments:** `model`, the formulation; `t`, s; `y`, its unknowns at `t`, shape
        (num_unknowns,), as one row of `Solution.ys` (docs/conventions.md has their order).
        """

    @abc.abstractmethod
    def residual(self, predicted: Array, measured: Array) -> Float[Array, " C"]:
        """Predicted minus measured, one entry for each of `channels`, in `unit`."""

    @abc.abstractmethod
    def start(self, model: AbstractFormulation, state: State, measured: Array) -> State:
        """The start state improved by the first sample, as a start value of a fit.

        As it is where the sample does not determine a part of the state.
        """

    def unit_in(self, model: AbstractFormulation) -> str:
        """`unit`, where it depends on what the model has: that of an angle or that of a length."""
        return self.unit

    def tracked_joints(self, model: AbstractFormulation) -> tuple[str, ...]:
        """Joints whose angle is measured beyond pi; none unless the sensor says so."""
        return ()

    def in_range(
        self, model: AbstractFormulation, samples: Sequence[np.ndarray]
    ) -> tuple["AbstractSensor", list[str]]:
        """Return the sensor as its samples show it to count angles, and notes on that.

        **Arguments:** `samples`, of every run (T, *value_shape), NaN where they do not count.
        """
        return self, []

    def on_time(self) -> tuple["AbstractSensor", Float[Array, ""] | None]:
        """Return the sensor without its delay, and the delay, s, `None` for a sensor without one.

        A run reads a sensor with a delay from its own motion at the earlier time.
        """
        return self, None

    def __hash__(self) -> int:
        return hash((type(self), self.name))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return type(self) is type(other) and bool(eqx.tree_equal(self, other))


class AbstractReading(AbstractSensor):
    """A sensor whose residual is a difference, and from which no start state follows."""

    def check_values(self, values: Array, argument: str) -> Array:
        return values

    def residual(self, predicted: Array, measured: Array) -> Float[Array, " C"]:
        return (predicted - measured).reshape(len(self.channels))

    def start(self, model: AbstractFormulation, state: State, measured: Array) -> State:
        return state


def tracking(model: AbstractFormulation, sensors: Sequence[AbstractSensor]) -> AbstractFormulation:
    """The model with the angles among its unknowns that sensors measure beyond pi."""
    names = [name for sensor in sensors for name in sensor.tracked_joints(model)]
    system = model.system
    if not names or isinstance(system, FixedPointBody):
        return model
    return eqx.tree_at(lambda m: m.system, model, system.tracking(names))


@eqx.filter_jit
def improved(
    model: AbstractFormulation,
    sensors: Sequence[AbstractSensor],
    states: State,
    samples: Sequence[Any],
) -> State:
    """States of several runs, each improved by one sample of every sensor, as start values.

    **Arguments:** `states` and `samples` with the runs in front.
    """

    def one(state, measured):
        for sensor, value in zip(sensors, measured, strict=True):
            state = sensor.start(model, state, value)
        return state

    return jax.vmap(one)(states, tuple(samples))


def scale_leaf(
    value: ArrayInput, argument: str, shape: tuple[int, ...] = (3,)
) -> Float[Array, "*c"]:
    """Return checked scale factors, none of them zero."""
    scale = finite_leaf(value, argument, shape)
    if not is_traced(scale) and not np.all(np.asarray(scale)):
        raise ValueError(f"`{argument}` must not be zero; got {scale}.")
    return scale


def mounted(model: AbstractFormulation, body: str | None, sensor: str) -> tuple[int, Frame | None]:
    """Row of the body that a sensor is on, and the frame on it if `body` names one.

    **Errors:** as `body_row`.
    """
    system = model.system
    if body is None or isinstance(system, FixedPointBody):
        return body_row(model, body, sensor), None
    return system.located(body)


def mounted_name(quantity: str, body: str | None, label: str | None = None) -> str:
    """Name of a sensor on a body, its own if it has one."""
    if label is not None:
        return label
    return quantity if body is None else f"{quantity} of {body}"


def in_axes_of(frame: Frame | None, vector: Float[Array, "3"]) -> Float[Array, "3"]:
    """A vector given in body components, in those of a frame on the body if there is one."""
    if frame is None:
        return vector
    return to_body(frame.rotation.astype(vector.dtype), vector)


def body_row(model: AbstractFormulation, body: str | None, sensor: str) -> int:
    """Row of a body in the arrays of a `State`; `None` means the only body.

    **Errors:** `ValueError` for an unknown name, or no name where there are several bodies.
    """
    system = model.system
    if isinstance(system, FixedPointBody):
        if body is not None:
            raise ValueError(
                f"`{sensor}(body={body!r})`: a `FixedPointBody` has no name; leave `body` out."
            )
        return 0
    if body is not None:
        return body_index(system.bodies, body)
    if system.num_bodies > 1:
        names = [b.name for b in system.bodies]
        raise ValueError(f"`{sensor}(body=...)` must name one of the bodies {names}.")
    return 0
