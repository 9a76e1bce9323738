"""Trajectories for the identification of a robot: `[trajectory]`."""

import dataclasses
import functools
import os
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

from ...identification.design.motion_limits import MotionLimits, WorkspaceBox
from ...identification.design.trajectory import Trajectory, design_trajectory
from .case import open_case
from .data import read_common
from .inputs import read_inputs
from .model import read_model, read_model_file
from .table import CaseTable, array_of_tables

# Tables of a case that describe its model; a design uses no others.
_MODEL = ("title", "model", "body", "joint", "force", "motor", "frame", "trajectory")


class TrajectoryCase(NamedTuple):
    """The title of a case, a function that designs its trajectory, and the files that it names."""

    title: str
    design: Callable[[], Trajectory]
    files: tuple[str, ...]


def read_trajectory_case(path: str | os.PathLike[str]) -> TrajectoryCase:
    """Read the model and `[trajectory]` of a case: arguments of `design_trajectory`.

    `[trajectory.limits.NAME]` has the limits of a coordinate, by default those of the model file,
    and `[[trajectory.workspace]]` a box.

    **Errors:** `ValueError` that names the file and the table; `OSError` for files that cannot be
    read.
    """
    path = pathlib.Path(path)
    top, title, _ = open_case(path, None)
    top.values = {key: value for key, value in top.values.items() if key in _MODEL}
    table = top.table("trajectory")
    limits = _file_limits(top, path.parent)
    given = table.table("limits", {})
    for name in [*given.values]:
        limits[name] = limits.get(name, {}) | given.table(name, {}).values
    common, _ = read_common(top, path.parent)
    model = read_model(top, read_inputs(top, path.parent, common), path.parent)
    arguments: dict[str, Any] = {
        "model": model.formulation,
        "limits": {
            name: CaseTable(values, f"{given.where}, [{name}]").build(MotionLimits)
            for name, values in limits.items()
        },
        "workspace": [box.build(WorkspaceBox) for box in array_of_tables(table, "workspace")],
    }
    design = functools.partial(table.build, design_trajectory, **arguments)
    return TrajectoryCase(title, design, () if model.file is None else (model.file,))


def _file_limits(top: CaseTable, folder: pathlib.Path) -> dict[str, dict[str, Any]]:
    """Return the limits of joints in the model file of a case; none without such a file."""
    table = CaseTable(top.values.get("model", {}), "[model]")
    if not table.has("file"):
        return {}
    model, _ = read_model_file(table, folder / table.text("file"), folder)
    limits = {}
    for name, given in model.limits.items():
        values = dataclasses.asdict(given)
        values["torque"] = values.pop("effort")
        limits[name] = {key: value for key, value in values.items() if value is not None}
    return limits
