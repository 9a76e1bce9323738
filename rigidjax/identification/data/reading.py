"""Parsing that all file formats share: columns of sensors, units, gaps, order of times."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypedDict

import numpy as np

from ...checks import find_duplicates
from ...rotations import EulerAngles
from ...sensors import AbstractSensor
from .measurements import Measurements
from .units import factor, quantities_of

Gaps = Literal["raise", "mask"]
# Deviation of rounded numbers from a rotation that is accepted.
_TOLERANCE = 1e-3


class ReadOptions(TypedDict, total=False):
    """Options that all readers have, see `read_csv`."""

    noise: Mapping[Any, Any] | None
    units: Mapping[Any, str] | None
    orientation: Mapping[Any, str] | None
    gaps: Gaps
    every: int
    time_zero: str | None


class SensorColumns(NamedTuple):
    """Columns of one sensor: their names, factors to SI units, and orientation convention."""

    sensor: Any
    names: tuple[str, ...]
    factors: np.ndarray
    orientation: str | None


class FileLayout(NamedTuple):
    """Layout of a file: the time column with its factor to seconds, and the sensors."""

    time: str
    time_factor: float
    sensors: tuple[SensorColumns, ...]
    gaps: Gaps
    every: int

    @property
    def names(self) -> list[str]:
        """All columns with numbers: time, then those of the sensors."""
        return [self.time, *(name for columns in self.sensors for name in columns.names)]


def make_layout(
    sensors: Mapping[Any, Sequence[str]], time: str, options: ReadOptions, function: str
) -> FileLayout:
    """Return the layout of a file, after checking the arguments that describe it.

    **Errors:** `ValueError` for a number of columns that does not fit a sensor, an orientation
    whose convention is not stated, an unknown unit, or a unit of a column that is not read.
    """
    if unknown := sorted(set(options) - set(ReadOptions.__annotations__)):
        raise TypeError(f"`{function}` has no argument {unknown[0]!r}.")
    gaps, every = options.get("gaps", "raise"), options.get("every", 1)
    if gaps not in ("raise", "mask"):
        raise ValueError(f'`{function}(gaps=...)` must be "raise" or "mask"; got {gaps!r}.')
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        raise ValueError(
            f"`{function}(every=...)` must be a positive integer, 1 for all samples; got {every!r}."
        )
    units, orientation = (dict(options.get(k) or {}) for k in ("units", "orientation"))
    for argument, given in (("units", units), ("orientation", orientation)):
        for key in given:
            if isinstance(key, AbstractSensor) and key not in sensors:
                raise ValueError(
                    f"`{function}({argument}=...)` names the sensor {key.name!r}, of which nothing "
                    "is read."
                )
    columns_by_sensor = tuple(
        _make_columns(s, names, units, orientation.pop(s, None), function)
        for s, names in sensors.items()
    )
    if orientation:
        raise ValueError(
            f"`{function}(orientation=...)` takes sensors as keys, such as `rj.Attitude()`; got "
            f"{list(orientation)}."
        )
    read = [name for columns in columns_by_sensor for name in columns.names]
    if repeated := find_duplicates((time, *read)):
        raise ValueError(f"`{function}` is to read the columns {repeated} more than once.")
    unread = [k for k in units if isinstance(k, str) and k not in (time, "time", *read)]
    if unread:
        raise ValueError(
            f"`{function}(units=...)` names {unread}, which are not read; the columns are "
            f"{[time, *read]}."
        )
    unit = units.get(time, units.get("time", "s") if "time" not in read else "s")
    try:
        seconds = factor(unit, "time")
    except ValueError as error:
        raise ValueError(f"Column {time!r}: {error}") from error
    return FileLayout(time, seconds, columns_by_sensor, gaps, every)


def _make_columns(
    sensor: Any,
    names: Sequence[str],
    units: Mapping[Any, str],
    convention: str | None,
    function: str,
) -> SensorColumns:
    is_orientation = sensor.value_shape == (4,)
    if is_orientation:
        size = _num_columns(convention, sensor.name)
    else:
        size = int(np.prod(sensor.value_shape))
        if convention is not None:
            raise ValueError(
                f"`{function}(orientation=...)` is for sensors of orientation; the {sensor.name} "
                "is none."
            )
    if isinstance(names, str) or len(names) != size:
        raise ValueError(
            f"`{function}(sensors=...)` must name {size} columns for the sensor "
            f"{sensor.name!r}; got {names!r}."
        )
    if not is_orientation:
        quantities = quantities_of(sensor.unit)
    else:
        quantities = ("angle",) if size == 3 else ("number",)
    factors = np.ones(size)
    for k, name in enumerate(names):
        unit = units.get(name, units.get(sensor))
        if unit is not None:
            try:
                factors[k] = factor(unit, *quantities)
            except ValueError as error:
                raise ValueError(f"Column {name!r} of the {sensor.name}: {error}") from error
    return SensorColumns(sensor, tuple(names), factors, convention)


def make_run(
    layout: FileLayout,
    table: np.ndarray,
    place: Callable[[int], str],
    noise: Mapping[Any, Any] | None,
    name: str,
    time_zero: str | None = None,
) -> Measurements:
    """Return one run from a table of numbers as they are in the file.

    **Arguments:** `table` (T, columns), in the order of `layout.names`, NaN for gaps; `place(k)`,
    the location of row k, for messages; `noise`, as in `Measurements`.
    **Errors:** `ValueError` for fewer than two samples, and times that are missing or do not
    increase.
    """
    run_text = f" of run {name}" if name else ""
    if len(table) < 2:
        raise ValueError(f"{place(0)}: there is only one sample{run_text}.")
    ts = table[:, 0] * layout.time_factor
    missing = np.flatnonzero(~np.isfinite(ts))
    if missing.size:
        raise ValueError(f"{place(int(missing[0]))}: there is no time in column {layout.time!r}.")
    late = np.flatnonzero(np.diff(table[:, 0]) <= 0)
    if late.size:
        k = int(late[0]) + 1
        raise ValueError(
            f"{place(k)}: the times{run_text} must increase, column {layout.time!r} goes from "
            f"{table[k - 1, 0]:g} ({place(k - 1).rpartition(', ')[2]}) to {table[k, 0]:g}. Sort "
            "the lines and remove repeated ones; say which column tells runs apart (`run=`)."
        )
    if layout.every > 1:
        rows, table = _thin(layout, table)
        if len(rows) < 2:
            raise ValueError(f"{place(0)}: `every` = {layout.every} leaves one sample{run_text}.")
        noise = {
            sensor: _select_noise_rows(std, rows, len(ts)) for sensor, std in (noise or {}).items()
        }
        ts, place = ts[rows], functools.partial(_place_of_row, place, rows)
    values, mask, begin = {}, {}, 1
    for columns in layout.sensors:
        end = begin + len(columns.names)
        part = table[:, begin:end] * columns.factors
        is_valid = np.isfinite(part)
        if columns.orientation is not None:
            part = _as_quaternions(part, columns.orientation, place, columns.sensor.name)
            is_valid = is_valid.all(axis=1)
        values[columns.sensor] = part.reshape(len(table), *columns.sensor.value_shape)
        if not is_valid.all():
            mask[columns.sensor] = is_valid
        begin = end
    return Measurements(ts, values, noise, mask=mask, name=name, time_zero=time_zero)


def _thin(layout: FileLayout, table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the rows that are kept, and their table, with gaps between samples."""
    thin, begin = np.full_like(table, np.nan), 1
    for columns in layout.sensors:
        end = begin + len(columns.names)
        sampled = np.flatnonzero(np.isfinite(table[:, begin:end]).any(axis=1))[:: layout.every]
        thin[sampled, begin:end] = table[sampled, begin:end]
        begin = end
    rows = np.flatnonzero(np.isfinite(thin).any(axis=1))
    return rows, thin[rows]


def _place_of_row(place: Callable[[int], str], rows: np.ndarray, k: int) -> str:
    return place(int(rows[k]))


def _select_noise_rows(noise: Any, rows: np.ndarray, length: int) -> Any:
    """Return the noise of the samples that are kept, where it is given per sample."""
    noise = np.asarray(noise)
    return noise[rows] if noise.ndim == 2 and len(noise) == length else noise


def _num_columns(convention: str | None, sensor: str) -> int:
    """Return the number of columns of an orientation in a convention.

    **Arguments:** `convention`: `"wxyz"` or `"xyzw"`, a quaternion with the scalar first or last;
    `"matrix"`, R11, R12, ..., R33, body to space; or an intrinsic Euler sequence such as `"ZYX"`,
    angles in its order. `sensor`, its name, for messages.
    **Errors:** `ValueError` for `None`, which asks for a convention, and for an unknown one.
    """
    if convention is None:
        raise ValueError(
            f"Say how the columns of the {sensor} write an orientation: "
            'orientation="wxyz" or "xyzw" for a quaternion with the scalar first or last, "matrix" '
            'for R11, R12, ..., R33, or an intrinsic Euler sequence such as "ZYX".'
        )
    if convention in ("wxyz", "xyzw"):
        return 4
    if convention == "matrix":
        return 9
    if isinstance(convention, str) and convention.islower() and len(convention) == 3:
        raise ValueError(
            f"The orientation {convention!r} of the {sensor} would be rotations about space axes; "
            f"write the same as the intrinsic sequence {convention[::-1].upper()!r}, with the "
            "columns in reverse."
        )
    try:
        EulerAngles(convention)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"The orientation of the {sensor} must be 'wxyz', 'xyzw', 'matrix', or an intrinsic "
            f"Euler sequence in upper case such as 'ZYX'; got {convention!r}."
        ) from error
    return 3


def _as_quaternions(
    values: np.ndarray, convention: str, place: Callable[[int], str], sensor: str
) -> np.ndarray:
    """Return unit quaternions (T, 4), scalar first, of orientations (T, n) in a convention.

    Rows with NaN stay NaN. **Arguments:** `values`, angles in rad; `place(k)`, the location of row
    k.
    **Errors:** `ValueError` for a quaternion that is not of unit length, or a matrix that is not a
    rotation, to within 1e-3.
    """
    # Imported here because it takes long.
    from scipy.spatial.transform import Rotation

    finite = np.isfinite(values).all(axis=1)
    quaternions = np.full((len(values), 4), np.nan)
    rows = values[finite]
    if convention in ("wxyz", "xyzw"):
        converted = rows if convention == "wxyz" else np.roll(rows, 1, axis=1)
        norm = np.linalg.norm(converted, axis=1, keepdims=True)
        wrong, what = np.abs(norm[:, 0] - 1), "a quaternion of unit length"
        converted = converted / np.where(norm > 0, norm, 1.0)
    elif convention == "matrix":
        R = rows.reshape(-1, 3, 3)
        wrong = np.abs(R @ np.swapaxes(R, 1, 2) - np.eye(3)).max(axis=(1, 2), initial=0.0)
        wrong, what = np.where(np.linalg.det(R) > 0, wrong, np.inf), "a rotation matrix"
        R = np.where((wrong > _TOLERANCE)[:, None, None], np.eye(3), R)
        converted = Rotation.from_matrix(R).as_quat(scalar_first=True)
    else:
        wrong, what = np.zeros(len(rows)), ""
        converted = Rotation.from_euler(convention, rows).as_quat(scalar_first=True)
    bad = np.flatnonzero(wrong > _TOLERANCE)
    if bad.size:
        k = int(np.flatnonzero(finite)[bad[0]])
        raise ValueError(
            f"{place(k)}: the {sensor} must be {what} to within {_TOLERANCE:g}; got {values[k]} as "
            f"{convention!r}."
        )
    quaternions[finite] = converted
    return quaternions


def raise_gaps(where: str, table: np.ndarray, names: Sequence[str]) -> None:
    """Raise `ValueError` for the first value of a table (T, columns) that is not finite."""
    rows, columns = np.nonzero(~np.isfinite(table))
    if len(rows):
        raise ValueError(
            f"{where}, sample {rows[0]}: {names[columns[0]]!r} must be finite; got "
            f'{table[rows[0], columns[0]]}. For a sample that was not taken, read with gaps="mask".'
        )
