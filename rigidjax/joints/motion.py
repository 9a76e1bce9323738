"""Functions of time that prescribe the coordinate of a joint."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ..annotations import Scalar
from ..signals.laws import as_law, check_shapes, law_result
from ..signals.signal import check_motion_signals


def checked_motion(kind: str, motion: Any) -> Any:
    """Return a function of time as a part of a joint; `None` stays `None`.

    **Errors:** `TypeError` for anything else; `ValueError` if the function does not return a
    number, or for a signal without rates.
    """
    if motion is None:
        return None
    if not callable(motion):
        raise TypeError(
            f"`{kind}(motion=...)` must be a function of time that returns the joint coordinate, "
            f"such as `lambda t: 2 * t`; got {motion!r}.{_argument_hint(kind, motion)}"
        )
    check_motion_signals(kind, motion)
    law = as_law(motion, f"{kind}(motion=...)")
    check_shapes(lambda t: motion_at(kind, law, t), ())
    return law


def _argument_hint(kind: str, motion: Any) -> str:
    """Return a sentence on the argument that was probably meant instead of a motion."""
    if isinstance(motion, str):
        return f" Give a name by keyword, `name={motion!r}`."
    if kind == "Prismatic":
        return (
            " `Prismatic(parent, child, axis, motion, point)` has its axis before its point, "
            "`Revolute(parent, child, point, axis, motion)` after it: give `axis=` and `point=` by "
            "name."
        )
    return ""


def motion_at(kind: str, motion: Callable, t: Scalar) -> Scalar:
    """Return the coordinate that `motion` prescribes; `ValueError` if it is not a number."""
    subject = f"The function `{kind}(motion=...)` must return a number, shape ()"
    return law_result(motion(t), (), subject).astype(jnp.result_type(t, float))


def motion_rate(kind: str, motion: Callable, t: Scalar) -> Scalar:
    """Return the time derivative of the coordinate that `motion` prescribes."""
    t = jnp.asarray(t, jnp.result_type(t, float))
    return jax.jvp(lambda t: motion_at(kind, motion, t), (t,), (jnp.ones_like(t),))[1]


def motion_acceleration(kind: str, motion: Callable, t: Scalar) -> Scalar:
    """Return the second time derivative of the coordinate that `motion` prescribes."""
    t = jnp.asarray(t, jnp.result_type(t, float))
    return jax.jvp(lambda t: motion_rate(kind, motion, t), (t,), (jnp.ones_like(t),))[1]
