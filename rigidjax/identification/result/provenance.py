"""Origin of results: date, hash of the data, versions."""

import datetime
import hashlib
import importlib.metadata
import os
import pathlib
import platform
from collections.abc import Iterable, Sequence

import numpy as np

from ..._version import __version__
from ..data.measurements import Runs

_PACKAGES = ("jax", "jaxlib", "diffrax", "equinox", "optimistix", "numpy")


def software_versions() -> dict[str, str]:
    """Return the versions of rigidjax, Python and the packages that decide on numbers."""
    versions = {"rigidjax": __version__, "python": platform.python_version()}
    return versions | {name: importlib.metadata.version(name) for name in _PACKAGES}


def current_date() -> str:
    """Return the date and time in UTC, ISO 8601, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def file_hash(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of the content of a file, in hexadecimal.

    **Errors:** `OSError` for a file that cannot be read.
    """
    with pathlib.Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text_hash(text: str) -> str:
    """Return the SHA-256 of a text in UTF-8, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def origin_rows(
    data: Sequence[tuple[str, str]] = (), files: Iterable[str | os.PathLike[str]] = ()
) -> list[tuple[str, str]]:
    """Return names and values of the origin of a report: date, files, data, versions.

    **Arguments:** `data`, further names and values; `files`, of which the SHA-256 is stated.
    """
    rows = [("Date", current_date())]
    for file in map(pathlib.Path, files):
        rows.append((str(file), f"SHA-256 {file_hash(file)}" if file.is_file() else "a folder"))
    versions = ", ".join(f"{name} {version}" for name, version in software_versions().items())
    return [*rows, *data, ("Versions", versions)]


def data_hash(runs: Runs) -> str:
    """Return the SHA-256 of times, samples, masks and measured inputs of all runs, in hexadecimal.

    It depends on the order of runs and sensors and on the names of sensors, not on the names of
    runs and not on the noise.
    """
    digest = hashlib.sha256()

    def add(array: np.ndarray) -> None:
        array = np.ascontiguousarray(array)
        digest.update(f"{array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())

    for b, length in enumerate(runs.lengths):
        add(np.asarray(runs.ts)[b, :length])
        for sensor, values, weights in zip(runs.sensors, runs.values, runs.weights, strict=True):
            digest.update(sensor.name.encode())
            used = np.asarray(weights)[b, :length] > 0
            samples = np.asarray(values)[b, :length]
            add(used)
            add(np.where(used.any(axis=-1).reshape(-1, *[1] * (samples.ndim - 1)), samples, 0.0))
        for name in sorted(runs.inputs[b]):
            digest.update(name.encode())
            for array in runs.inputs[b][name]:
                add(np.asarray(array))
    return digest.hexdigest()
