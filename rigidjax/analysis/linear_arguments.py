"""Arguments of `linearize`: independent coordinates, inputs and outputs."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.core import eval_context
from jaxtyping import Array, Float

from ..checks import common_dtype, find_duplicates, finite_leaf, is_traced
from ..formulations import AbstractNullSpace
from ..formulations.actuation import actuated_rates
from ..formulations.binding import actuator_state_names, bind_inputs
from ..initial.local_coordinates import independent_columns, loop_rows, selection
from ..joints.replacing import replace_fields
from ..sensors import AbstractSensor
from ..signals.controllers import SampledController, is_source
from ..signals.inputs import Input, check_names, inputs_of, with_inputs
from ..signals.signal import Signal
from ..state import State
from .local_motion import LocalCoordinates

_INPUTS = "linearize(inputs=...)"


class IndependentRates(NamedTuple):
    """Indices of the generalised velocities that are local coordinates, and all their names."""

    positions: tuple[int, ...]
    velocities: tuple[int, ...]

    def coordinates(self, count: int, dtype: Any) -> LocalCoordinates:
        """Return the selection of local coordinates out of `count` generalised velocities."""
        positions = selection(self.positions, count, dtype)
        velocities = selection(self.velocities, count, dtype)
        return LocalCoordinates(positions, velocities, positions.free.T, velocities.free.T)

    def names(self, model: AbstractNullSpace) -> tuple[str, ...]:
        """Return the names of the coordinates, then those of their rates."""
        system = model.multibody
        of_joint = [
            j is not None
            for j, count in zip(system.topology.joints, system.rates_of_bodies, strict=True)
            for _ in range(count)
        ]
        positions, velocities = [], []
        for label, joined in zip(model.rate_labels, of_joint, strict=True):
            if joined:
                positions.append(label)
                velocities.append(f"{label}.rate")
                continue
            start, kind, number = label[:-2], label[-2], label[-1]
            positions.append(f"{start}{number}" if kind == "v" else f"{start}phi{number}")
            velocities.append(label)
        chosen = [positions[k] for k in self.positions]
        chosen += [velocities[k] for k in self.velocities]
        return (*chosen, *actuator_state_names(system.forces))


class LinearModelRequest(NamedTuple):
    """Coordinates, inputs and sensors of a linear model, and the names of its columns and rows.

    `others` are inputs that are bound to signals and policies.
    """

    chosen: IndependentRates
    targets: dict[str, Input]
    others: dict[str, Any]
    sensors: tuple[AbstractSensor, ...]
    names: tuple[tuple[str, ...], tuple[str, ...]]

    def bind(self, model: AbstractNullSpace, u: Float[Array, " m"]) -> AbstractNullSpace:
        """Return the model at values of its inputs."""
        ends = np.cumsum([target.size or 1 for target in self.targets.values()])
        values = {
            name: part.reshape(target.shape)
            for (name, target), part in zip(
                self.targets.items(), jnp.split(u, ends[:-1]), strict=False
            )
        }
        return bind_inputs(with_inputs(model, values), self.others, _INPUTS)


def choose_coordinates(
    model: AbstractNullSpace, state: State, names: str | Sequence[str] | None
) -> IndependentRates:
    """Return independent generalised velocities, those of `names` if they are given."""
    system, labels = model.multibody, model.rate_labels
    every = tuple(range(len(labels)))
    given = None
    if names is not None:
        rows = actuated_rates(system, labels, names, "linearize(coordinates=...)")
        given = tuple(sorted(rows))
    if is_traced(system):
        if given is None and system.has_loops:
            raise ValueError(
                "`linearize(coordinates=...)` is needed for closed loops in a model with traced "
                f"values: name independent joints, of {list(labels)}."
            )
        chosen = every if given is None else given
        return IndependentRates(every if system.velocity_constraints else chosen, chosen)
    with eval_context():  # also where a traced function closes over the system
        at = system.reference_state() if is_traced(state) else state
        J = loop_rows(system, at)
        holonomic = replace_fields(system, constraints=system.position_constraints)
        J_of_positions = loop_rows(holonomic, at) if system.velocity_constraints else J
    independent = independent_columns(J)
    if given is not None:
        rest = [k for k in every if k not in given]
        if len(given) != len(independent) or independent_columns(J[:, rest]):
            raise ValueError(
                f"`linearize(coordinates=...)` names the rates {[labels[k] for k in given]}, which "
                f"do not determine the others: the mechanism has {len(independent)} degrees of "
                f"freedom. A possible choice is {[labels[k] for k in independent]}."
            )
        independent = given
    of_positions = independent_columns(J_of_positions) if J_of_positions is not J else independent
    return IndependentRates(of_positions, independent)


def check_inputs(
    model: AbstractNullSpace, inputs: Sequence[str] | Mapping[str, Any], num_states: int | None
) -> tuple[dict[str, Input], Array, dict[str, Any]]:
    """Return the inputs with columns in `B`, their values, and the other bound inputs.

    **Returns:** the values have shape (m,), or (T, m) for T states.
    """
    known = inputs_of(model)
    if not isinstance(inputs, Mapping):
        names = (inputs,) if isinstance(inputs, str) else tuple(inputs)
        check_names(names, known, _INPUTS)
        inputs = {name: known[name].default for name in names}
    check_names(list(inputs), known, _INPUTS)
    dtype, lead = common_dtype(model), () if num_states is None else (num_states,)
    others = {n: x for n, x in inputs.items() if isinstance(x, Signal) or is_source(x)}
    for name, value in others.items():
        if isinstance(value, SampledController):
            raise ValueError(
                f"`{_INPUTS}`: a sampled controller, here that of {name!r}, has no linear model in "
                "continuous time. Leave it out, and use `A` and `B` with its period."
            )
    targets = {name: known[name] for name in inputs if name not in others}
    values = []
    for name, target in targets.items():
        for part in (*model.multibody.joints, *model.multibody.bodies):
            if name in inputs_of(part):
                raise ValueError(
                    f"`{_INPUTS}`: the input {name!r} prescribes the motion of {part.name!r}; its "
                    "velocity and acceleration act on the system, too. Use a force instead."
                )
        if inputs[name] is None:
            raise ValueError(
                f"`{_INPUTS}`: the input {name!r} has no default; give its value, as in "
                f"`{{{name!r}: 0.0}}`."
            )
        shapes = {target.shape: None, (*lead, *target.shape): None}
        value = jnp.asarray(finite_leaf(inputs[name], f"{_INPUTS}[{name!r}]", *shapes), dtype)
        values.append(jnp.broadcast_to(value, (*lead, *target.shape)).reshape(*lead, -1))
    return targets, jnp.concatenate([jnp.zeros((*lead, 0), dtype), *values], axis=-1), others


def check_sensors(model: AbstractNullSpace, sensors: Sequence[AbstractSensor]) -> tuple[str, ...]:
    """Return the names of the outputs of sensors after checking them."""
    names: list[str] = []
    for sensor in sensors:
        if not isinstance(sensor, AbstractSensor):
            raise TypeError(
                "`linearize(outputs=...)` takes a sequence of sensors such as "
                f'`[rj.Gyroscope("body")]`; got {sensor!r}.'
            )
        sensor.check(model)
        if sensor.on_time()[1] is not None:
            raise ValueError(
                f"`linearize(outputs=...)`: the {sensor.name} has a delay, and no finite number of "
                "states describes it. Give the sensor without its delay."
            )
        several = len(sensor.channels) > 1
        names += [f"{sensor.name} {c}" if several else sensor.name for c in sensor.channels]
    if twice := find_duplicates(names):
        raise ValueError(
            f"`linearize(outputs=...)` has {twice} more than once; give the sensors names."
        )
    return tuple(names)
