"""Measurements from NetCDF files, with the units of their variables."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from ...checks import did_you_mean
from ...extras import import_optional
from .arrays import read_arrays
from .measurements import Measurements
from .reading import ReadOptions

if TYPE_CHECKING:
    import xarray


def read_netcdf(
    path: str | os.PathLike[str],
    sensors: Mapping[Any, str | Sequence[str]],
    *,
    time: str = "time",
    run: str | None = None,
    **options: Unpack[ReadOptions],
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
    groups = {s: (name,) if isinstance(name, str) else tuple(name) for s, name in sensors.items()}
    known = [str(variable) for variable in data.variables]
    for name in (time, *(name for group in groups.values() for name in group)):
        if name not in known:
            raise ValueError(
                f"{path}: there is no variable {name!r}; the variables are {known}."
                + did_you_mean(name, known)
            )
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
    lead = axis if run is None else [run, axis[0]]
    given, stated = dict(options.get("units") or {}), {}
    stated[time] = _read_unit(path, data, time, given.pop("time", given.pop(time, None)))
    shape = [data.sizes[d] for d in lead]
    times = data[time].broadcast_like(data[time] if run is None else data[run])
    times = times.transpose(*lead).values
    rows = _used_rows(path, time, times)
    arrays = {time: times[rows]}
    for sensor, group in groups.items():
        for name in group:
            rest = [d for d in data[name].dims if d not in lead]
            if {*lead} - {*data[name].dims} or len(rest) > (len(group) == 1):
                raise ValueError(
                    f"{path}: the variable {name!r} of the {sensor.name} must have the dimensions "
                    f"{lead}{' and at most one more' if len(group) == 1 else ''}; it has "
                    f"{list(data[name].dims)}."
                )
            samples = data[name].transpose(*lead, *rest).values
            arrays[name] = samples[rows]
            stated[name] = _read_unit(path, data, name, given.pop(name, given.get(sensor)))
    if run is not None:
        labels = np.asarray(data[run])[:, None]
        arrays[run] = np.broadcast_to(labels, shape)[rows]
    _, _, since = str(data[time].attrs.get("units", "")).partition(" since ")
    options["units"] = {**{k: v for k, v in given.items() if k not in sensors}, **stated}
    columns = {s: group[0] if len(group) == 1 else group for s, group in groups.items()}
    return read_arrays(path, arrays, columns, time=time, run=run, since=since, **options)


def _used_rows(path: Any, time: str, times: np.ndarray) -> np.ndarray:
    """Return which samples are not the padding at the end of a run, in the shape of `times`."""
    if times.dtype.kind not in "fiu":
        return np.ones(times.shape, bool)
    is_used = np.cumsum(np.isfinite(times)[..., ::-1], axis=-1)[..., ::-1] > 0
    if np.count_nonzero(is_used, axis=-1).min() < 2:
        raise ValueError(
            f"{path}: the variable {time!r} has less than two finite times in a run; leave the "
            "run out of the file."
        )
    return is_used


def _read_unit(path: Any, data: "xarray.Dataset", name: str, given: str | None) -> str:
    unit = data[name].attrs.get("units") if given is None else given
    if unit is None:
        raise ValueError(
            f"{path}: the variable {name!r} has no attribute `units`. State it with "
            f'`units={{{name!r}: "..."}}`.'
        )
    # The unit of "seconds since 2024-01-01" is the second.
    return str(unit).partition(" since ")[0]
