"""Checks of the arguments of joints."""

from typing import Any, TypeVar

import jax
import numpy as np
from jaxtyping import Array, Float

from ..by_numpy import evaluate
from ..checks import (
    ArrayInput,
    as_leaf,
    check_all,
    finite_leaf,
    finite_rule,
    float_array,
    vector_leaf,
)
from .base import AbstractJoint
from .relative_pose import Vector
from .stop import Stop

Law = TypeVar("Law")


def checked_joint_name(kind: str, parent: str, child: str, name: str | None) -> str:
    """Return the joint's name, made of those of its bodies if it is `None`.

    **Errors:** `TypeError` for bodies that are not given by name; `ValueError` for a joint of a
    body with itself, or a name that is not a string or empty.
    """
    for argument, value in (("parent", parent), ("child", child)):
        if not isinstance(value, str):
            raise TypeError(
                f'`{kind}({argument}=...)` takes the name of a body or "ground"; got {value!r}.'
            )
    if parent == child:
        raise ValueError(
            f"`{kind}` joins two different bodies; got {parent!r} as parent and child."
        )
    if name is None:
        return _default_name(kind, parent, child)
    if not isinstance(name, str) or not name:
        raise ValueError(f"`{kind}(name=...)` must be a non-empty string; got {name!r}.")
    return name


def has_default_name(joint: AbstractJoint) -> bool:
    """Return whether a joint has its default name."""
    return joint.name == _default_name(type(joint).__name__, joint.parent, joint.child)


def _default_name(kind: str, parent: str, child: str) -> str:
    return f"{kind.lower()} {parent}-{child}"


def point_leaf(value: ArrayInput | None, argument: str) -> Any:
    """Return a checked point (3,); `None` stays `None`, to be filled in by the system."""
    return None if value is None else vector_leaf(value, argument)


def checked_axis(value: ArrayInput | None, argument: str) -> Vector:
    """Return a checked axis (3,), space components, of any length but zero.

    **Errors:** `TypeError` for a missing axis or a function; `ValueError` for a wrong shape or a
    zero axis.
    """
    if value is None or callable(value):
        got = "is missing" if value is None else f"is a function, {value!r}"
        raise TypeError(
            f"`{argument}` {got}: it must be a direction, (3,), space components. The arguments "
            "are parent, child, point and then the direction (`Prismatic` has its axis before its "
            "point); give them by name, as in `axis=(0, 0, 1)`."
        )
    rule = (
        # Compiled code flushes numbers below the smallest normal number to zero.
        lambda axis: abs(axis).max() >= np.finfo(axis.dtype).tiny,
        f"`{argument}` must not be zero: it is the direction of an axis, space components.",
    )
    return as_leaf(check_all(float_array(value, argument, (3,)), [finite_rule(argument), rule]))


def rate_constants(
    joint: AbstractJoint, value: ArrayInput, argument: str
) -> Float[Array, " f"] | None:
    """Return a checked non-negative constant for each rate of a joint; `None` for a plain zero.

    The rate of a prescribed motion counts as well.

    **Errors:** `ValueError` for a wrong shape or a negative number.
    """
    kind = type(joint).__name__
    if isinstance(value, int | float) and value == 0:
        return None
    name, count = f"{kind}({argument}=...)", joint.num_undriven_rates
    rule = (lambda x: (x >= 0).all(), f"`{name}` must not be negative.")
    checked = check_all(float_array(value, name, *_shapes(value, count)), [finite_rule(name), rule])
    return _for_each_rate(checked, count)


def _shapes(value: ArrayInput, count: int) -> tuple[tuple[int, ...]]:
    """Return the shape that constants of a joint with `count` rates must have."""
    is_scalar = not isinstance(value, list | tuple) and np.shape(value) == ()
    return ((),) if is_scalar else ((count,),)


def _for_each_rate(value: Array | np.ndarray, count: int) -> Float[Array, " f"]:
    return as_leaf(evaluate(_broadcast, (count,), is_linear=True)(value))


def _broadcast(shape: tuple[int, ...], xp: Any, value: Array | np.ndarray) -> Array:
    return xp.broadcast_to(value, shape)


def constants_of_law(
    joint: AbstractJoint, law: Law | None, kind: type[Law], argument: str
) -> Law | None:
    """Return a law, such as `Friction`, with an entry for each rate of a joint in every constant.

    **Errors:** `TypeError` for another object than a `kind`; `ValueError` for a constant with
    another number of entries.
    """
    name, count = f"{type(joint).__name__}({argument}=...)", joint.num_undriven_rates
    if law is None:
        return None
    if not isinstance(law, kind):
        raise TypeError(
            f"`{name}` takes an object, as in `{argument}=rj.{kind.__name__}(...)`; got {law!r}."
        )
    for leaf in jax.tree.leaves(law):
        if leaf.shape not in ((), (count,)):
            raise ValueError(
                f"The constants of `{name}` must be scalars or have shape ({count},), an entry for "
                f"each coordinate of the joint; got {leaf.shape}."
            )
    return jax.tree.map(lambda leaf: _for_each_rate(leaf, count), law)


def checked_spring(
    joint: AbstractJoint, stiffness: ArrayInput, rest: ArrayInput
) -> tuple[Float[Array, " f"] | None, Float[Array, " f"] | None]:
    """Return stiffness and unloaded coordinate of each rate, `None` for plain zeros.

    **Errors:** `ValueError` for a wrong shape, a negative stiffness, a rest without a stiffness,
    or a prescribed motion.
    """
    kind, count = type(joint).__name__, joint.num_undriven_rates
    stiffnesses = rate_constants(joint, stiffness, "stiffness")
    if isinstance(rest, int | float) and rest == 0:
        rests = None
    else:
        name = f"{kind}(rest=...)"
        rests = _for_each_rate(finite_leaf(rest, name, *_shapes(rest, count)), count)
        if stiffnesses is None:
            raise ValueError(f"`{name}` has no effect without `stiffness`; give a stiffness.")
    _check_undriven(joint, stiffnesses, "stiffness")
    return stiffnesses, rests


def checked_limits(
    joint: AbstractJoint, limits: ArrayInput | None, stop: Stop | None
) -> tuple[Float[Array, "f 2"] | None, Stop | None]:
    """Return the limits of each coordinate and the stops there, by default `Stop()`.

    **Errors:** `ValueError` for a wrong shape, a lower limit that is not below the upper one, a
    stop without limits, or a prescribed motion; `TypeError` for an object other than a `Stop`.
    """
    kind, count = type(joint).__name__, joint.num_undriven_rates
    name = f"{kind}(limits=...)"
    if limits is None:
        if stop is not None:
            raise ValueError(
                f"`{kind}(stop=...)` has no effect without `limits`; give `limits=(low, high)`."
            )
        return None, None
    shapes = {(count, 2), (2,)} if count == 1 else {(count, 2)}
    rule = (
        lambda x: (x[..., 0] < x[..., 1]).all(),
        f"`{name}` must be (low, high), with the lower limit below the upper one; infinity stands "
        "for no limit.",
    )
    checked = as_leaf(check_all(float_array(limits, name, *shapes), [rule]))
    _check_undriven(joint, checked, "limits")
    stops = constants_of_law(joint, Stop() if stop is None else stop, Stop, "stop")
    return checked.reshape(count, 2), stops


def _check_undriven(joint: AbstractJoint, value: Any, argument: str) -> None:
    if value is not None and joint.is_driven:
        raise ValueError(
            f"`{type(joint).__name__}({argument}=...)` acts on a free coordinate; that of "
            f"{joint.name!r} is prescribed by `motion`. Leave one of them out."
        )
