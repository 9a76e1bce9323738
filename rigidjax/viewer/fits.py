"""View of a fitted run over its measurements."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from ..formulations import AbstractFormulation
from ..mechanics import System, joint_states
from ..state import State
from .page import View
from .runs import DisplayedRun, frame_indices, runs_of
from .scene import scene_of

if TYPE_CHECKING:
    from ..identification import Fit, FittedRun, Measurements


def view_fit(
    fit: "Fit",
    measured: "Measurements",
    run: "FittedRun",
    index: int = 0,
    *,
    frames: int = 601,
    title: str = "",
    height: int = 560,
) -> View:
    """Show a fitted run, and over it the measured poses if the sensors determine them.

    Sensors determine the poses if every body has an `Attitude` (positions that no `Position` at the
    centre of mass measures are taken from the fit), or if `JointCoordinate`s measure all
    coordinates of a tree attached to the ground. Every channel is a graph of fitted and measured
    values, with lines across gaps; without measured poses these are two graphs.

    **Arguments:** `fit`, of several runs or one; `measured`, the samples of this run; `run`, an
    element of `rigidjax.identification.fitted_runs`; `index`, of the run in the fit; `frames`,
    `title`, `height` as in `view`.
    **Returns:** a `View`.
    **Errors:** `ValueError` for a run that failed before its first sample.
    """
    reached = _all_finite(run.states)
    if not reached.any():
        raise ValueError(
            "The simulation of this run failed at its start: there is nothing to view."
        )
    times = np.asarray(run.ts)[reached]
    rows = np.flatnonzero(reached)[frame_indices(times, frames)]
    model = fit.models[index]
    fitted = _displayed_run(
        model, jax.tree.map(lambda x: x[rows], run.states), run.ts[rows], "fit", frames
    )
    channels = list(_channels(model, measured, run))
    for name, unit, predicted, _ in channels:
        fitted.graphs[name, unit] = predicted[rows]
    runs = [fitted]
    poses = measured_states(model, measured, run.states)
    measured_rows = rows[:0] if poses is None else rows[_all_finite(poses)[rows]]
    if measured_rows.size:
        states = jax.tree.map(lambda x: x[measured_rows], poses)
        runs.append(_displayed_run(model, states, run.ts[measured_rows], "measured", frames))
        for name, unit, _, samples in channels:
            runs[1].graphs[name, unit] = samples[measured_rows]
    else:
        for name, unit, _, samples in channels:
            fitted.graphs[f"{name}, measured", unit] = samples[rows]
    return View(scene_of(runs, title), height)


def measured_states(
    model: AbstractFormulation, measured: "Measurements", fitted: State
) -> State | None:
    """Return the measured poses, with NaN in gaps and zero rates.

    **Arguments:** `model`; `measured`, the samples; `fitted`, (T, ...), the states of the fit,
    whose positions complete poses of which only the orientation was measured.
    **Returns:** the states, or `None` if the sensors do not determine the poses.
    """
    from ..identification import Attitude, JointCoordinate, Position

    system = model.multibody
    body_values: dict[tuple[type, Any], np.ndarray] = {}
    joint_values: dict[tuple[str, int], np.ndarray] = {}
    for sensor, samples, mask in zip(measured.sensors, measured.values, measured.mask, strict=True):
        values = np.asarray(samples, float)
        is_valid = np.asarray(mask).all(axis=1)
        values = np.where(is_valid.reshape(-1, *[1] * (values.ndim - 1)), values, np.nan)
        if isinstance(sensor, JointCoordinate):
            joint_values[sensor.joint, sensor.component or 0] = sensor.ideal_value(values)
        elif isinstance(sensor, Attitude | Position) and _reads_pose(sensor):
            body_values[type(sensor), sensor.body or system.bodies[0].name] = values
    names = [body.name for body in system.bodies]
    if all((Attitude, name) in body_values for name in names):
        orientations = np.stack([body_values[Attitude, name] for name in names], axis=1)
        positions = np.array(fitted.position, float)
        for k, name in enumerate(names):
            positions[:, k] = body_values.get((Position, name), positions[:, k])
        zero = np.zeros_like(positions)
        parts = map(jnp.asarray, (positions, orientations, zero, zero))
        return jax.vmap(lambda x, p, v, w: State(x, p, v, w))(*parts)
    coordinates = _tree_coordinates(system)
    if not coordinates or not all(key in joint_values for key in coordinates):
        return None
    return joint_states(system, jnp.stack([joint_values[key] for key in coordinates], axis=1))


def _reads_pose(sensor: Any) -> bool:
    """Return whether a sensor reads the pose of a body without bias, scale and offset."""
    offsets = [sensor.bias, getattr(sensor, "point", 0.0), getattr(sensor, "misalignment", 0.0)]
    return not any(np.any(np.asarray(x)) for x in offsets) and bool(
        np.all(np.asarray(getattr(sensor, "scale", 1.0)) == 1)
    )


def _tree_coordinates(system: System) -> list[tuple[str, int]]:
    """Return joint names and component indices, in the order of the rates, if they fix all poses.

    The list is empty for a system with loops, free bodies, prescribed motions, or joints with
    several angles.
    """
    tree_joints = [None if j is None else system.joints[j] for j in system.topology.joints]
    is_determined = not system.topology.loops and all(
        joint is not None and joint.num_rates - joint.num_translations <= 1 and not joint.is_driven
        for joint in tree_joints
    )
    joints = [joint for joint in tree_joints if joint is not None] if is_determined else []
    return [(joint.name, k) for joint in joints for k in range(joint.num_rates)]


def _channels(
    model: AbstractFormulation, measured: "Measurements", run: "FittedRun"
) -> Iterator[tuple[str, str, np.ndarray, np.ndarray]]:
    """Yield name, unit, predicted and measured values, (T,), of the components of all sensors.

    The component that changes most comes first for each sensor, the others follow at the end.
    """
    others = []
    for sensor, samples, mask in zip(measured.sensors, measured.values, measured.mask, strict=True):
        predicted = run.values[sensor.name].reshape(len(run.ts), -1)
        values = np.asarray(samples, float).reshape(len(run.ts), -1)
        is_valid = np.asarray(mask).all(axis=1)
        if not is_valid.any():
            continue
        for k in np.argsort(-np.ptp(predicted, axis=0), kind="stable"):
            name = sensor.name + (f" {k + 1}" if values.shape[1] > 1 else "")
            interpolated = np.interp(run.ts, np.asarray(run.ts)[is_valid], values[is_valid, k])
            others.append((name, sensor.unit_in(model), predicted[:, k], interpolated))
        yield others.pop(-values.shape[1])
    yield from others


def _displayed_run(
    model: AbstractFormulation, states: State, ts: np.ndarray, label: str, frames: int
) -> DisplayedRun:
    return runs_of((model, states, ts), label, frames, 1, False)[0]


def _all_finite(states: State) -> np.ndarray:
    """Return whether all poses and rates of a row are finite, (T,)."""
    parts = [np.asarray(x) for x in jax.tree.leaves(states)]
    return np.all([np.isfinite(x).reshape(len(x), -1).all(axis=1) for x in parts], axis=0)
