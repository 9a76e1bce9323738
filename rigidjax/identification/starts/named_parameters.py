"""Parameters that are given by the name of an array, such as `rj.Parameter("hinge.damping")`."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...bodies import Body, FixedPointBody
from ...checks import did_you_mean
from ...forces import AbstractActuator, Cable, DCMotor, Gravity, Spring, TorsionSpring
from ...formulations import AbstractFormulation
from ...formulations.leaves import LeafPath, find_leaf, materialise_leaves
from ...joints import AbstractJoint
from ...mechanics import has_joints
from ...sensors import AbstractSensor
from ..experiment.parameters import Experiment, LeafName, Parameter
from ..transforms import (
    AbstractTransform,
    Bounded,
    InertiaTensor,
    Orientation,
    Positive,
    PrincipalInertia,
    Unconstrained,
)
from .parameter import start_state

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
    AbstractActuator: {
        "time_constant": "s", "filter_time": "s", "tracking_time": "s",
        "natural_frequency": "rad/s",
    },
    AbstractSensor: {"point": "m", "misalignment": "rad", "delay": "s", "skew": "ppm"},
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


def find_named_parameters(
    parameters: Sequence[Parameter],
    model: AbstractFormulation,
    sensors: Sequence[AbstractSensor] = (),
) -> tuple[Parameter, ...]:
    """Return the parameters with functions, units and ranges for those given by a name.

    **Errors:** `ValueError` for a name without an array, with the nearest ones.
    """
    if not any(isinstance(p.where, LeafName) for p in parameters):
        return tuple(parameters)
    experiment = Experiment(model, model.multibody.reference_state(), tuple(sensors))
    return tuple(_find(p, experiment) for p in parameters)


def _find(parameter: Parameter, experiment: Experiment) -> Parameter:
    """Return the parameter; resolve its leaf, range and unit if it is given by a name."""
    named = parameter.where
    if not isinstance(named, LeafName):
        return parameter
    if named.name.startswith("start."):
        return _find_start(parameter, named, experiment.model)
    given = f"`Parameter({parameter.name!r})`"
    where = find_leaf(named.name, experiment, given)
    tied = [
        find_leaf(w.name, experiment, given) if isinstance(w, LeafName) else w
        for w in parameter.tied
    ]
    experiment = materialise_leaves(experiment, [where])
    # The part is the last tuple item on the path, or else the `FixedPointBody`.
    part = max((k + 1 for k, step in enumerate(where.steps) if isinstance(step, int)), default=2)
    owner = LeafPath(where.steps[:part])(experiment)
    field, leaf = ".".join(map(str, where.steps[part:])), where(experiment)
    guess = transform_of(owner, field, leaf)
    return dataclasses.replace(
        parameter,
        where=where,
        tied=tuple(tied),
        transform=guess if named.has_default_transform else parameter.transform,
        unit=parameter.unit or unit_of(owner, field, leaf, experiment.model),
    )


def _find_start(parameter: Parameter, named: LeafName, model: AbstractFormulation) -> Parameter:
    """Return the start of a joint or of a free body, or its rates, as a parameter."""
    name = named.name.removeprefix("start.")
    is_rate = name.endswith(".rate")
    name = name.removesuffix(".rate")
    given = f"`Parameter({parameter.name!r})`"
    if parameter.tied or parameter.labels or parameter.unit or not named.has_default_transform:
        raise ValueError(
            f"{given}: parts of the start have their own units, labels and coordinates, and cannot "
            "be tied; leave `tied`, `transform`, `unit` and `labels` out."
        )
    places, first = {}, 0
    system = model.multibody
    for body, count in enumerate(system.rates_of_bodies):
        joint = system.topology.joints[body] if has_joints(model.system) else None
        key = system.bodies[body].name if joint is None else system.joints[joint].name
        places[key] = tuple(range(first, first + count))
        first += count
    if not places.get(name):
        known = [key for key, entries in places.items() if entries]
        raise ValueError(
            f"{given}: the start has no coordinate {name!r}; it has those of the tree joints "
            f"and free bodies {known}.{did_you_mean(name, known)}"
        )
    start = start_state(
        model, positions=not is_rate, rates=is_rate, name=parameter.name, prior=parameter.prior
    )
    where: Any = start.where
    assert start.labels is not None
    if dependent := sorted(set(places[name]) - set(where.independent)):
        raise ValueError(
            f"{given}: a loop determines the start of {name!r} from that of other joints "
            f"(coordinate {dependent[0]} of the tree). The independent ones are {start.labels}."
        )
    kept = [where.independent.index(i) for i in places[name]]
    return dataclasses.replace(
        start,
        where=dataclasses.replace(where, independent=places[name]),
        labels=[parameter.name] if len(kept) == 1 else [start.labels[k] for k in kept],
        unit=[start.unit[k] for k in kept],
        per_run=parameter.per_run or named.has_default_run,
        start=parameter.start,
        size=parameter.size or start.size,
    )
