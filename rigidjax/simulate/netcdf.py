"""Trajectories in NetCDF files."""

import os
import pathlib
from typing import TYPE_CHECKING, Any

from ..extras import import_optional
from ..io.files import replacing
from .dataset import to_dataset
from .solution import Solution

if TYPE_CHECKING:
    import xarray


def save(
    trajectory: "Solution | xarray.Dataset",
    path: str | os.PathLike[str],
    force: bool = False,
) -> pathlib.Path:
    """Write a trajectory as a NetCDF 4 file, completely or not at all.

    **Arguments:** `trajectory`, a `Solution` or a dataset from `to_dataset`; `path`; `force`,
    replace an existing file.
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
