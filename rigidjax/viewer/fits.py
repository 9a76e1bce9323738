"""A fitted run over what was measured of it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from ..formulations import AbstractFormulation
from ..mechanics import System, joint_states
from ..state import State
from .page import View
from .runs import Run, kept, runs_of
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
    """A fitted run; over it the measured poses where sensors see all of them.

    They do if every body has an `Attitude` (where no `Position` of its centre of mass was measured,
    that of the fit is taken), or if `JointCoordinate`s see all coordinates of a tree on the ground.
    Every channel is a graph of both, with lines over gaps; without measured poses two graphs.

    **Arguments:** `fit`; `measured`, the samples of this run; `run`, one of
    `rigidjax.identification.fitted_runs`; `index`, its place among the runs of the fit; `frames`,
    `title`, `height` as in `view`.
    **Returns:** a `View`.
    **Raises:** `ValueError` for a run that failed before its first sample.
    """
    reached = _all_finite(run.states)
    if not reached.any():
        raise ValueError(
            "The simulation of this run failed at its start: there is nothing to view."
        )
    times = np.asarray(run.ts)[reached]
    rows = np.flatnonzero(reached)[kept(times, frames)]
    model = fit.models[index]
    shown = _drawn(model, jax.tree.map(lambda x: x[rows], run.states), run.ts[rows], "fit", frames)
    channels = list(_channels(model, measured, run))
    for name, unit, predicted, _ in channels:
        shown.graphs[name, unit] = predicted[rows]
    runs = [shown]
    poses = measured_states(model, measured, run.states)
    seen = rows[:0] if poses is None else rows[_all_finite(poses)[rows]]
    if seen.size:
        there = jax.tree.map(lambda x: x[seen], poses)
        runs.append(_drawn(model, there, run.ts[seen], "measured", frames))
        for name, unit, _, samples in channels:
            runs[1].graphs[name, unit] = samples[seen]
    else:
        for name, unit, _, samples in channels:
            shown.graphs[f"{name}, measured", unit] = samples[rows]
    return View(scene_of(runs, title), height)


def measured_states(
    model: AbstractFormulation, measured: "Measurements", fitted: State
) -> State | None:
    """The poses that were measured, NaN in gaps and rates zero; `None` where sensors do not tell.

    **Arguments:** `model`; `measured`, the samples; `fitted`, (T, ...), whose positions are taken
    where orientations alone were measured.
    """
    from ..identification import Attitude, JointCoordinate, Position

    system = model.multibody
    of_bodies: dict[tuple[type, Any], np.ndarray] = {}
    of_joints: dict[tuple[str, int], np.ndarray] = {}
    for sensor, samples, mask in zip(measured.sensors, measured.values, measured.mask, strict=True):
        values = np.asarray(samples, float)
        seen = np.asarray(mask).all(axis=1)
        values = np.where(seen.reshape(-1, *[1] * (values.ndim - 1)), values, np.nan)
        if isinstance(sensor, JointCoordinate):
            of_joints[sensor.joint, sensor.component or 0] = sensor.ideal_value(values)
        elif isinstance(sensor, Attitude | Position) and _reads_pose(sensor):
            of_bodies[type(sensor), sensor.body or system.bodies[0].name] = values
    names = [body.name for body in system.bodies]
    if all((Attitude, name) in of_bodies for name in names):
        turned = np.stack([of_bodies[Attitude, name] for name in names], axis=1)
        places = np.array(fitted.position, float)
        for k, name in enumerate(names):
            places[:, k] = of_bodies.get((Position, name), places[:, k])
        still = np.zeros_like(places)
        parts = map(jnp.asarray, (places, turned, still, still))
        return jax.vmap(lambda x, p, v, w: State(x, p, v, w))(*parts)
    wanted = _coordinates(system)
    if not wanted or not all(key in of_joints for key in wanted):
        return None
    return joint_states(system, jnp.stack([of_joints[key] for key in wanted], axis=1))


def _reads_pose(sensor: Any) -> bool:
    """Return whether a sensor reads the pose of a body as it is."""
    offsets = [sensor.bias, getattr(sensor, "point", 0.0), getattr(sensor, "misalignment", 0.0)]
    return not any(np.any(np.asarray(x)) for x in offsets) and bool(
        np.all(np.asarray(getattr(sensor, "scale", 1.0)) == 1)
    )


def _coordinates(system: System) -> list[tuple[str, int]]:
    """Joints with each of their coordinates, in the order of the rates, if these place all bodies.

    Nothing of a system with loops, free bodies, prescribed motions, or joints of several angles.
    """
    hangers = [None if j is None else system.joints[j] for j in system.topology.joints]
    places = not system.topology.loops and all(
        joint is not None and joint.num_rates - joint.num_translations <= 1 and not joint.is_driven
        for joint in hangers
    )
    joints = [joint for joint in hangers if joint is not None] if places else []
    return [(joint.name, k) for joint in joints for k in range(joint.num_rates)]


def _channels(
    model: AbstractFormulation, measured: "Measurements", run: "FittedRun"
) -> Iterator[tuple[str, str, np.ndarray, np.ndarray]]:
    """Name, unit, predicted and measured values, (T,), of each number that a sensor reads.

    Of each sensor that number first which changes most.
    """
    others = []
    for sensor, samples, mask in zip(measured.sensors, measured.values, measured.mask, strict=True):
        predicted = run.values[sensor.name].reshape(len(run.ts), -1)
        values = np.asarray(samples, float).reshape(len(run.ts), -1)
        seen = np.asarray(mask).all(axis=1)
        if not seen.any():
            continue
        for k in np.argsort(-np.ptp(predicted, axis=0), kind="stable"):
            name = sensor.name + (f" {k + 1}" if values.shape[1] > 1 else "")
            filled = np.interp(run.ts, np.asarray(run.ts)[seen], values[seen, k])
            others.append((name, sensor.unit_in(model), predicted[:, k], filled))
        yield others.pop(-values.shape[1])
    yield from others


def _drawn(model, states: State, ts: np.ndarray, label: str, frames: int) -> Run:
    return runs_of((model, states, ts), label, frames, 1, False)[0]


def _all_finite(states: State) -> np.ndarray:
    """Whether all poses and rates of a row are finite, (T,)."""
    parts = [np.asarray(x) for x in jax.tree.leaves(states)]
    return np.all([np.isfinite(x).reshape(len(x), -1).all(axis=1) for x in parts], axis=0)
