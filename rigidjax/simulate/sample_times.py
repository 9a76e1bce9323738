"""Checks of the times at which a run is saved, in place of those of diffrax."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..checks import (
    ArrayInput,
    as_leaf,
    check_finite,
    explain_lost_steps,
    float_array,
    is_traced,
    raise_or_collect,
)


def check_save_times(ts: ArrayInput, t0: Any, t1: Any, dtype: jnp.dtype, argument: str) -> Array:
    """Return the checked times (T,), s, in the precision of the run.

    **Errors:** `ValueError` for a wrong shape, times that do not increase, or times outside
    `[t0, t1]`.
    """
    times = float_array(ts, argument)
    if times.ndim != 1 or times.size == 0:
        raise ValueError(f"`{argument}` must have shape (T,); got shape {times.shape}.")
    known = not is_traced(times)
    text = explain_lost_steps(np.asarray(times), dtype) if known else ""
    # Rounded like t0 and t1 before any comparison.
    times = check_finite(times, argument).astype(dtype) if known else jnp.asarray(times, dtype)
    if known and not np.all(np.diff(times) > 0):
        raise ValueError(f"`{argument}` must be strictly increasing in {dtype}. {text}".rstrip())
    if text:
        raise ValueError(f"`{argument}`: {text}")
    if not is_traced((times, t0, t1)):
        if times[0] < t0 or times[-1] > t1:
            raise ValueError(
                f"`{argument}` must lie between t0 = {float(t0)} and t1 = {float(t1)}; got times "
                f"from {times[0]} to {times[-1]}."
            )
        return as_leaf(times)
    # A run that was padded to the length of others repeats its last time. Samples at infinite times
    # are not taken.
    inside = (times <= t1) | jnp.isposinf(times)
    wrong = [jnp.any(~(times[1:] >= times[:-1])), ~((times[0] >= t0) & jnp.all(inside))]
    messages = [f"`{argument}` must be increasing.", f"`{argument}` must lie between t0 and t1."]
    return raise_or_collect(jnp.asarray(times), jnp.stack(wrong), messages)
