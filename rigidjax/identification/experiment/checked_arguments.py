"""Checks of arguments that several functions of identification share."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jaxtyping import ArrayLike

from ...checks import check_one_precision, find_duplicates, float_array
from ...formulations import AbstractFormulation
from ...sensors import AbstractSensor
from ...sensors.base import AbstractQuantity
from .parameters import Parameter


def check_parameters(
    entry: str, parameters: Parameter | Sequence[Parameter], argument: str = "parameters"
) -> tuple[Parameter, ...]:
    """Return one or several parameters as a tuple.

    **Arguments:** `entry`, the function that takes them, and `argument`, for messages.
    **Errors:** `TypeError` for other objects; `ValueError` for no parameter or duplicate names.
    """
    parameters = (parameters,) if isinstance(parameters, Parameter) else tuple(parameters)
    for parameter in parameters:
        if not isinstance(parameter, Parameter):
            raise TypeError(
                f"`{entry}({argument}=...)` takes `rj.Parameter` objects; got "
                f"{type(parameter).__name__}."
            )
    names = [p.name for p in parameters]
    if not parameters or find_duplicates(names):
        raise ValueError(
            f"`{entry}({argument}=...)` needs {argument} of different names; got {names}."
        )
    return parameters


def check_sensors(
    what: str, sensors: Iterable[Any], model: AbstractFormulation | None = None
) -> tuple[AbstractSensor, ...]:
    """Return the sensors as a tuple, after checking that `model` has the quantities they measure.

    Without a model, quantities that no sensor predicts pass as well.

    **Arguments:** `what`, the start of an error message, such as "The keys must be".
    **Errors:** `TypeError` for an object that is not a sensor, `ValueError` for duplicate names.
    """
    sensors = tuple(sensors)
    kind: Any = AbstractQuantity if model is None else AbstractSensor
    for sensor in sensors:
        if not isinstance(sensor, kind):
            raise TypeError(f"{what} sensors such as `rj.Gyroscope()`; got {sensor!r}.")
        if model is not None:
            sensor.check(model)
    names = [sensor.name for sensor in sensors]
    if find_duplicates(names):
        raise ValueError(f"Every sensor needs a name of its own; got {names}.")
    return sensors


def check_precision(
    entry: str,
    model: AbstractFormulation,
    sensors: Sequence[AbstractSensor],
    parameters: Sequence[Parameter],
    ts: Any = None,
) -> None:
    """Raise `ValueError` unless model, sensors, parameters and times have the same precision.

    **Arguments:** `entry`, the function that takes them; `ts`, times of the samples, or `None`.
    """
    parts = [("the model", model), ("`ts` of the measurements", ts)]
    parts += [(f"the sensor {sensor.name!r}", sensor) for sensor in sensors]
    parts += [(f"the parameter {parameter.name!r}", parameter) for parameter in parameters]
    check_one_precision(f"`{entry}`", parts)


def check_noise(
    sensor: AbstractSensor, noise: ArrayLike, length: int, requirement: str, largest: float = np.inf
) -> np.ndarray:
    """Return standard deviations of a sensor, (length, C), from any of the accepted shapes.

    **Arguments:** `noise`, a number, one per channel (C,), or one per sample (length, C);
    `requirement`, the rule in words, for the message; `largest`, the largest accepted value.
    **Errors:** `ValueError` for another shape, and for values that are not positive or too large.
    """
    channels = len(sensor.channels)
    argument = f"noise of the sensor {sensor.name!r}"
    noise = np.asarray(float_array(noise, argument, (), (channels,), (length, channels)))
    if not np.all((noise > 0) & (noise <= largest)):
        raise ValueError(f"The {argument} must be {requirement}.")
    return np.broadcast_to(noise, (length, channels))


def check_no_prior(entry: str, parameters: Sequence[Parameter]) -> None:
    """Raise `ValueError` for parameters with a prior, where a prior would have no meaning."""
    names = [p.name for p in parameters if p.prior is not None]
    if names:
        raise ValueError(f"`{entry}` takes no priors; leave `prior` of {names} out.")
