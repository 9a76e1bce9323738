"""Conversion of solutions, datasets, states and ensembles to displayed runs."""

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from ..bodies import FixedPointBody
from ..ensembles import Ensemble
from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns
from ..io.mechanism import describe_mechanism
from ..mechanics import System
from ..mechanics.dynamics.loads import applied_wrenches
from ..models.model import Model
from ..simulate.solution import Solution
from ..state import State

# Drift below this value is round-off and has no graph.
_ROUND_OFF = 1e-10


@dataclasses.dataclass
class DisplayedRun:
    """A trajectory with its graphs and arrows.

    `times`, (T,) s; `positions`, (T, L, 3) m; `orientations`, (T, L, 4), unit quaternions;
    `angular_velocities`, (T, L, 3) rad/s, body components, and `velocities`, (T, L, 3) m/s, space
    components, or `None` if unknown; `graphs`, from name and unit to values (T,); `forces` on the
    bodies, (T, L, 3) N, and `reactions` of the joints on their children, (T, J, 3) N, space
    components, or `None`; `mechanism`, see `describe_mechanism`; `is_ghost`, whether the run is
    drawn faintly; `angles`, unwrapped angles of joints at the first time, rad, by name.
    """

    label: str
    mechanism: dict[str, Any]
    times: np.ndarray
    positions: np.ndarray
    orientations: np.ndarray
    angular_velocities: np.ndarray | None
    graphs: dict[tuple[str, str], np.ndarray] = dataclasses.field(default_factory=dict)
    forces: np.ndarray | None = None
    reactions: np.ndarray | None = None
    is_ghost: bool = False
    velocities: np.ndarray | None = None
    angles: Mapping[str, float] = dataclasses.field(default_factory=dict)


def runs_of(
    item: Any, label: str, frames: int, members: int, with_reactions: bool
) -> list[DisplayedRun]:
    """Return the runs in a `Solution`, a dataset, a file, `(model, states)` or `(model, ensemble)`.

    **Arguments:** `item`; `label`; `frames`, maximum number of times, chosen from the saved ones;
    `members`, maximum number of batch members; `with_reactions`, whether to compute the reactions
    of a solution.
    **Errors:** `TypeError` for other items; `ValueError` for items without poses.
    """
    if isinstance(item, Solution):
        return _of_solution(item, label, frames, members, with_reactions)
    if isinstance(item, str | os.PathLike):
        from ..io import load

        return _of_dataset(load(item), label, frames, members)
    if _is_dataset(item):
        return _of_dataset(item, label, frames, members)
    if isinstance(item, tuple) and len(item) in (2, 3) and isinstance(item[1], State):
        return [_of_states(item[0], item[1], *item[2:], label=label, frames=frames)]
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], Ensemble):
        return _of_ensemble(*item, label, frames, members)
    raise TypeError(
        "`view` takes a `Solution`, a dataset or file of `rj.io`, a model with `state=`, or a "
        f"model with its `Ensemble`, `(model, ensemble)`; got {type(item).__name__}."
    )


def frame_indices(times: np.ndarray, frames: int) -> np.ndarray:
    """Return indices of at most `frames` finite times, evenly spaced, including both ends."""
    reached = np.flatnonzero(np.isfinite(times))
    if len(reached) <= frames:
        return reached
    targets = np.linspace(times[reached[0]], times[reached[-1]], frames)
    after = np.clip(np.searchsorted(times[reached], targets), 1, len(reached) - 1)
    nearer = targets - times[reached][after - 1] < times[reached][after] - targets
    return np.unique(reached[after - nearer])


def _of_solution(
    solution: Solution, label: str, frames: int, members: int, with_reactions: bool
) -> list[DisplayedRun]:
    if solution.ts is None:
        raise ValueError(
            "No times were saved: pass `ts=` or a `diffrax.SaveAt` with times to `simulate`."
        )
    depth = np.ndim(solution.ts)
    if depth > 2:
        raise ValueError(
            f"`view` takes one batch dimension at most; `Solution.ts` has shape "
            f"{np.shape(solution.ts)}."
        )
    if depth == 2:
        out = []
        for k in _member_indices(len(solution.ts), members):
            member = jax.tree.map(lambda x, k=k: x[k] if eqx.is_array(x) else x, solution)
            out += _of_solution(member, f"{label} member {k}".strip(), frames, members, False)
        for run in out[1:]:
            run.is_ghost = True
        return out
    indices = frame_indices(np.asarray(solution.ts), frames)
    if len(indices) == 0:
        raise ValueError("The run reached none of its saved times: there is nothing to view.")
    thinned = eqx.tree_at(
        lambda s: (s.ts, s.ys, s.closed),
        solution,
        jax.tree.map(
            lambda x: x[indices], (jnp.asarray(solution.ts), solution.ys, solution.closed)
        ),
        is_leaf=lambda x: x is None,
    )
    mechanism = describe_mechanism(solution.model)
    states, energies, drift, forces = thinned._along(_quantities)
    reactions = None
    if with_reactions and mechanism["joints"]:
        reactions = np.asarray(thinned._along(_reactions))
    return [
        DisplayedRun(
            label,
            mechanism,
            np.asarray(thinned.ts),
            np.asarray(states.position),
            np.asarray(states.orientation),
            np.asarray(states.angular_velocity),
            _graphs(sum(energies), drift[0], drift[1], energies),
            None if forces is None else np.asarray(forces),
            reactions,
            velocities=np.asarray(states.velocity),
            angles={name: float(angle[0]) for name, angle in states.angles.items()},
        )
    ]


def _member_indices(count: int, members: int) -> np.ndarray:
    return np.unique(np.linspace(0, count - 1, min(members, count)).round().astype(int))


def _of_ensemble(
    model: Any, ensemble: Ensemble, label: str, frames: int, members: int
) -> list[DisplayedRun]:
    kinds = ("t", "position", "orientation", "angular_velocity")
    outputs = ensemble.outputs
    if not isinstance(outputs, Mapping) or not set(kinds) <= set(outputs):
        raise ValueError(
            "The members of this ensemble have no poses: let `run` return the `Solution`, with "
            "times."
        )
    mechanism = describe_mechanism(model)
    runs = []
    for k in _member_indices(len(ensemble), members):
        times, x, p, omega = (np.asarray(outputs[kind][k], float) for kind in kinds)
        is_finite = np.isfinite(np.concatenate([x, p, omega], axis=-1)).all(axis=(1, 2))
        rows = frame_indices(np.where(is_finite, times, np.inf), frames)
        if len(rows) == 0:
            continue
        energy = np.asarray(outputs["energy"][k])[rows]
        graphs = {("energy", "J"): energy, ("change of energy", "J"): energy - energy[0]}
        text = f"{label} member {k}".strip()
        poses = (times[rows], x[rows], p[rows], omega[rows])
        velocities = (
            np.asarray(outputs["velocity"][k], float)[rows] if "velocity" in outputs else None
        )
        angles = {}
        if "joint_angles" in outputs:
            angles = dict(zip(ensemble.joints, outputs["joint_angles"][k][rows[0]], strict=False))
        runs.append(
            DisplayedRun(
                text, mechanism, *poses, graphs, is_ghost=bool(runs), velocities=velocities,
                angles=angles,
            )
        )  # fmt: skip
    if not runs:
        raise ValueError("No member reached any of its saved times: there is nothing to view.")
    return runs


def _quantities(model: AbstractFormulation, t: Float[Array, ""], y: Unknowns) -> tuple[Any, ...]:
    """Return state, energies, drift and forces in one function, which is compiled once."""
    energies = model.kinetic_energy(t, y), model.potential_energy(t, y)
    return model.decode(t, y), energies, model.drift(t, y), _forces(model, t, y)


def _forces(
    model: AbstractFormulation, t: Float[Array, ""], y: Unknowns
) -> Float[Array, "L 3"] | None:
    """Return the applied forces, N; `None` for a body with a fixed point."""
    if not model.layout.translates:
        return None
    bound, kinematics = model.bind(t, y), model.kinematics(t, y)
    return applied_wrenches(bound.prepared_system, t, kinematics)[:, :3]


def _reactions(model: Any, t: Float[Array, ""], y: Unknowns) -> Float[Array, "J 3"]:
    reactions = model.reactions(t, y)
    joints = [joint for joint in model.system.joints if not joint.at_centre]
    return jnp.stack([reactions[joint.name].force for joint in joints])


def _graphs(
    energy: ArrayLike,
    position_drift: ArrayLike,
    velocity_drift: ArrayLike,
    energies: Sequence[ArrayLike],
) -> dict[tuple[str, str], np.ndarray]:
    """Return graphs of the energies, kinetic and potential first, and of drift above round-off.

    `energies` is the kinetic and the potential energy, or empty for a file without them.
    """
    names = ("kinetic energy", "potential energy")
    graphs = {(name, "J"): np.asarray(x) for name, x in zip(names, energies, strict=False)}
    graphs["energy", "J"] = np.asarray(energy)
    graphs["change of energy", "J"] = np.asarray(energy) - np.asarray(energy)[0]
    drifts = {("position drift", ""): position_drift, ("velocity drift", "1/s"): velocity_drift}
    shown = {key: np.asarray(x) for key, x in drifts.items() if np.max(x) > _ROUND_OFF}
    return graphs | shown


def to_space(orientations: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Convert vectors (..., 3) from body to space components."""
    scalar, vector = orientations[..., :1], orientations[..., 1:]
    twice_cross = 2 * np.cross(vector, vectors)
    return vectors + scalar * twice_cross + np.cross(vector, twice_cross)


def _of_dataset(dataset: Any, label: str, frames: int, members: int) -> list[DisplayedRun]:
    needed = ("position", "orientation", "angular_velocity")
    missing = [name for name in needed if name not in dataset]
    if missing:
        raise ValueError(
            f"This dataset has no {', '.join(missing)}: it is not a trajectory that `rj.io.save` "
            "wrote."
        )
    mechanism = _mechanism_of(dataset.isel(sample=0) if "sample" in dataset.dims else dataset)
    if "sample" in dataset.dims:
        indices_of_members = _member_indices(dataset.sizes["sample"], members)
    else:
        indices_of_members = [None]
    runs = []
    for k in indices_of_members:
        data = dataset if k is None else dataset.isel(sample=int(k))
        times = np.asarray(data.time.values, float)
        poses = np.concatenate([data.position.values, data.orientation.values], axis=-1)
        indices = frame_indices(
            np.where(np.isfinite(poses).all(axis=(1, 2)), times, np.inf), frames
        )
        if len(indices) == 0:
            continue
        data = data.isel(time=indices)
        graphs = {}
        if {"energy", "position_drift", "velocity_drift"} <= set(data.data_vars):
            parts = [data[name] for name in ("kinetic_energy", "potential_energy") if name in data]
            graphs = _graphs(data.energy, data.position_drift, data.velocity_drift, parts)
        angles = {}
        if "joint_angles" in data:
            angles = dict(zip(data["joint"].values, data.joint_angles.values[0], strict=True))
        runs.append(
            DisplayedRun(
                label if k is None else f"{label} member {k}".strip(),
                mechanism,
                times[indices],
                data.position.values,
                data.orientation.values,
                data.angular_velocity.values,
                graphs,
                is_ghost=bool(runs),
                velocities=data.velocity.values if "velocity" in data else None,
                angles=angles,
            )
        )
    if not runs:
        raise ValueError("This dataset has no time with finite poses: there is nothing to view.")
    return runs


def _mechanism_of(dataset: Any) -> dict[str, Any]:
    """Return the mechanism of a dataset; for older files only bodies with their inertia."""
    if "mechanism" in dataset:
        return json.loads(str(dataset.mechanism.values))
    names = [str(name) for name in dataset.body.values]
    inertias = dataset.inertia.values if "inertia" in dataset else [np.zeros((3, 3))] * len(names)
    masses = dataset.mass.values.tolist() if "mass" in dataset else [None] * len(names)
    bodies = [
        {"name": name, "mass": mass, "inertia": inertia.tolist(), "shape": None, "axis": None}
        for name, mass, inertia in zip(names, masses, inertias, strict=True)
    ]
    return {"bodies": bodies, "joints": [], "springs": [], "gravity": None}


def _of_states(
    model: Any, state: State, ts: ArrayLike | None = None, *, label: str, frames: int
) -> DisplayedRun:
    mechanism = describe_mechanism(model.system if isinstance(model, Model) else model)
    for joint in mechanism["joints"] if isinstance(model, Model) else ():
        limits = model.limits.get(joint["name"])
        if limits is not None and limits.position is not None:
            joint["limits"] = [list(limits.position)]
    shape = np.shape(state.position)
    count = len(mechanism["bodies"])
    if shape[-2] != count:
        raise ValueError(
            f"`view(state=...)` must have a row for each of the {count} bodies; got {shape[-2]}."
        )
    if len(shape) > 3:
        raise ValueError(f"`view(state=...)` takes one axis of times at most; got shape {shape}.")
    leaves = [
        np.asarray(leaf)
        for leaf in (state.position, state.orientation, state.angular_velocity, state.velocity)
    ]
    if len(shape) == 2:
        leaves = [leaf[None] for leaf in leaves]
    times = np.zeros(1) if ts is None else np.asarray(ts, float)
    if times.shape != leaves[0].shape[:1] or np.any(np.diff(times) <= 0):
        raise ValueError(
            f"`view(ts=...)` must be {len(leaves[0])} increasing times, one for each state; got "
            f"shape {times.shape}."
        )
    indices = frame_indices(times, frames)
    positions, orientations, rates, velocities = (leaf[indices] for leaf in leaves)
    # Measured poses have zero rates.
    is_known = np.any(rates) or np.array_equal(
        orientations, np.broadcast_to(orientations[0], orientations.shape)
    )
    poses = (times[indices], positions, orientations)
    angles = {name: float(np.ravel(values)[0]) for name, values in state.angles.items()}
    if not is_known:
        return DisplayedRun(label, mechanism, *poses, None, angles=angles)
    return DisplayedRun(label, mechanism, *poses, rates, velocities=velocities, angles=angles)


def _is_dataset(item: Any) -> bool:
    import xarray

    return isinstance(item, xarray.Dataset)


def is_model(item: Any) -> bool:
    """Return whether an object is a formulation, a system, a body with a fixed point or a model
    from a file."""
    return isinstance(item, AbstractFormulation | System | FixedPointBody | Model)
