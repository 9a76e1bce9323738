"""Checks of the arguments of joints."""

from typing import Any, TypeVar

import jax
import numpy as np
from jaxtyping import Array, Float

from ..annotations import Vector3
from ..by_numpy import evaluate
from ..checks import ArrayInput, Rule, as_leaf, check_all, finite_rule, float_array, vector_leaf
from .base import AbstractJoint
from .friction import Friction
from .stop import Stop

Law = TypeVar("Law")


def set_bodies(joint: Any, parent: str, child: str, name: str | None) -> None:
    """Check and set the bodies and the name of a new joint; its default consists of their names.

    **Errors:** `TypeError` for bodies that are not given by name; `ValueError` for a joint of a
    body with itself, or a name that is not a string or empty.
    """
    kind = type(joint).__name__
    check_body_names(kind, parent=parent, child=child)
    if parent == child:
        raise ValueError(
            f"`{kind}` joins two different bodies; got {parent!r} as parent and child."
        )
    joint.parent, joint.child = parent, child
    joint.name = checked_name(kind, name, _default_name(joint))


def check_body_names(kind: str, **names: Any) -> None:
    """Raise `TypeError` for an argument that is not the name of a body."""
    for argument, value in names.items():
        if not isinstance(value, str):
            raise TypeError(
                f'`{kind}({argument}=...)` takes the name of a body or "ground"; got {value!r}.'
            )


def checked_name(kind: str, name: str | None, default: str) -> str:
    """Return the name of a joint or a constraint, the default for `None`.

    **Errors:** `ValueError` for an empty name, or one that is not a string.
    """
    if name is not None and (not isinstance(name, str) or not name):
        raise ValueError(f"`{kind}(name=...)` must be a non-empty string; got {name!r}.")
    return default if name is None else name


def has_default_name(joint: AbstractJoint) -> bool:
    """Return whether a joint has its default name."""
    return joint.name == _default_name(joint)


def _default_name(joint: AbstractJoint) -> str:
    return f"{type(joint).__name__.lower()} {joint.parent}-{joint.child}"


def point_leaf(value: ArrayInput | None, argument: str) -> Any:
    """Return a checked point (3,); `None` stays `None`, to be filled in by the system."""
    return None if value is None else vector_leaf(value, argument)


def checked_axis(value: ArrayInput | None, argument: str) -> Vector3:
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


def set_laws(
    joint: Any,
    damping: ArrayInput,
    armature: ArrayInput,
    friction: Friction | None,
    stiffness: ArrayInput,
    rest: ArrayInput,
    limits: ArrayInput | None,
    stop: Stop | None,
) -> None:
    """Check and set the fields of the laws on the coordinates of a joint that is being built.

    Every constant gets an entry for each rate, also for that of a prescribed motion; a plain zero
    becomes `None`. Limits without a `stop` get the default one.

    **Errors:** `TypeError` for a law of another type; `ValueError` for a wrong shape or number of
    entries, a negative constant, a lower limit that is not below the upper one, a rest without a
    stiffness, a stop without limits, and a spring or limits on a prescribed motion.
    """
    kind, count = type(joint).__name__, joint.num_undriven_rates
    joint.damping = _rate_constants(joint, damping, "damping")
    joint.armature = _rate_constants(joint, armature, "armature")
    joint.friction = _constants_of_law(joint, friction, Friction)
    joint.stiffness = _rate_constants(joint, stiffness, "stiffness")
    joint.rest = _rate_constants(joint, rest, "rest", is_signed=True)
    if joint.rest is not None and joint.stiffness is None:
        raise ValueError(f"`{kind}(rest=...)` has no effect without `stiffness`; give a stiffness.")
    _check_undriven(joint, "stiffness")
    if limits is None:
        if stop is not None:
            raise ValueError(
                f"`{kind}(stop=...)` has no effect without `limits`; give `limits=(low, high)`."
            )
        joint.limits = joint.stop = None
        return
    name = f"{kind}(limits=...)"
    rule = (
        lambda x: (x[..., 0] < x[..., 1]).all(),
        f"`{name}` must be (low, high), with the lower limit below the upper one; infinity stands "
        "for no limit.",
    )
    shapes = {(count, 2), (2,)} if count == 1 else {(count, 2)}
    joint.limits = as_leaf(check_all(float_array(limits, name, *shapes), [rule]))
    _check_undriven(joint, "limits")
    joint.limits = joint.limits.reshape(count, 2)
    joint.stop = _constants_of_law(joint, Stop() if stop is None else stop, Stop)


def _rate_constants(
    joint: AbstractJoint, value: ArrayInput, argument: str, is_signed: bool = False
) -> Float[Array, " f"] | None:
    """Return a checked constant for each rate of a joint, `None` for a plain zero."""
    if isinstance(value, int | float) and value == 0:
        return None
    name, count = f"{type(joint).__name__}({argument}=...)", joint.num_undriven_rates
    is_scalar = not isinstance(value, list | tuple) and np.shape(value) == ()
    rules: list[Rule] = [finite_rule(name)]
    if not is_signed:
        rules.append((lambda x: (x >= 0).all(), f"`{name}` must not be negative."))
    checked = check_all(float_array(value, name, () if is_scalar else (count,)), rules)
    return _for_each_rate(checked, count)


def _for_each_rate(value: Array | np.ndarray, count: int) -> Float[Array, " f"]:
    return as_leaf(evaluate(_broadcast, (count,), is_linear=True)(value))


def _broadcast(shape: tuple[int, ...], xp: Any, value: Array | np.ndarray) -> Array:
    return xp.broadcast_to(value, shape)


def _constants_of_law(joint: AbstractJoint, law: Law | None, kind: type[Law]) -> Law | None:
    """Return a law with an entry for each rate of a joint in every constant."""
    argument, count = kind.__name__.lower(), joint.num_undriven_rates
    name = f"{type(joint).__name__}({argument}=...)"
    if law is None:
        return None
    if not isinstance(law, kind):
        raise TypeError(
            f"`{name}` takes an object, as in `{argument}=rj.{kind.__name__}(...)`; got {law!r}."
        )
    for leaf in jax.tree.leaves(law, is_leaf=callable):
        if not callable(leaf) and leaf.shape not in ((), (count,)):
            raise ValueError(
                f"The constants of `{name}` must be scalars or have shape ({count},), an entry for "
                f"each coordinate of the joint; got {leaf.shape}."
            )
    return jax.tree.map(
        lambda leaf: leaf if callable(leaf) else _for_each_rate(leaf, count), law, is_leaf=callable
    )


def _check_undriven(joint: AbstractJoint, argument: str) -> None:
    if getattr(joint, argument) is not None and joint.is_driven:
        raise ValueError(
            f"`{type(joint).__name__}({argument}=...)` acts on a free coordinate; that of "
            f"{joint.name!r} is prescribed by `motion`. Leave one of them out."
        )
