"""Arguments that several functions of identification take, checked."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jaxtyping import ArrayLike

from ..checks import check_one_precision, find_duplicates, float_array
from ..formulations import AbstractFormulation
from ..sensors import AbstractSensor
from .parameters import Parameter


def check_model(entry: str, model: Any) -> None:
    """Raise `TypeError` for what is no formulation."""
    if not isinstance(model, AbstractFormulation):
        raise TypeError(
            f"`{entry}(model, ...)` takes a formulation such as `rj.NullSpace(system)`; got "
            f"{type(model).__name__}."
        )


def checked_parameters(
    entry: str, given: Parameter | Sequence[Parameter], argument: str = "parameters"
) -> tuple[Parameter, ...]:
    """One or several parameters as a tuple; `TypeError` and `ValueError` for anything else."""
    given = (given,) if isinstance(given, Parameter) else tuple(given)
    for parameter in given:
        if not isinstance(parameter, Parameter):
            raise TypeError(
                f"`{entry}({argument}=...)` takes `rj.Parameter` objects; got "
                f"{type(parameter).__name__}."
            )
    names = [p.name for p in given]
    if not given or find_duplicates(names):
        raise ValueError(
            f"`{entry}({argument}=...)` needs {argument} of different names; got {names}."
        )
    return given


def check_sensors(
    what: str, sensors: Iterable[Any], model: AbstractFormulation | None = None
) -> tuple[AbstractSensor, ...]:
    """Sensors as a tuple, that a model has what they measure.

    **Arguments:** `what` must be sensors, for the message.
    **Errors:** `TypeError` for what is no sensor, `ValueError` for two of one name.
    """
    sensors = tuple(sensors)
    for sensor in sensors:
        if not isinstance(sensor, AbstractSensor):
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
    """Raise `ValueError` unless the parts of a fit have one precision.

    **Arguments:** `entry`, the function that takes them; `ts`, times of the samples, if there are
    any.
    """
    parts = [("the model", model), ("`ts` of the measurements", ts)]
    parts += [(f"the sensor {sensor.name!r}", sensor) for sensor in sensors]
    parts += [(f"the parameter {parameter.name!r}", parameter) for parameter in parameters]
    check_one_precision(f"`{entry}`", parts)


def checked_noise(
    sensor: AbstractSensor, noise: ArrayLike, length: int, wrong: str, most: float = np.inf
) -> np.ndarray:
    """Standard deviations (length, C) of one number, one for each channel, or one for each sample.

    **Arguments:** `wrong`, what a message says of other numbers than positive ones below `most`.
    """
    channels = len(sensor.channels)
    argument = f"noise of the sensor {sensor.name!r}"
    noise = np.asarray(float_array(noise, argument, (), (channels,), (length, channels)))
    if not np.all((noise > 0) & (noise <= most)):
        raise ValueError(f"The {argument} must be {wrong}.")
    return np.broadcast_to(noise, (length, channels))
