"""A `Solution` as an `xarray.Dataset`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..formulations import AbstractFormulation
from ..formulations.charts import split_chart
from ..results import RESULTS
from ..solution import Solution
from ..system import System

if TYPE_CHECKING:
    import xarray

_CONVENTIONS = (
    "quaternions scalar first, Hamilton product, body to space; angular velocity in body "
    "components; inertia about the centre of mass or the fixed point, body axes; SI units, radians"
)


def to_dataset(
    solution: Solution, attributes: Mapping[str, str | int | float] | None = None
) -> "xarray.Dataset":
    """The trajectory with named dimensions, units and frames.

    Dimensions are `time`, `body` and the components: `space` (x, y, z), `axis` (1, 2, 3, of the
    body), `quaternion` (p0 to p3), `unknown`. A solution made under `jax.vmap` has `sample` in
    front; its trajectories must have the same times. Times that were not reached are left out.

    **Arguments:** `solution`; `attributes`, further ones, such as `{"source": problem.source}`.
    **Returns:** an `xarray.Dataset` in memory; its arrays are NumPy's.
    **Raises:** `ValueError` for a solution without saved times, or with differing times.
    """
    import xarray

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
    if batch and not np.array_equal(ts, np.broadcast_to(ts[0], ts.shape)):
        raise ValueError(
            "The trajectories of this batch have different times, which one `time` axis cannot "
            "hold. Save at given times (`ts=`), or convert them one by one."
        )
    times = ts[0] if batch else ts
    reached = np.isfinite(times)
    model = solution.model
    states, momenta = solution.states, (solution.linear_momentum, solution.angular_momentum)
    unknowns, reference = split_chart(solution.ys)

    def along(values: Any, dims: tuple[str, ...], units: str, text: str, **more: str):
        kept = np.compress(reached, np.asarray(values), axis=len(batch))
        return (*batch, "time", *dims), kept, {"long_name": text, "units": units, **more}

    space, body = {"frame": "space"}, {"frame": "body"}
    variables = {
        "position": along(
            states.position, ("body", "space"), "m", "position of the reference point", **space
        ),
        "orientation": along(
            states.orientation,
            ("body", "quaternion"),
            "1",
            "unit quaternion, scalar first, body to space; the sign is arbitrary",
        ),
        "velocity": along(
            states.velocity, ("body", "space"), "m s-1", "velocity of the reference point", **space
        ),
        "angular_velocity": along(
            states.angular_velocity, ("body", "axis"), "rad s-1", "angular velocity", **body
        ),
        "energy": along(solution.energy, (), "J", "kinetic and potential energy"),
        "linear_momentum": along(
            momenta[0], ("space",), "kg m s-1", "linear momentum of all bodies", **space
        ),
        "angular_momentum": along(
            momenta[1], ("space",), "kg m2 s-1", "angular momentum about the origin", **space
        ),
        "position_drift": along(
            solution.position_drift, (), "1", "largest violation of the internal constraints"
        ),
        "velocity_drift": along(
            solution.velocity_drift, (), "s-1", "largest violation of their time derivatives"
        ),
        "unknowns": along(
            unknowns,
            ("unknown",),
            "",
            "unknowns of the formulation: positions x, rotation coordinates a, velocities v, "
            "rotational velocities w",
        ),
    }
    if reference is not None:
        variables["chart"] = along(
            reference,
            ("body", "quaternion"),
            "1",
            "reference rotation of the moving chart, a unit quaternion, a factor on the left",
        )
    variables |= _mass_properties(model, batch)
    stats = {}
    for name, value in solution.stats.items():
        if batch:
            variables[name] = (batch, np.broadcast_to(value, ts.shape[:1]), {"units": "1"})
        else:
            stats[name] = int(value)
    if not batch:
        stats["result"] = RESULTS[solution.result] or "successful"
    coordinates = {
        "time": ("time", times[reached], {"long_name": "time", "units": "s"}),
        "body": ("body", np.array(_body_names(model))),
        "space": ("space", np.array(["x", "y", "z"])),
        "axis": ("axis", np.array([1, 2, 3])),
        "quaternion": ("quaternion", np.array(["p0", "p1", "p2", "p3"])),
        "axis_2": ("axis_2", np.array([1, 2, 3])),
        "unknown": ("unknown", np.array(_unknown_names(model))),
    }
    return xarray.Dataset(
        variables,
        coordinates,
        {
            "formulation": type(model).__name__,
            **_static_fields(model),
            "conventions": _CONVENTIONS,
            **stats,
            **(attributes or {}),
            "rigidjax_version": _version(),
        },
    )


def _mass_properties(model: AbstractFormulation, batch: tuple[str, ...]) -> dict[str, Any]:
    """Inertias as full tensors, and masses where bodies translate."""
    mechanics = model.mechanics
    tensors = []
    for inertia in mechanics.inertias():
        value = np.asarray(inertia)
        principal = value.ndim - len(batch) == 1
        tensors.append(value[..., None] * np.eye(3) if principal else value)
    variables: dict[str, Any] = {
        "inertia": (
            (*batch, "body", "axis", "axis_2"),
            np.stack(tensors, axis=len(batch)),
            {"long_name": "inertia about the reference point", "units": "kg m2", "frame": "body"},
        )
    }
    if mechanics.translates:
        masses = [np.asarray(mass) for mass in mechanics.masses()]
        variables["mass"] = (
            (*batch, "body"),
            np.stack(masses, axis=len(batch)),
            {"long_name": "mass", "units": "kg"},
        )
    return variables


def _body_names(model: AbstractFormulation) -> list[str]:
    if isinstance(model.system, System):
        return [body.name for body in model.system.bodies]
    return ["body"]


def _unknown_names(model: AbstractFormulation) -> list[str]:
    """Names in the order of the layout: x1 x2 x3 a1 ... v1 v2 v3 w1 ..."""
    layout = model.layout
    names = []
    for shift, turn, count in (("x", "a", layout.num_coordinates), ("v", "w", layout.num_rates)):
        for body in _body_names(model):
            prefix = f"{body}." if layout.num_bodies > 1 else ""
            own = [f"{shift}{i + 1}" for i in range(3)] if layout.translates else []
            own += [f"{turn}{i + 1}" for i in range(count)]
            names += [prefix + name for name in own]
    return names


def _static_fields(model: AbstractFormulation) -> dict[str, str]:
    """What was chosen when the formulation was built, as text."""
    fields = {
        name: str(value)
        for name, value in vars(model).items()
        if isinstance(value, str | bool | int)
    }
    return {"rotation": _rotation_name(model), **fields}


def _rotation_name(model: AbstractFormulation) -> str:
    rotation = model.rotation
    choices = [str(v) for v in vars(rotation).values() if isinstance(v, str)]
    return f"{type(rotation).__name__}({', '.join(choices)})"


def _version() -> str:
    from .. import __version__

    return __version__
