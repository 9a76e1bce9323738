"""Conversion of a `Solution` to an `xarray.Dataset` and back to states."""

import json
import os
import pathlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._version import __version__
from ..extras import import_optional
from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns, split_chart
from ..io.files import replacing
from ..io.mechanism import describe_mechanism
from ..io.names import body_names, unknown_names
from ..results import RESULTS
from ..rotations.so3 import multiply
from ..state import State
from .solution import Solution

if TYPE_CHECKING:
    import xarray

_CONVENTIONS = (
    "quaternions scalar first, Hamilton product, body to space; angular velocity in body "
    "components; inertia about the centre of mass or the fixed point, body axes; SI units, radians"
)


def to_dataset(
    solution: Solution, attributes: Mapping[str, str | int | float] | None = None
) -> "xarray.Dataset":
    """Convert a trajectory to a dataset with named dimensions, units and frames.

    Dimensions are `time`, `body`, `joint` (joints with unwrapped angles), `frame` (if the system
    has frames) and the components `space` (x, y, z), `axis` (1, 2, 3, of the body), `quaternion`
    (p0 to p3) and `unknown`. A solution made under `jax.vmap` has the leading dimension `sample`
    and the variable `result`; its trajectories must have the same times. Times that no trajectory
    reached are left out; values are NaN where a single trajectory did not reach the time. The event
    that ended a run is in `event_time`, `event_position` and so on, NaN if no event occurred; a run
    without `event=` does not have these variables. A hybrid run has `transition_time`, NaN after
    the last transition, and `transition_kind`.

    **Arguments:** `solution`, of one run or a batch; `attributes`, to add, such as
    `{"source": problem.source}`.
    **Returns:** an `xarray.Dataset` in memory, with NumPy arrays.
    **Errors:** `ValueError` for a solution without saved times, or with differing times.
    """
    xarray = import_optional("xarray", "Datasets")

    if solution.ts is None:
        raise ValueError(
            "No times were saved: pass `ts=` or a `diffrax.SaveAt` with times to `simulate`."
        )
    ts = np.asarray(solution.ts)
    if ts.ndim > 2:
        raise ValueError(
            f"`to_dataset` takes one batch dimension at most; `Solution.ts` has shape {ts.shape}."
        )
    batch = ("sample",) if ts.ndim == 2 else ()
    reached = np.isfinite(ts)
    times = np.min(ts, axis=0) if batch else ts
    if not np.array_equal(np.where(reached, ts, times), np.broadcast_to(times, ts.shape)):
        raise ValueError(
            "The trajectories of this batch have different times, which one `time` axis cannot "
            "hold. Save at given times (`ts=`), or convert them one by one."
        )
    model = solution.model
    variables = {
        name: _at_reached_times(variable, reached, batch)
        for name, variable in _histories(solution).items()
    }
    variables |= _at_event(solution, batch) | _transitions(solution, batch)
    variables |= _mass_properties(model, batch)
    variables["mechanism"] = _mechanism(model, batch)
    stats = {}
    for name, value in solution.stats.items():
        if name == "derivative_error" and np.isnan(value).all():
            continue
        if name == "backend":
            stats[name] = str(value)
        elif batch:
            variables[name] = (batch, np.broadcast_to(value, ts.shape[:1]), {"units": "1"})
        else:
            stats[name] = np.asarray(value).item()
    if batch:
        variables["result"] = (batch, _results(solution.result, ts.shape[:1]), {})
    else:
        stats["result"] = RESULTS[solution.result] or "successful"
    return xarray.Dataset(
        variables,
        {
            "time": ("time", times[np.isfinite(times)], {"long_name": "time", "units": "s"}),
            **_axes(model),
        },
        {
            "formulation": type(model).__name__,
            **_static_fields(model),
            "conventions": _CONVENTIONS,
            **stats,
            **(attributes or {}),
            "rigidjax_version": __version__,
        },
    )


def states_of(dataset: "xarray.Dataset") -> State:
    """Return the states of a dataset from `to_dataset`, `load`, or an ensemble of solutions.

    **Returns:** a `State` whose leaves have the leading axes of the dataset, such as `time`.
    `dataset.isel(time=-1)` gives the last state, from which a run can be continued.
    **Errors:** `ValueError` for a dataset without poses and velocities.
    """
    names = ("position", "orientation", "velocity", "angular_velocity")
    missing = [name for name in names if name not in dataset]
    if missing:
        raise ValueError(
            f"This dataset has no {', '.join(missing)}: it is not a trajectory that `rj.io.save` "
            "wrote."
        )
    leading = dataset["position"].ndim - 2
    make: Callable[..., State] = lambda *parts: State(*parts)  # noqa: E731
    for _ in range(leading):
        make = jax.vmap(make)
    states = make(*(jnp.asarray(dataset[name].values) for name in names))
    if "joint_angles" not in dataset:
        return states
    joints = tuple(str(name) for name in np.atleast_1d(dataset["joint"].values))
    return states.with_angles(joints, jnp.asarray(dataset["joint_angles"].values))


def _histories(solution: Solution) -> dict[str, tuple[Any, tuple[str, ...], dict[str, str]]]:
    """Return variables over time: values, dimensions after time, and attributes."""
    states = solution.states
    unknowns, reference = split_chart(solution.ys)
    kinetic, potential = solution._along(_energies)

    def entry(values: Any, dims: tuple[str, ...], units: str, text: str, frame: str = ""):
        attributes = {"long_name": text, "units": units}
        return values, dims, attributes | ({"frame": frame} if frame else {})

    point, spin, quaternion = ("body", "space"), ("body", "axis"), ("body", "quaternion")
    total = kinetic + potential
    rows = {
        "position": (states.position, point, "m", "position of the reference point", "space"),
        "orientation": (states.orientation, quaternion, "1",
                        "unit quaternion, scalar first, body to space; the sign is arbitrary"),
        "velocity": (states.velocity, point, "m s-1", "velocity of the reference point", "space"),
        "angular_velocity": (states.angular_velocity, spin, "rad s-1", "angular velocity", "body"),
        "kinetic_energy": (kinetic, (), "J", "kinetic energy"),
        "potential_energy": (potential, (), "J", "potential energy of the forces that have one"),
        "energy": (total, (), "J", "kinetic and potential energy"),
        "linear_momentum": (solution.linear_momentum, ("space",), "kg m s-1",
                            "linear momentum of all bodies", "space"),
        "angular_momentum": (solution.angular_momentum, ("space",), "kg m2 s-1",
                             "angular momentum about the origin", "space"),
        "position_drift": (solution.position_drift, (), "1",
                           "largest violation of the constraints"),
        "velocity_drift": (solution.velocity_drift, (), "s-1",
                           "largest violation of their time derivatives"),
        "unknowns": (unknowns, ("unknown",), "",
                     "unknowns of the formulation: positions x, rotation coordinates a, velocities "
                     "v, rotational velocities w, rates and angles of joints, multipliers"),
    }  # fmt: skip
    histories = {name: entry(*row) for name, row in rows.items()}
    if states.joint_angles is not None:
        text = "unwrapped angle of the joint"
        histories["joint_angles"] = entry(states.joint_angles, ("joint",), "rad", text)
    for name, values in solution.inputs.items():
        is_vector = values.ndim > solution.ts.ndim
        dims = (f"entry_of_{name}",) if is_vector else ()
        histories[f"input_{name}"] = entry(values, dims, "", f"value of the input {name!r}")
    if _frame_names(solution.model):
        positions, orientations = solution._along(_frames)
        text = "origin of frames on bodies"
        histories["frame_position"] = entry(positions, ("frame", "space"), "m", text, "space")
        text = "unit quaternion, scalar first, frame to space; the sign is arbitrary"
        histories["frame_orientation"] = entry(orientations, ("frame", "quaternion"), "1", text)
    if reference is not None:
        text = "reference rotation of the moving chart, a unit quaternion, a factor on the left"
        histories["chart"] = entry(reference, quaternion, "1", text)
    return histories


def _energies(
    model: AbstractFormulation, t: Float[Array, ""], y: Unknowns
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    return model.kinetic_energy(t, y), model.potential_energy(t, y)


def _at_event(solution: Solution, batch: tuple[str, ...]) -> dict[str, Any]:
    """Return time and state of the event that ended a run; empty for a run without `event=`."""
    state = solution.event_state
    if state is None:
        return {}
    parts = {
        "time": (solution.event_time, (), "s"),
        "position": (state.position, ("body", "space"), "m"),
        "orientation": (state.orientation, ("body", "quaternion"), "1"),
        "velocity": (state.velocity, ("body", "space"), "m s-1"),
        "angular_velocity": (state.angular_velocity, ("body", "axis"), "rad s-1"),
    }
    if state.joint_angles is not None:
        parts["joint_angles"] = (state.joint_angles, ("joint",), "rad")
    return {
        f"event_{name}": (
            (*batch, *dims),
            np.asarray(values),
            {"long_name": f"{name.replace('_', ' ')} at the event", "units": units},
        )
        for name, (values, dims, units) in parts.items()
    }


def _transitions(solution: Solution, batch: tuple[str, ...]) -> dict[str, Any]:
    """Return times and kinds of the transitions of a hybrid run; empty for other runs."""
    record = solution.transitions
    if record is None:
        return {}
    names = ", ".join(f"{k} {name!r}" for k, name in enumerate(record.names))
    dims, times = (*batch, "transition"), np.asarray(record.times)
    about_times = {"long_name": "time of the transition", "units": "s"}
    about_kinds = {"long_name": f"kind of the transition ({names}; -1 for none)", "units": "1"}
    return {
        "transition_time": (dims, np.where(np.isfinite(times), times, np.nan), about_times),
        "transition_kind": (dims, np.asarray(record.kinds), about_kinds),
    }


def _at_reached_times(
    variable: tuple[Any, tuple[str, ...], dict[str, str]],
    reached: np.ndarray,
    batch: tuple[str, ...],
) -> tuple[tuple[str, ...], np.ndarray, dict[str, str]]:
    """Return a variable for xarray at times that any trajectory reached; NaN for the others."""
    values, dims, attributes = variable
    mask = reached.reshape(reached.shape + (1,) * len(dims))
    masked = np.where(mask, np.asarray(values), np.nan).astype(values.dtype)
    columns = reached.any(axis=0) if batch else reached
    return (*batch, "time", *dims), np.compress(columns, masked, axis=len(batch)), attributes


def _results(result: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return the result of each trajectory of a batch as text."""
    (values,) = jax.tree.leaves(result)
    distinct, which = np.unique(np.broadcast_to(values, shape), return_inverse=True)
    items = [jax.tree.map(lambda _, value=value: jnp.asarray(value), result) for value in distinct]
    return np.array([RESULTS[item] or "successful" for item in items])[which]


def _axes(model: AbstractFormulation) -> dict[str, Any]:
    """Return the coordinates of all dimensions except time."""
    frames, joints = _frame_names(model), model.multibody.angle_names
    return {
        "body": ("body", np.array(body_names(model))),
        **({"joint": ("joint", np.array(joints))} if joints else {}),
        **({"frame": ("frame", np.array(frames))} if frames else {}),
        "space": ("space", np.array(["x", "y", "z"])),
        "axis": ("axis", np.array([1, 2, 3])),
        "quaternion": ("quaternion", np.array(["p0", "p1", "p2", "p3"])),
        "axis_2": ("axis_2", np.array([1, 2, 3])),
        "unknown": ("unknown", np.array(unknown_names(model))),
    }


def _frame_names(model: AbstractFormulation) -> list[str]:
    return [frame.name for frame in getattr(model.system, "frames", ())]


def _frames(
    model: AbstractFormulation, t: Float[Array, ""], y: Unknowns
) -> tuple[Float[Array, "F 3"], Float[Array, "F 4"]]:
    """Return origins and quaternions of all frames."""
    system: Any = model.system
    p, poses = model.decode(t, y).orientation, model.frame_poses(t, y)
    orientations = [
        multiply(p[system.locate(frame.body)[0]], frame.orientation) for frame in system.frames
    ]
    return jnp.stack([x for x, _ in poses.values()]), jnp.stack(orientations)


def _mass_properties(model: AbstractFormulation, batch: tuple[str, ...]) -> dict[str, Any]:
    """Return inertias as full tensors, and masses if bodies translate."""
    bodies, tensors = model.multibody.bodies, []
    for body in bodies:
        value = np.asarray(body.inertia)
        is_principal = value.ndim - len(batch) == 1
        tensors.append(value[..., None] * np.eye(3) if is_principal else value)
    variables: dict[str, Any] = {
        "inertia": (
            (*batch, "body", "axis", "axis_2"),
            np.stack(tensors, axis=len(batch)),
            {"long_name": "inertia about the reference point", "units": "kg m2", "frame": "body"},
        )
    }
    if model.layout.translates:
        masses = [np.asarray(body.mass) for body in bodies]
        variables["mass"] = (
            (*batch, "body"),
            np.stack(masses, axis=len(batch)),
            {"long_name": "mass", "units": "kg"},
        )
    return variables


def _mechanism(model: AbstractFormulation, batch: tuple[str, ...]) -> Any:
    """Return bodies, joints, springs and gravity of the first sample as text in JSON."""
    if batch:
        model = jax.tree.map(lambda x: x[0] if eqx.is_array(x) else x, model)
    text = json.dumps(describe_mechanism(model))
    attributes = {"long_name": "bodies, joints, springs and gravity, in JSON", "units": "1"}
    return (), np.array(text), attributes


def _static_fields(model: AbstractFormulation) -> dict[str, str]:
    """Return the static choices of a formulation as text."""
    choices = ", ".join(v for v in vars(model.rotation).values() if isinstance(v, str))
    fields = {k: str(v) for k, v in vars(model).items() if isinstance(v, str | bool | int)}
    return {"rotation": f"{type(model.rotation).__name__}({choices})", **fields}


if TYPE_CHECKING:
    import xarray


def save(
    trajectory: "Solution | xarray.Dataset", path: str | os.PathLike[str], force: bool = False
) -> pathlib.Path:
    """Write a trajectory as a NetCDF 4 file, completely or not at all.

    **Arguments:** `trajectory`, a `Solution` or a dataset from `to_dataset`; `path`, of the file;
    `force`, replace an existing file.
    **Returns:** the path.
    **Errors:** `FileExistsError` for an existing file without `force`; `OSError` for a path that
    cannot be written.
    """
    dataset: Any = to_dataset(trajectory) if isinstance(trajectory, Solution) else trajectory
    with replacing(path, force) as temporary:
        dataset.to_netcdf(temporary, engine="h5netcdf")
    return pathlib.Path(path)


def load(path: str | os.PathLike[str]) -> "xarray.Dataset":
    """Read a trajectory that `save` wrote, and close the file.

    **Errors:** `FileNotFoundError`; `OSError` for a file that is not NetCDF 4.
    """
    xarray = import_optional("xarray", "NetCDF files")

    try:
        dataset = xarray.load_dataset(path, engine="h5netcdf")
    except FileNotFoundError as error:
        raise FileNotFoundError(f"There is no file {path}.") from error
    except OSError as error:
        raise OSError(f"{path} cannot be read as NetCDF 4: {error}.") from error
    # xarray reads text as Python objects.
    labels = {
        name: (variable.dims, variable.values.astype(str), variable.attrs)
        for name, variable in dataset.variables.items()
        if variable.dtype == object
    }
    coordinates = {name: label for name, label in labels.items() if name in dataset.coords}
    return dataset.assign(labels).assign_coords(coordinates)
