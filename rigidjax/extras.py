"""Optional packages and the extras of this package that install them."""

import importlib
from typing import Any

_EXTRAS = {
    "blackjax": "posterior",
    "collada": "meshes",
    "distributed": "ensembles",
    "gymnasium": "gym",
    "h5netcdf": "data",
    "h5py": "data",
    "jinja2": "plot",
    "matplotlib": "plot",
    "mcap": "mcap",
    "mcap_ros2": "mcap",
    "mujoco": "mjcf",
    "pandas": "data",
    "pyarrow": "parquet",
    "pydantic": "cli",
    "rich": "cli",
    "typer": "cli",
    "xarray": "data",
    "zarr": "ensembles",
    "ziglang": "export",
}


def import_optional(name: str, user: str) -> Any:
    """Import a package that an extra of rigidjax installs.

    **Arguments:** `name` of the module, such as `"pyarrow.parquet"`; `user`, the subject of the
    error message, in the plural, such as `"Parquet files"`.
    **Errors:** `ModuleNotFoundError`, with the command that installs the package.
    """
    package = name.partition(".")[0]
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = f" ({error})" if error.name != package else ""
        raise ModuleNotFoundError(
            f'{user} need {package}: pip install "rigidjax[{_EXTRAS[package]}]".{missing}',
            name=error.name,
        ) from error
