"""Trajectories in NetCDF files."""

import os
import pathlib
from typing import TYPE_CHECKING, Any

from ..simulate.solution import Solution
from .dataset import to_dataset
from .files import replacing

if TYPE_CHECKING:
    import xarray


def save(
    trajectory: "Solution | xarray.Dataset",
    path: str | os.PathLike[str],
    force: bool = False,
) -> pathlib.Path:
    """Write a trajectory as a NetCDF 4 file, whole or not at all.

    **Arguments:** `trajectory`, a `Solution` or what `to_dataset` made of one; `path`; `force`,
    replace an existing file.
    **Returns:** the path.
    **Raises:** `FileExistsError` unless `force`; `OSError` for a path that cannot be written.
    """
    dataset: Any = to_dataset(trajectory) if isinstance(trajectory, Solution) else trajectory
    with replacing(path, force) as temporary:
        dataset.to_netcdf(temporary, engine="h5netcdf")
    return pathlib.Path(path)


def load(path: str | os.PathLike[str]) -> "xarray.Dataset":
    """Read a trajectory that `save` wrote; the file is closed afterwards.

    **Raises:** `FileNotFoundError`; `OSError` for what is no NetCDF 4 file.
    """
    import xarray

    try:
        dataset = xarray.load_dataset(path, engine="h5netcdf")
    except FileNotFoundError as error:
        raise FileNotFoundError(f"There is no file {path}.") from error
    except OSError as error:
        raise OSError(f"{path} cannot be read as NetCDF 4: {error}.") from error
    # Text comes back as Python objects.
    labels = {
        name: (variable.dims, variable.values.astype(str), variable.attrs)
        for name, variable in dataset.variables.items()
        if variable.dtype == object
    }
    coordinates = {name: label for name, label in labels.items() if name in dataset.coords}
    return dataset.assign(labels).assign_coords(coordinates)
