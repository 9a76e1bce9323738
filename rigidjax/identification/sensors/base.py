"""What every sensor provides."""

import abc

import equinox as eqx
from jaxtyping import Array, Float

from ...bodies.fixed_point import FixedPointBody
from ...forces.base import body_index
from ...formulations import AbstractFormulation
from ...state import State


class AbstractSensor(eqx.Module):
    """A measured quantity, as a function of time and state.

    Arrays in a sensor (a bias, a mounting) are parameters that can be fitted. Sensors are keys of
    dictionaries, so what is not an array must be hashable.
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
    def predict(self, model: AbstractFormulation, t: Float[Array, ""], state: State) -> Array:
        """Value at one time, shape `value_shape`.

        **Arguments:** `model`, the formulation; `t`, s; `state`, the physical state at `t`.
        """

    @abc.abstractmethod
    def residual(self, predicted: Array, measured: Array) -> Float[Array, " C"]:
        """Predicted minus measured, one entry for each of `channels`, in `unit`."""

    @abc.abstractmethod
    def start(self, model: AbstractFormulation, state: State, measured: Array) -> State:
        """The start state improved by the first sample, as a start value of a fit."""


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
