"""Units and ranges of the arrays of a model, by the class of the part and the field."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...bodies import Body, FixedPointBody
from ...forces import Cable, DCMotor, Drag, Gravity, Motor, Spring, TorsionSpring
from ...joints import AbstractJoint
from ...sensors import AbstractSensor
from ..transforms import (
    AbstractTransform,
    Bounded,
    InertiaTensor,
    Orientation,
    Positive,
    PrincipalInertia,
    Unconstrained,
)

# Units of fields; a pair is that of a coordinate that is a length and of one that is an angle.
_OF_JOINTS = {
    "damping": ("N s/m", "N m s/rad"), "armature": ("kg", "kg m^2"),
    "stiffness": ("N/m", "N m/rad"), "rest": ("m", "rad"), "limits": ("m", "rad"),
    "point": "m", "parent_point": "m", "child_point": "m", "pitch": "m",
    "friction.coulomb": ("N", "N m"), "friction.viscous": ("N s/m", "N m s/rad"),
    "friction.velocity": ("m/s", "rad/s"), "friction.stribeck.static": ("N", "N m"),
    "friction.stribeck.velocity": ("m/s", "rad/s"),
}  # fmt: skip
_UNITS: Mapping[type, Mapping[str, Any]] = {
    Body: {
        "mass": "kg", "inertia": "kg m^2", "position": "m", "velocity": "m/s",
        "angular_velocity": "rad/s",
    },
    FixedPointBody: {"inertia": "kg m^2"},
    AbstractJoint: _OF_JOINTS,
    Gravity: {"vector": "m/s^2"},
    Spring: {"stiffness": "N/m", "damping": "N s/m", "length": "m", "a_point": "m", "b_point": "m"},
    Cable: {"stiffness": "N/m", "damping": "N s/m", "length": "m"},
    TorsionSpring: {"stiffness": "N m/rad", "damping": "N m s/rad", "angle": "rad"},
    DCMotor: {
        "resistance": "ohm", "inductance": "H", "torque_constant": "N m/A", "back_emf": "V s/rad",
        "current_limit": "A", "speed_limit": "rad/s", "initial": "A",
    },
    Motor: {}, Drag: {},
    AbstractSensor: {"point": "m", "misalignment": "rad", "delay": "s", "floor": "", "scale": ""},
}  # fmt: skip
_POSITIVE = {"mass", "resistance", "inductance", "natural_frequency", "time_constant", "velocity"}
_NOT_NEGATIVE = {
    "damping", "armature", "stiffness", "coulomb", "viscous", "static", "length", "damping_ratio",
    "dissipation",
}  # fmt: skip


def unit_of(owner: Any, field: str, leaf: Any, model: Any) -> str | tuple[str, ...]:
    """Return the unit of an array, or of each of its elements; empty where it is not known.

    **Arguments:** `owner`, a body, joint, force or sensor; `field`, the path of fields inside it.
    """
    if field == "bias" and isinstance(owner, AbstractSensor):
        return owner.unit_in(model)
    unit = next((u.get(field, "") for kind, u in _UNITS.items() if isinstance(owner, kind)), "")
    if isinstance(unit, str) or not isinstance(owner, AbstractJoint):
        return str(unit)
    count = int(np.size(leaf)) // (2 if field == "limits" else 1)
    lengths = owner.num_translations if count > 1 or owner.num_undriven_rates == count else 0
    units = [unit[0]] * lengths + [unit[1]] * (count - lengths)
    each = np.repeat(units, int(np.size(leaf)) // count)
    return str(each[0]) if len(set(each)) == 1 else tuple(map(str, each))


def transform_of(owner: Any, field: str, leaf: Any) -> AbstractTransform:
    """Return the transformation that keeps an array in its range: masses positive, inertias
    physical, coefficients of damping, stiffness and friction not negative."""
    last = field.split(".")[-1]
    if isinstance(owner, Body | FixedPointBody):
        if last == "inertia":
            return PrincipalInertia() if np.shape(leaf) == (3,) else InertiaTensor()
        if last == "orientation":
            return Orientation()
        return Positive() if last == "mass" else Unconstrained()
    if last in _POSITIVE:
        return Positive()
    return Bounded(0.0, np.inf) if last in _NOT_NEGATIVE else Unconstrained()
