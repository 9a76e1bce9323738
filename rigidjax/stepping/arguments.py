"""Checks of the arguments of steppers."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..checks import check_finite, common_dtype, float_array, is_traced
from ..formulations import AbstractFormulation
from ..formulations.binding import bind_inputs
from ..signals.controllers import SampledController
from ..signals.inputs import inputs_of, with_inputs

# Relative deviation of a period from a multiple of the step that is round-off.
_STEP_TOLERANCE = 1e-6


def placeholders(model: AbstractFormulation, bound: Mapping[str, Any]) -> dict[str, Array]:
    """Return the defaults of inputs that are not bound, and zeros of those without a default."""
    dtype = common_dtype(model)
    return {
        name: jnp.zeros(target.shape, dtype)
        if target.default is None
        else jnp.asarray(target.default, dtype)
        for name, target in sorted(inputs_of(model).items())
        if name not in bound
    }


def check_inputs(model: AbstractFormulation, inputs: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the inputs that are bound when a stepper is built, checked."""
    where = "Stepper(inputs=...)"
    inputs = {} if inputs is None else inputs
    if isinstance(inputs, Mapping):
        for name, value in inputs.items():
            if isinstance(value, SampledController):
                raise ValueError(
                    f"`{where}`: the input {name!r} has a sampled controller, which would sample "
                    "within periods. Evaluate it between periods and pass its value to `step`."
                )
        free = placeholders(model, inputs)
        bind_inputs(with_inputs(model, free), inputs, where)
        return dict(inputs)
    bind_inputs(model, inputs, where)
    raise AssertionError("`bind_inputs` accepts mappings alone")


def known_time(value: float, name: str) -> float:
    """Return a positive number of seconds that is known when a stepper is built."""
    if is_traced(value):
        raise ValueError(
            f"`Stepper({name}=...)` must be a known number of seconds; got a traced value."
        )
    found = float(check_finite(float_array(value, f"Stepper({name}=...)", ()), name))
    if not found > 0:
        raise ValueError(f"`Stepper({name}=...)` must be positive, s; got {found:g}.")
    return found


def check_max_steps(max_steps: int) -> int:
    """Return the checked limit of the number of steps of a period."""
    is_count = isinstance(max_steps, int | np.integer) and not isinstance(max_steps, bool)
    if not is_count or max_steps < 1:
        raise ValueError(
            f"`Stepper(max_steps=...)` must be an integer of at least 1; got {max_steps!r}."
        )
    return int(max_steps)


def count_steps(period: float, dt: float) -> int:
    """Return the number of steps of a period; `ValueError` if it is no multiple of the step."""
    step = known_time(dt, "dt")
    count = max(round(period / step), 1)
    if abs(period - count * step) > _STEP_TOLERANCE * period:
        raise ValueError(
            f"`Stepper(period=..., dt=...)`: the period must be a multiple of the step; got "
            f"{period:g} s and {step:g} s. Use `dt={period / count:g}`."
        )
    return count
