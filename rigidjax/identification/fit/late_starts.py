"""Starts that no sample tells, because the sensors that tell it begin later: these are fitted."""

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
from ..start_change import StartOf
from ..start_state import start_state

_POSITIONS, _RATES = ("position", "orientation"), ("velocity", "angular_velocity")


class _Told(NamedTuple):
    """What a sensor tells of the start state: bodies by field; and its latest first sample."""

    sensor: AbstractSensor
    bodies: dict[str, set[int]]
    late: bool
    run: str
    gap: float


def with_fitted_start(
    model: AbstractFormulation, all_runs: Sequence[Runs], parameters: tuple[Parameter, ...]
) -> tuple[tuple[Parameter, ...], list[str]]:
    """Add the start state to the parameters where late samples cannot tell it.

    For runs without a given start. A sample is late if the reading may have changed by more than
    its noise between the start of the run and the sample. Then all of the start that sensors tell
    is fitted, except for the components that a parameter fits already.

    **Returns:** the parameters, and notes that name the sensors.
    **Errors:** `ValueError` naming the sensor, where the start cannot be fitted.
    """
    told = [one for runs in all_runs for one in _told_by_sensors(model, runs)]
    fitted = _fitted_fields(model, all_runs[0], parameters)
    late = [one for one in told if one.late and not set(one.bodies) <= fitted]
    if not late:
        return parameters, []
    names = sorted({one.sensor.name for one in late})
    latest = max(late, key=lambda one: one.gap)
    fact = (
        f"The first sample of the {', '.join(names)} is not at the start of the run (in the run "
        f"{latest.run!r} it is {latest.gap:.3g} s away), and the reading changes by more than its "
        "noise in that time"
    )
    remedy = "Give `state0`, or fit the whole start with `start_state(model)`."
    if any(isinstance(p.where, StartOf) for p in parameters):
        raise ValueError(f"{fact}; the part of the start that it tells is not fitted. {remedy}")
    fields = {field for one in told for field in one.bodies} - fitted
    bodies = set().union(*(rows for one in told for rows in one.bodies.values()))
    name = "start" if "start" not in [p.name for p in parameters] else "late start"
    try:
        start = start_state(
            model,
            positions=not fields.isdisjoint(_POSITIONS),
            rates=not fields <= set(_POSITIONS),
            name=name,
        )
    except ValueError as error:
        raise ValueError(f"{fact}. {remedy} It cannot be fitted by itself: {error}") from error
    note = f"{fact}: the start is fitted too, as {name!r}."
    return (*parameters, _restricted(model, start, bodies)), [note]


def _told_by_sensors(model: AbstractFormulation, runs: Runs) -> list[_Told]:
    out = []
    for k, sensor in enumerate(runs.sensors):
        bodies = _bodies_told(model, sensor, np.shape(runs.values[k])[2:])
        if not bodies:
            continue
        samples = first_samples(runs, k)
        late = [b for b, sample in enumerate(samples) if sample.late]
        b = max(late or [0], key=lambda b: samples[b].gap)
        out.append(_Told(sensor, bodies, bool(late), runs.names[b], samples[b].gap))
    return out


def _bodies_told(
    model: AbstractFormulation, sensor: AbstractSensor, shape: tuple[int, ...]
) -> dict[str, set[int]]:
    """Return the bodies whose start a sample of the sensor tells, by the field of a `State`."""
    state = model.multibody.reference_state()
    # What depends on the sample is not finite.
    new = sensor.start(model, state, jnp.full(shape, jnp.nan, state.position.dtype))
    bodies = {
        name: set(np.flatnonzero(np.isnan(np.asarray(getattr(new, name))).any(axis=-1)).tolist())
        for name in (*_POSITIONS, *_RATES)
    }
    return {name: rows for name, rows in bodies.items() if rows}


def _restricted(model: AbstractFormulation, start: Parameter, bodies: set[int]) -> Parameter:
    """Return the parameter of a start without what no sensor tells of bodies on no joint.

    These are their places and velocities, and their turns where `bodies` has not their number.
    """
    where: Any = start.where
    system = model.multibody
    kept, begin = set(), 0
    for body, count in enumerate(system.rates_of_bodies):
        free = system.topology.joints[body] is None
        turns = range(begin + count - 3, begin + count) if body in bodies else ()
        kept |= set(turns) if free else set(range(begin, begin + count))
        begin += count
    chosen = [k for k, i in enumerate(where.independent) if i in kept]
    size = len(where.independent)
    entries = [k + part * size for part in range(where.positions + where.rates) for k in chosen]
    independent = tuple(where.independent[k] for k in chosen)
    assert start.labels is not None
    return dataclasses.replace(
        start,
        where=dataclasses.replace(where, independent=independent),
        labels=[start.labels[k] for k in entries],
        unit=[start.unit[k] for k in entries],
    )


def _fitted_fields(
    model: AbstractFormulation, runs: Runs, parameters: Sequence[Parameter]
) -> set[str]:
    """Return the fields of the start state that the parameters fit."""
    experiment = Experiment(model, model.multibody.reference_state(), runs.sensors)
    numbers = itertools.count()
    marked = jax.tree.map(lambda _: next(numbers), experiment)
    marks = {getattr(marked.state0, name): name for name in (*_POSITIONS, *_RATES)}
    found: set[str] = set()
    for p in parameters:
        if isinstance(p.where, StartOf):
            found |= set(_POSITIONS) if p.where.positions else set()
            found |= set(_RATES) if p.where.rates else set()
            continue
        for where in (p.where, *p.tied):
            try:
                mark = where(marked)
            except (AttributeError, IndexError, KeyError, TypeError):
                continue  # Reported by name where the parameters are checked.
            if isinstance(mark, int) and mark in marks:
                found.add(marks[mark])
    return found
