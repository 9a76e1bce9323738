"""The start state of a run as a fitted parameter."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ...bodies.fixed_point import FixedPointBody
from ...formulations import AbstractFormulation
from ...formulations.choice import ModelInput, choose_formulation
from ...formulations.leaves import LeafMark, mark_leaves
from ...initial.local_coordinates import independent_rates
from ...joints import AbstractJoint
from ...sensors import AbstractSensor
from ...state import State
from ..data.measurements import Runs
from ..experiment.parameters import Experiment, Parameter
from ..experiment.priors import AbstractPrior
from ..experiment.start_change import StartSelector
from .first_samples import first_samples

_POSITIONS, _RATES = ("position", "orientation"), ("velocity", "angular_velocity")


def start_state(
    model: ModelInput,
    state0: State | None = None,
    *,
    positions: bool = True,
    rates: bool = True,
    per_run: bool = True,
    name: str = "start",
    prior: AbstractPrior | None = None,
) -> Parameter:
    """Return the start state as a parameter, in coordinates that satisfy all joints.

    Its components are changes of the start state that `identify` is given: of the independent
    coordinates (rad or m), and of their rates (rad/s or m/s). Zero is the given start. For a joint
    of the spanning tree these are its coordinates (small rotations about the joint axes for a joint
    with several of them); for a body that is attached to no joint, its position in space
    components, its rotation about body axes, velocity and angular velocity. In a closed loop as
    many coordinates are fitted as there are degrees of freedom; the others follow.

    **Arguments:**

    - `model`: the model that is fitted.
    - `state0`: a state at which the independent coordinates of closed loops are chosen; the
      reference state if left out. It must not be singular.
    - `positions`, `rates`: whether this part of the start is fitted; the other part keeps its given
      value.
    - `per_run`: whether every run has a start of its own.
    - `name`: for reports.
    - `prior`: knowledge of the changes besides the data, such as `GaussianPrior(0.0, std)` for a
      start that was set up with these standard deviations.

    **Returns:** a `Parameter`; the fitted states are in `Fit.states`.
    **Raises:** `TypeError` if `model` is none; `ValueError` if there is nothing to
    fit.
    **Source:** Lang (11): the null space of the joints gives the directions.
    """
    model = choose_formulation(model, "start_state")
    if not (positions or rates):
        raise ValueError("`start_state` needs `positions=True`, `rates=True` or both.")
    state0 = model.multibody.reference_state() if state0 is None else state0
    independent = independent_rates(model, model.check_state(state0))
    if not independent:
        raise ValueError(
            "`start_state(model)`: the joints of this system leave no degree of freedom, so that "
            "there is no start to fit."
        )
    names = _names(model)
    entries = [names[i] for i in independent]
    labels, units = [], []
    for used, column in ((positions, 0), (rates, 1)):
        if used:
            labels += [f"{name}: change of {entry[column]}" for entry in entries]
            units += [entry[2] + ("/s" if column else "") for entry in entries]
    return Parameter(
        name,
        StartSelector(independent, len(names), positions, rates),
        per_run=per_run,
        unit=units,
        labels=labels,
        size=1.0,
        prior=prior,
    )


def _names(model: AbstractFormulation) -> list[tuple[str, str, str]]:
    """Return names of position and rate, and the unit of the position, per generalised velocity."""
    system = model.system
    if isinstance(system, FixedPointBody):
        return [(f"phi{k}", f"omega{k}", "rad") for k in (1, 2, 3)]
    entries = []
    for body, index in zip(system.bodies, system.topology.joints, strict=True):
        if index is None:
            suffix = f" of {body.name}"
            entries += [(f"x{k}{suffix}", f"v{k}{suffix}", "m") for k in (1, 2, 3)]
            entries += [(f"phi{k}{suffix}", f"omega{k}{suffix}", "rad") for k in (1, 2, 3)]
        else:
            entries += _joint_names(system.joints[index])
    return entries


def _joint_names(joint: AbstractJoint) -> list[tuple[str, str, str]]:
    lengths, angles = joint.num_translations, joint.num_rates - joint.num_translations
    entries = []
    for count, kind, unit in ((lengths, "length", "m"), (angles, "angle", "rad")):
        for k in range(count):
            index = f" {k + 1}" if count > 1 else ""
            label = f"{kind}{index} of {joint.name}"
            entries.append((label, f"rate of {label}", unit))
    return entries


class _StartInformation(NamedTuple):
    """Bodies whose start a sensor determines, by field of `State`; whether a first sample is too
    late for a start value; run and gap, s, of the latest one."""

    sensor: AbstractSensor
    bodies: dict[str, set[int]]
    late: bool
    run: str
    gap: float


def add_late_start_parameter(
    model: AbstractFormulation, all_runs: Sequence[Runs], parameters: tuple[Parameter, ...]
) -> tuple[tuple[Parameter, ...], list[str]]:
    """Add the start state to the parameters if late first samples cannot determine it.

    This applies to runs without a given start. A sample is late if the reading may change by more
    than its noise between the start of the run and the sample. Then all of the start that sensors
    determine is fitted, except the components that other parameters fit.

    **Returns:** the parameters, and notes that name the sensors.
    **Errors:** `ValueError` naming the sensor, if the start cannot be fitted.
    """
    information = [entry for runs in all_runs for entry in _start_information(model, runs)]
    fitted = fitted_start_fields(model, all_runs[0], parameters)
    late = [entry for entry in information if entry.late and not set(entry.bodies) <= fitted]
    if not late:
        return parameters, []
    names = sorted({entry.sensor.name for entry in late})
    latest = max(late, key=lambda entry: entry.gap)
    reason = (
        f"The first sample of the {', '.join(names)} is not at the start of the run (in the run "
        f"{latest.run!r} it is {latest.gap:.3g} s away), and the reading changes by more than its "
        "noise in that time"
    )
    remedy = "Give `state0`, or fit the whole start with `start_state(model)`."
    if any(isinstance(p.where, StartSelector) for p in parameters):
        raise ValueError(
            f"{reason}; the part of the start that it determines is not fitted. {remedy}"
        )
    fields = {field for entry in information for field in entry.bodies} - fitted
    bodies = set().union(*(rows for entry in information for rows in entry.bodies.values()))
    name = "start" if "start" not in [p.name for p in parameters] else "late start"
    try:
        start = start_state(
            model,
            positions=not fields.isdisjoint(_POSITIONS),
            rates=not fields <= set(_POSITIONS),
            name=name,
        )
    except ValueError as error:
        raise ValueError(f"{reason}. {remedy} It cannot be fitted here: {error}") from error
    note = f"{reason}: the start is fitted too, as {name!r}."
    return (*parameters, _restrict_start(model, start, bodies)), [note]


def _start_information(model: AbstractFormulation, runs: Runs) -> list[_StartInformation]:
    information, state = [], model.multibody.reference_state()
    for k, sensor in enumerate(runs.sensors):
        # Everything that depends on the sample becomes NaN.
        sample = jnp.full(np.shape(runs.values[k])[2:], jnp.nan, state.position.dtype)
        new, bodies = sensor.start(model, state, sample), {}
        for name in (*_POSITIONS, *_RATES):
            rows = np.flatnonzero(np.isnan(np.asarray(getattr(new, name))).any(axis=-1))
            if rows.size:
                bodies[name] = set(rows.tolist())
        if not bodies:
            continue
        samples = first_samples(runs, k)
        late = [b for b, sample in enumerate(samples) if sample.late]
        b = max(late or [0], key=lambda b: samples[b].gap)
        information.append(
            _StartInformation(sensor, bodies, bool(late), runs.names[b], samples[b].gap)
        )
    return information


def _restrict_start(model: AbstractFormulation, start: Parameter, bodies: set[int]) -> Parameter:
    """Remove the components of a start parameter that no sensor determines.

    For a body without joint these are its position and velocity, and its rotation and angular
    velocity unless it is in `bodies`.
    """
    where: Any = start.where
    system = model.multibody
    wanted, first = set(), 0
    for body, count in enumerate(system.rates_of_bodies):
        is_free = system.topology.joints[body] is None
        rotations = range(first + count - 3, first + count) if body in bodies else ()
        wanted |= set(rotations) if is_free else set(range(first, first + count))
        first += count
    positions_kept = [k for k, i in enumerate(where.independent) if i in wanted]
    size = len(where.independent)
    entries = [
        k + part * size for part in range(where.positions + where.rates) for k in positions_kept
    ]
    independent = tuple(where.independent[k] for k in positions_kept)
    assert start.labels is not None
    return dataclasses.replace(
        start,
        where=dataclasses.replace(where, independent=independent),
        labels=[start.labels[k] for k in entries],
        unit=[start.unit[k] for k in entries],
    )


def fitted_start_fields(
    model: AbstractFormulation, runs: Runs, parameters: Sequence[Parameter]
) -> set[str]:
    """Return the fields of the start state that the parameters fit."""
    experiment = Experiment(model, model.multibody.reference_state(), runs.sensors)
    _, marked = mark_leaves(experiment)
    marks = {getattr(marked.state0, name): name for name in (*_POSITIONS, *_RATES)}
    fields: set[str] = set()
    for p in parameters:
        if isinstance(p.where, StartSelector):
            fields |= set(_POSITIONS) if p.where.positions else set()
            fields |= set(_RATES) if p.where.rates else set()
            continue
        for where in (p.where, *p.tied):
            try:
                mark = where(marked)
            except (AttributeError, IndexError, KeyError, TypeError):
                continue  # The check of the parameters reports it by name.
            if isinstance(mark, LeafMark) and mark in marks:
                fields.add(marks[mark])
    return fields
