"""Parameters that are given by the name of an array, such as `rj.Parameter("hinge.damping")`."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from ...checks import did_you_mean
from ...formulations import AbstractFormulation
from ...formulations.leaf_names import LeafPath, find_leaf
from ...formulations.leaves import materialise_leaves
from ...mechanics import has_joints
from ...sensors import AbstractSensor
from ..experiment.leaf_kinds import transform_of, unit_of
from ..experiment.parameters import Experiment, LeafName, Parameter
from .parameter import start_state


def find_named_parameters(
    parameters: Sequence[Parameter],
    model: AbstractFormulation,
    sensors: Sequence[AbstractSensor] = (),
) -> tuple[Parameter, ...]:
    """Return the parameters with functions, units and ranges for those given by a name.

    **Errors:** `ValueError` for a name without an array, with the nearest ones.
    """
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
