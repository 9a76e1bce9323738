"""Measurements from a file of any supported format."""

import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .arrays import read_arrays
from .csv import read_csv
from .formats import load_mat, load_npz, load_parquet
from .mcap import read_mcap
from .measurements import Measurements
from .netcdf import read_netcdf
from .reading import Gaps

_ARRAYS: dict[str, Callable[[Any], dict[str, Any]]] = {
    ".npz": load_npz,
    ".parquet": load_parquet,
    ".pq": load_parquet,
    ".mat": load_mat,
}
_NETCDF = (".nc", ".nc4", ".h5")
_TEXT = (".csv", ".tsv", ".txt", ".dat", ".log")
_BINARY = (*_NETCDF, *_ARRAYS, ".mcap")
# Names of the times by default.
_TIMES = {".mcap": "header.stamp", **dict.fromkeys(_NETCDF, "time")}


def read(
    path: str | os.PathLike[str],
    sensors: Mapping[Any, str | Sequence[str]],
    *,
    time: str | None = None,
    run: str | None = None,
    noise: Mapping[Any, Any] | None = None,
    units: Mapping[Any, str] | None = None,
    orientation: Mapping[Any, str] | None = None,
    gaps: Gaps = "raise",
    every: int = 1,
    time_zero: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
) -> list[Measurements]:
    """Read one or several runs from a file, in the format that its ending names.

    | ending | columns |
    |---|---|
    | `.csv`, `.tsv`, `.txt`, `.dat`, `.log`, other text | columns of a text file, see `read_csv` |
    | `.nc`, `.nc4`, `.h5` | variables of NetCDF 4, see `read_netcdf` |
    | `.npz` | arrays of NumPy: `"q"` all columns of an array, `"q[2]"` one of them, from 0 |
    | `.parquet`, `.pq` | columns of a table, with the extra `rigidjax[parquet]` |
    | `.mat` | arrays of MATLAB, fields of structures as `"log.q"` |
    | `.mcap` | messages of ROS 2, `"/imu.angular_velocity.x"`, see `read_mcap` |

    ```python
    runs = rj.identification.read("log.npz", {rj.JointCoordinate("hip"): ["q[0]"]}, time="t")
    ```

    **Arguments:** `path`; `sensors`, for each its columns; `time`, by default `"time_s"` of text
    files, NumPy, Parquet and MATLAB, `"time"` of NetCDF, `"header.stamp"` of MCAP; in NumPy and
    MATLAB files it may name a number, the time between samples. The others are those of `read_csv`;
    `delimiter` and `decimal` are for text files only.
    **Returns:** the runs, in the order in which they begin in the file.
    **Errors:** `ValueError` for an unknown ending and everything that the file does not fit;
    `ModuleNotFoundError` for a format whose extra is missing; `OSError` for a file that cannot be
    read.
    """
    ending = pathlib.Path(path).suffix.lower()
    options: dict[str, Any] = {
        "time": _TIMES.get(ending, "time_s") if time is None else time,
        "noise": noise,
        "units": units,
        "orientation": orientation,
        "gaps": gaps,
        "every": every,
        "time_zero": time_zero,
    }
    if ending in _TEXT or (ending not in _BINARY and _is_text(path)):
        columns = {s: (c,) if isinstance(c, str) else c for s, c in sensors.items()}
        return read_csv(path, columns, run=run, delimiter=delimiter, decimal=decimal, **options)
    if delimiter is not None or decimal is not None:
        raise ValueError(
            f"`read(delimiter=..., decimal=...)` are for text files; {path} is none. Leave them "
            "out."
        )
    if ending in _NETCDF:
        return read_netcdf(path, sensors, run=run, **options)
    if ending == ".mcap":
        if run is not None:
            raise ValueError(f"`read(run=...)`: {path} is one run. Cut it into pieces afterwards.")
        return read_mcap(path, sensors, **options)
    if ending not in _ARRAYS:
        known = [*_TEXT, *_BINARY]
        raise ValueError(
            f"`read` cannot read {path}: it is no text, and the ending of another format must be "
            f"one of {', '.join(known)}. Rename the file, or call the function of its format."
        )
    return read_arrays(path, _ARRAYS[ending](path), sensors, run=run, **options)


def _is_text(path: str | os.PathLike[str]) -> bool:
    """Return whether the first bytes of a file have no zero among them."""
    with open(path, "rb") as file:
        return b"\0" not in file.read(4096)
