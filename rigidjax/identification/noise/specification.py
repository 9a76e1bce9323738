"""The argument `noise` of fits: a noise model for every sensor."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ...sensors import AbstractSensor
from .models import AbstractNoise, AutoRegressive, GaussianProcess, RandomWalk

# An autoregressive model whose order is selected from the residuals.
SELECT_ORDER = "ar(p)"

NoiseModel: TypeAlias = AbstractNoise | str
NoiseArgument: TypeAlias = NoiseModel | Mapping[AbstractSensor | str, NoiseModel]


def noise_models(
    entry: str, noise: NoiseArgument, sensors: Sequence[AbstractSensor]
) -> tuple[AbstractNoise | str | None, ...]:
    """Return the noise model of every sensor: `None` for white noise, or `SELECT_ORDER`.

    **Errors:** `ValueError` for an unknown model or sensor; `TypeError` for other objects.
    """
    if not isinstance(noise, Mapping):
        return (_noise_model(entry, noise),) * len(sensors)
    names = [sensor.name for sensor in sensors]
    models: dict[str, Any] = dict.fromkeys(names)
    for key, model in noise.items():
        name = key.name if isinstance(key, AbstractSensor) else key
        if name not in models:
            raise ValueError(f"`{entry}(noise=...)` names the sensor {name!r}; there are {names}.")
        models[name] = _noise_model(entry, model)
    return tuple(models.values())


def _noise_model(entry: str, model: Any) -> AbstractNoise | str | None:
    if isinstance(model, AbstractNoise):
        return model
    if not isinstance(model, str):
        raise TypeError(
            f"`{entry}(noise=...)` takes the name of a noise model, an object such as "
            f"`rj.identification.AutoRegressive(2)`, or a dictionary of them by sensor; got "
            f"{model!r}."
        )
    if model in ("white", SELECT_ORDER):
        return None if model == "white" else SELECT_ORDER
    if model in ("gp", "random-walk"):
        return GaussianProcess() if model == "gp" else RandomWalk()
    order = re.fullmatch(r"ar\(?([1-8])\)?", model)
    if order is None:
        raise ValueError(
            f'`{entry}(noise=...)` must be "white", "ar1" to "ar8", "{SELECT_ORDER}" (the order is '
            f'selected), "gp", "random-walk", or a dictionary of them by sensor; got {model!r}.'
        )
    return AutoRegressive(int(order[1]))
