"""The base class of sensors, and functions that sensors share."""

import abc
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from ..annotations import Scalar, Vector3
from ..bodies.fixed_point import FixedPointBody
from ..bodies.frame import Frame
from ..checks import ArrayInput, finite_leaf, is_traced
from ..forces.base import body_index
from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns
from ..persistent_jit import persistent_jit
from ..rotations.matrix import to_body
from ..state import State


class AbstractQuantity(eqx.Module):
    """A quantity of which `Measurements` hold samples, by a sensor or given, such as a torque.

    Quantities serve as keys of dictionaries; they are equal if their types, names and arrays are
    equal.
    """

    channels: eqx.AbstractClassVar[tuple[str, ...]]
    """Names of the components of a value, or of the residual of a sensor."""
    unit: eqx.AbstractClassVar[str]
    """Unit of the residual and of the noise."""
    value_shape: eqx.AbstractClassVar[tuple[int, ...]]
    """Shape of one measured value."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """Name, unique among the quantities of a run."""

    @abc.abstractmethod
    def check_values(self, values: Array, argument: str) -> Array:
        """Return valid measured values (T, *value_shape), or raise `ValueError`."""

    def __hash__(self) -> int:
        return hash((type(self), self.name))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return type(self) is type(other) and bool(eqx.tree_equal(self, other))


class AbstractSensor(AbstractQuantity):
    """A measured quantity, as a function of time and state.

    Arrays in a sensor (a bias, a mounting) are parameters that can be fitted.
    """

    depends_on_translation: ClassVar[bool] = True
    """Whether the value depends on positions or velocities of bodies without joints."""

    @abc.abstractmethod
    def check(self, model: AbstractFormulation) -> None:
        """Raise `ValueError` if `model` lacks the measured quantity."""

    @abc.abstractmethod
    def predict(self, model: AbstractFormulation, t: Scalar, y: Unknowns) -> Array:
        """Return the value at one time, shape `value_shape`.

        **Arguments:** `model`, the formulation; `t`, s; `y`, its unknowns at `t`, shape
        (num_unknowns,), like a row of `Solution.ys` (their order is in docs/conventions.md).
        """

    @abc.abstractmethod
    def residual(self, predicted: Array, measured: Array) -> Float[Array, " C"]:
        """Return predicted minus measured values, one entry for each of `channels`, in `unit`."""

    @abc.abstractmethod
    def start(self, model: AbstractFormulation, state: State, measured: Array) -> State:
        """Return the start state improved by the first sample, as an initial guess of a fit.

        Parts that the sample does not determine stay unchanged.
        """

    def unit_in(self, model: AbstractFormulation) -> str:
        """Return the unit in a model, which decides between an angle and a length."""
        return self.unit

    def tracked_joints(self, model: AbstractFormulation) -> tuple[str, ...]:
        """Return the joints whose angle is measured beyond pi; none by default."""
        return ()

    def in_range(
        self, model: AbstractFormulation, samples: Sequence[np.ndarray]
    ) -> tuple["AbstractSensor", list[str]]:
        """Return the sensor with the range of angles that its samples show, and notes.

        **Arguments:** `samples` of every run, (T, *value_shape), NaN where they are masked.
        """
        return self, []

    def on_time(self) -> tuple["AbstractSensor", Callable[[Any], Any] | None]:
        """Return the sensor without its delay, and times of the motion by time stamps, s, or
        `None`.

        A run evaluates the sensor without delay on its own motion at these times.
        """
        return self, None


class AbstractReading(AbstractSensor):
    """A sensor whose residual is a plain difference and which does not improve start states."""

    def check_values(self, values: Array, argument: str) -> Array:
        return values

    def residual(self, predicted: Array, measured: Array) -> Float[Array, " C"]:
        return (predicted - measured).reshape(len(self.channels))

    def start(self, model: AbstractFormulation, state: State, measured: Array) -> State:
        return state


def unwrap_measured_angles(
    model: AbstractFormulation, sensors: Sequence[AbstractSensor]
) -> AbstractFormulation:
    """Return the model with the angles that sensors measure beyond pi among its unknowns."""
    names = [name for sensor in sensors for name in sensor.tracked_joints(model)]
    system = model.system
    if not names or isinstance(system, FixedPointBody):
        return model
    return eqx.tree_at(lambda m: m.system, model, system.tracking(names))


@persistent_jit
def improve_states(
    model: AbstractFormulation,
    sensors: Sequence[AbstractSensor],
    states: State,
    samples: Sequence[Any],
) -> State:
    """Improve the start states of several runs by one sample of every sensor.

    **Arguments:** `states` and `samples`, with a leading axis of runs.
    """

    def improve(state, measured):
        for sensor, value in zip(sensors, measured, strict=True):
            state = sensor.start(model, state, value)
        return state

    return jax.vmap(improve)(states, tuple(samples))


def scale_leaf(
    value: ArrayInput, argument: str, shape: tuple[int, ...] = (3,)
) -> Float[Array, "*c"]:
    """Return checked scale factors, none zero."""
    scale = finite_leaf(value, argument, shape)
    if not is_traced(scale) and not np.all(np.asarray(scale)):
        raise ValueError(f"`{argument}` must not be zero; got {scale}.")
    return scale


def locate_mount(
    model: AbstractFormulation, body: str | None, sensor: str
) -> tuple[int, Frame | None]:
    """Return the row of the body that carries a sensor, and its `Frame` if `body` names one.

    **Errors:** as for `body_row`.
    """
    system = model.system
    if body is None or isinstance(system, FixedPointBody):
        return body_row(model, body, sensor), None
    return system.locate(body)


def sensor_name(quantity: str, body: str | None, label: str | None = None) -> str:
    """Return the name of a sensor: `label` if given, else made of the quantity and the body."""
    if label is not None:
        return label
    return quantity if body is None else f"{quantity} of {body}"


def in_axes_of(frame: Frame | None, vector: Vector3) -> Vector3:
    """Convert a vector from body components to those of a frame; unchanged without a frame."""
    if frame is None:
        return vector
    return to_body(frame.rotation.astype(vector.dtype), vector)


def body_row(model: AbstractFormulation, body: str | None, sensor: str) -> int:
    """Return the row of a body in the arrays of a `State`; `None` means the only body.

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
