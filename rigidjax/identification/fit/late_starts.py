"""Start states that must be fitted because the sensors that determine them begin too late."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...formulations import AbstractFormulation
from ...sensors import AbstractSensor
from ..data.first_samples import first_samples
from ..data.measurements import Runs
from ..parameters import Experiment, Parameter
from ..start_change import StartSelector
from ..start_state import start_state

_POSITIONS, _RATES = ("position", "orientation"), ("velocity", "angular_velocity")


class _StartInformation(NamedTuple):
    """Bodies whose start a sensor determines, by field of `State`, and its latest first sample.

    **Attributes:** `sensor`; `bodies`; `late`, whether a first sample is too late for a start
    value; `run` and `gap`, s, of the latest first sample.
    """

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
    information = []
    for k, sensor in enumerate(runs.sensors):
        bodies = _determined_bodies(model, sensor, np.shape(runs.values[k])[2:])
        if not bodies:
            continue
        samples = first_samples(runs, k)
        late = [b for b, sample in enumerate(samples) if sample.late]
        b = max(late or [0], key=lambda b: samples[b].gap)
        information.append(
            _StartInformation(sensor, bodies, bool(late), runs.names[b], samples[b].gap)
        )
    return information


def _determined_bodies(
    model: AbstractFormulation, sensor: AbstractSensor, shape: tuple[int, ...]
) -> dict[str, set[int]]:
    """Return the bodies whose start a sample of the sensor determines, by field of `State`."""
    state = model.multibody.reference_state()
    # Everything that depends on the sample becomes NaN.
    new = sensor.start(model, state, jnp.full(shape, jnp.nan, state.position.dtype))
    bodies = {
        name: set(np.flatnonzero(np.isnan(np.asarray(getattr(new, name))).any(axis=-1)).tolist())
        for name in (*_POSITIONS, *_RATES)
    }
    return {name: rows for name, rows in bodies.items() if rows}


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
    counter = itertools.count()
    marked = jax.tree.map(lambda _: next(counter), experiment)
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
            if isinstance(mark, int) and mark in marks:
                fields.add(marks[mark])
    return fields
