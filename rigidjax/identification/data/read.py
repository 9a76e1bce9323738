"""Measurements from a file of any supported format."""

import os
import pathlib
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from ...extras import import_optional
from .arrays import read_arrays
from .csv import read_csv
from .mcap import read_mcap
from .measurements import Measurements
from .netcdf import read_netcdf
from .reading import ReadOptions

_NETCDF = (".nc", ".nc4", ".h5")
_TEXT = (".csv", ".tsv", ".txt", ".dat", ".log")
# Names of the times by default.
_TIMES = {".mcap": "header.stamp", **dict.fromkeys(_NETCDF, "time")}


def read(
    path: str | os.PathLike[str],
    sensors: Mapping[Any, str | Sequence[str]],
    *,
    time: str | None = None,
    run: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    **options: Unpack[ReadOptions],
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

    **Arguments:** `path`, the file; `sensors`, for each its columns; `time`, by default `"time_s"`
    of text files, NumPy, Parquet and MATLAB, `"time"` of NetCDF, `"header.stamp"` of MCAP; in NumPy
    and MATLAB files it may name a number, the time between samples; `delimiter`, `decimal`, of text
    files, as in `read_csv`; `run`, `noise`, `units`, `orientation`, `gaps`, `every`, `time_zero`,
    as in `read_csv`.
    **Returns:** the runs, in the order in which they begin in the file.
    **Errors:** `ValueError` for an unknown ending and everything that the file does not fit;
    `ModuleNotFoundError` for a format whose extra is missing; `OSError` for a file that cannot be
    read.
    """
    ending = pathlib.Path(path).suffix.lower()
    time = _TIMES.get(ending, "time_s") if time is None else time
    if ending in _TEXT or (ending not in _BINARY and _is_text(path)):
        columns = {s: (c,) if isinstance(c, str) else c for s, c in sensors.items()}
        marks = {"delimiter": delimiter, "decimal": decimal}
        return read_csv(path, columns, time=time, run=run, **marks, **options)
    if delimiter is not None or decimal is not None:
        raise ValueError(
            f"`read(delimiter=..., decimal=...)` are for text files; {path} is none. Leave them "
            "out."
        )
    if ending in _NETCDF:
        return read_netcdf(path, sensors, time=time, run=run, **options)
    if ending == ".mcap":
        if run is not None:
            raise ValueError(f"`read(run=...)`: {path} is one run. Cut it into pieces afterwards.")
        return read_mcap(path, sensors, time=time, **options)
    if ending not in _ARRAYS:
        known = [*_TEXT, *_BINARY]
        raise ValueError(
            f"`read` cannot read {path}: it is no text, and the ending of another format must be "
            f"one of {', '.join(known)}. Rename the file, or call the function of its format."
        )
    return read_arrays(path, _ARRAYS[ending](path), sensors, time=time, run=run, **options)


def _is_text(path: str | os.PathLike[str]) -> bool:
    """Return whether the first bytes of a file have no zero among them."""
    with open(path, "rb") as file:
        return b"\0" not in file.read(4096)


def _load_npz(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Return the arrays of a NumPy file by name.

    **Errors:** `ValueError` for a file of another format, or with Python objects; `OSError`.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (zipfile.BadZipFile, ValueError, AttributeError) as error:
        raise ValueError(
            f"{path} is no NumPy file of arrays ({error}). Write it with `numpy.savez`, and "
            "without Python objects."
        ) from error


def _load_parquet(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Return the columns of a Parquet file by name; lists of numbers are rows of an array.

    **Errors:** `ModuleNotFoundError` without the extra `rigidjax[parquet]`; `ValueError` for
    another format; `OSError`.
    """
    pyarrow = import_optional("pyarrow", "Parquet files")
    parquet = import_optional("pyarrow.parquet", "Parquet files")
    try:
        table = parquet.read_table(path)
    except pyarrow.ArrowInvalid as error:
        raise ValueError(f"{path} is no Parquet file: {error}.") from error
    arrays = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        values = column.to_numpy()
        if values.dtype == object and len(values) and isinstance(values[0], np.ndarray):
            if len({len(row) for row in values}) > 1:
                raise ValueError(f"{path}: the lists of the column {name!r} differ in length.")
            values = np.stack(values.tolist())
        arrays[name] = values
    return arrays


def _load_mat(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Return the arrays of a MATLAB file by name; fields of structures as `"log.q"`.

    Files of version 7.3 are read with h5py, others with SciPy.

    **Errors:** `ValueError` for another format; `OSError`.
    """
    # Imported here because it takes long.
    import scipy.io

    try:
        found = scipy.io.loadmat(path, simplify_cells=True)
    except NotImplementedError:
        # SciPy raises it for files of version 7.3, which are HDF5.
        return _load_mat73(path)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is no MATLAB file: {error}.") from error
    arrays: dict[str, np.ndarray] = {}
    _flatten({k: v for k, v in found.items() if not k.startswith("__")}, "", arrays)
    return arrays


def _flatten(values: Mapping[str, Any], prefix: str, arrays: dict[str, np.ndarray]) -> None:
    for name, value in values.items():
        if isinstance(value, dict):
            _flatten(value, f"{prefix}{name}.", arrays)
        else:
            arrays[f"{prefix}{name}"] = np.asarray(value)


def _load_mat73(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    h5py = import_optional("h5py", "MATLAB files of version 7.3")

    arrays: dict[str, np.ndarray] = {}

    def add(name: str, item: Any) -> None:
        is_number = isinstance(item, h5py.Dataset) and item.dtype.kind in "fiu"
        if is_number and not name.startswith("#"):
            # MATLAB stores columns first.
            arrays[name.replace("/", ".")] = np.asarray(item).T

    with h5py.File(path) as file:
        file.visititems(add)
    return arrays


_ARRAYS: dict[str, Callable[[Any], dict[str, Any]]] = {
    ".npz": _load_npz,
    ".parquet": _load_parquet,
    ".pq": _load_parquet,
    ".mat": _load_mat,
}
_BINARY = (*_NETCDF, *_ARRAYS, ".mcap")
