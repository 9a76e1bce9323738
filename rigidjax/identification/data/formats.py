"""Arrays of files in binary formats: NumPy, Parquet and MATLAB."""

import os
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...extras import import_optional


def load_npz(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Return the arrays of a NumPy file by name.

    **Errors:** `ValueError` for a file that is none, or that holds Python objects; `OSError`.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (zipfile.BadZipFile, ValueError, AttributeError) as error:
        raise ValueError(
            f"{path} is no NumPy file of arrays ({error}). Write it with `numpy.savez`, and "
            "without Python objects."
        ) from error


def load_parquet(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Return the columns of a Parquet file by name; lists of numbers are rows of an array.

    **Errors:** `ModuleNotFoundError` without the extra `rigidjax[parquet]`; `ValueError` for a file
    that is none; `OSError`.
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


def load_mat(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Return the arrays of a MATLAB file by name; fields of structures as `"log.q"`.

    Files of version 7.3 are read with h5py, others with SciPy.

    **Errors:** `ValueError` for a file that is none; `OSError`.
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
