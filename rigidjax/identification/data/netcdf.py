"""Measurements from NetCDF files, with the units of their variables."""

import os
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from ...checks import did_you_mean
from ...extras import import_optional
from .measurements import Measurements
from .reading import FileLayout, Gaps, make_layout, make_run, raise_gaps
from .time_stamps import LEAST_STAMP, detect_stamps, seconds_of_date

if TYPE_CHECKING:
    import xarray


def read_netcdf(
    path: str | os.PathLike[str],
    sensors: Mapping[Any, str | Sequence[str]],
    *,
    time: str = "time",
    run: str | None = None,
    noise: Mapping[Any, Any] | None = None,
    units: Mapping[Any, str] | None = None,
    orientation: Mapping[Any, str] | None = None,
    gaps: Gaps = "raise",
    every: int = 1,
    time_zero: str | None = None,
) -> list[Measurements]:
    """Read one or several runs from a NetCDF 4 file.

    Stamps since 1970, or large ones since another date that the unit states, are counted from the
    first one in the file, exactly, which is `Measurements.time_zero`.

    **Arguments:**

    - `path`: the file.
    - `sensors`: for each sensor the variable with its samples, along time and one more dimension
      (none for a sensor with one value), or the names of one variable per component.
    - `time`: the variable with the times, along one dimension, or along `run` and another one, then
      padded with NaN at the end of shorter runs.
    - `run`: the dimension along which there are several runs; `None` for a single run.
    - `units`: replaces the attribute `units` of variables, by their names, or by sensor; every
      variable must have one or the other.
    - `noise`, `orientation`, `gaps`, `every`, `time_zero`: as in `read_csv`; NaN are gaps.

    **Returns:** the runs.
    **Errors:** `ValueError`, with the file and the variable, for missing variables, wrong
    dimensions, missing or unknown units, gaps, values that are not finite, times out of order, and
    an orientation whose convention is not stated; `OSError` for a file that cannot be read.
    """
    xarray = import_optional("xarray", "NetCDF files")

    # Times are not decoded: their unit is converted here, like those of other variables.
    with xarray.open_dataset(
        path, engine="h5netcdf", decode_times=False, decode_timedelta=False
    ) as opened:
        data = opened.load()
    names = {
        sensor: (_check_variable(path, data, name),) if isinstance(name, str) else tuple(name)
        for sensor, name in sensors.items()
    }
    for name in (time, *(name for group in names.values() for name in group)):
        _check_variable(path, data, name)
    units = dict(units or {})
    if run is not None and run not in data.dims:
        raise ValueError(
            f"{path}: there is no dimension {run!r} of runs; there are {list(map(str, data.dims))}."
        )
    axis = [d for d in data[time].dims if d != run]
    if len(axis) != 1:
        raise ValueError(
            f"{path}: the variable {time!r} must have one dimension"
            f"{'' if run is None else f' besides {run!r}'}; it has {data[time].dims}."
        )
    blocks = {
        sensor: _read_samples(path, data, group, sensor, run, axis[0])
        for sensor, group in names.items()
    }
    parts = {
        sensor: [f"{group[0]}[{k}]" for k in range(blocks[sensor].shape[2])]
        if len(group) == 1 and blocks[sensor].shape[2] > 1
        else list(group)
        for sensor, group in names.items()
    }
    stated = {time: _read_unit(path, data, time, units.pop("time", units.pop(time, None)))}
    for sensor, group in names.items():
        for k, part in enumerate(parts[sensor]):
            name = group[0] if len(group) == 1 else group[k]
            stated[part] = _read_unit(path, data, name, units.get(name, units.get(sensor)))
    unread = [k for k in units if k not in names and not any(k in g for g in names.values())]
    if unread:
        raise ValueError(f"`read_netcdf(units=...)` names {unread}, which are not read.")
    layout = make_layout(parts, time, stated, orientation, gaps, every, "read_netcdf")
    return _make_runs(path, data, layout, blocks, run, noise, time_zero)


def _read_times(
    path: Any, data: "xarray.Dataset", layout: FileLayout, time_zero: str | None
) -> Any:
    """Return times in their unit, counted from `time_zero` or the first one if they are stamps.

    **Returns:** also the stamp that is 0 s, `None` if times are plain numbers.
    """
    values = np.asarray(data[layout.time].values)
    plain = _read_numbers(path, data, layout.time)
    finite = np.flatnonzero(np.isfinite(plain))
    if not finite.size:
        return plain, None
    first = values.flat[finite[0]].item()
    _, _, since = str(data[layout.time].attrs.get("units", "")).partition(" since ")
    if time_zero is None and abs(first) * layout.time_factor < LEAST_STAMP:
        return plain, None
    total = Decimal(repr(first)) + seconds_of_date(since) / Decimal(repr(layout.time_factor))
    stamps = detect_stamps(str(total), layout.time, layout.time_factor, True, time_zero)
    assert stamps is not None
    return (values - first).astype(float) + float(total - stamps.zero), stamps.time_zero


def _make_runs(
    path: Any,
    data: "xarray.Dataset",
    layout: FileLayout,
    blocks: dict[Any, np.ndarray],
    run: str | None,
    noise: Mapping[Any, Any] | None,
    time_zero: str | None,
) -> list[Measurements]:
    times, zero = _read_times(path, data, layout, time_zero)
    count = 1 if run is None else data.sizes[run]
    if run is not None and run in data[layout.time].dims:
        times = np.moveaxis(times, data[layout.time].dims.index(run), 0)
    else:
        times = np.broadcast_to(times, (count, *times.shape))
    labels = [""] if run is None else [str(x) for x in np.asarray(data[run])]
    runs = []
    for b in range(count):
        # Shorter runs are padded at the end.
        finite = np.flatnonzero(np.isfinite(times[b]))
        end = finite[-1] + 1 if finite.size else 0
        if end == 0:
            raise ValueError(f"{path}: the variable {layout.time!r} has no finite time.")
        table = np.concatenate(
            [times[b, :end, None], *(blocks[c.sensor][b, :end] for c in layout.sensors)], axis=1
        )
        location = f"{path}, run {labels[b]}" if run is not None else str(path)
        if layout.gaps == "raise":
            raise_gaps(location, table, layout.names)
        runs.append(make_run(layout, table, _row_locator(location), noise, labels[b], zero))
    return runs


def _row_locator(where: str) -> Callable[[int], str]:
    return lambda k: f"{where}, sample {k}"


def _check_variable(path: Any, data: "xarray.Dataset", name: str) -> str:
    if name in data.variables:
        return name
    known = [str(variable) for variable in data.variables]
    raise ValueError(
        f"{path}: there is no variable {name!r}; the variables are {known}."
        + did_you_mean(name, known)
    )


def _read_numbers(path: Any, data: "xarray.Dataset", name: str) -> np.ndarray:
    values = np.asarray(data[name].values)
    if not (np.issubdtype(values.dtype, np.floating) or np.issubdtype(values.dtype, np.integer)):
        raise ValueError(
            f"{path}: the variable {name!r} must hold real numbers; it has {values.dtype}."
        )
    values = values.astype(float)
    if np.isinf(values).any():
        raise ValueError(f"{path}: the variable {name!r} holds infinite numbers.")
    return values


def _read_samples(
    path: Any,
    data: "xarray.Dataset",
    group: Sequence[str],
    sensor: Any,
    run: str | None,
    axis: Any,
) -> np.ndarray:
    """Return the samples of a sensor, (runs, T, components)."""
    blocks = []
    for name in group:
        dims = list(data[name].dims)
        lead = [axis] if run is None else [run, axis]
        rest = [d for d in dims if d not in lead]
        if any(d not in dims for d in lead) or len(rest) > (len(group) == 1):
            raise ValueError(
                f"{path}: the variable {name!r} of the {sensor.name} must have the dimensions "
                f"{lead}{' and at most one more' if len(group) == 1 else ''}; it has {dims}."
            )
        values = np.transpose(
            _read_numbers(path, data, name), [dims.index(d) for d in (*lead, *rest)]
        )
        values = values if rest else values[..., None]
        blocks.append(values if run is not None else values[None])
    return np.concatenate(blocks, axis=2)


def _read_unit(path: Any, data: "xarray.Dataset", name: str, given: str | None) -> str:
    unit = data[name].attrs.get("units") if given is None else given
    if unit is None:
        raise ValueError(
            f"{path}: the variable {name!r} has no attribute `units`. State it with "
            f'`units={{{name!r}: "..."}}`.'
        )
    # The unit of "seconds since 2024-01-01" is the second.
    return str(unit).partition(" since ")[0]
