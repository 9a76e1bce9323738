"""Measurements of a case: `[data]` and `[[sensor]]`."""

import inspect
import pathlib
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np

from ... import sensors
from ...identification import Measurements, merge_runs, read
from ...identification.data.units import factor, quantities_of
from ...sensors.base import AbstractQuantity
from .. import checks
from ..kinds import find_kinds
from .preparation import Column, Cut, Preparation, read_cut, read_preparation
from .table import CaseTable, array_of_tables


class Clock:
    """Origin of time in all files of a case: the first time stamp of the file that is read first.

    **Attributes:** `time_zero`, see `read_csv`; `file`, the name of this file, empty before it is
    read.
    """

    def __init__(self):
        self.time_zero: str | None = None
        self.file = ""

    def take(self, file: pathlib.Path, time_zero: str | None) -> None:
        """Store the time stamp of the first file.

        **Errors:** `ValueError` for a further file with another kind of clock.
        """
        if self.file and (time_zero is None) != (self.time_zero is None):
            raise ValueError(
                f"the times of {self.file} and {file.name} are not from one clock: one of the "
                "files has dates or time stamps since 1970, the other has not."
            )
        self.file, self.time_zero = self.file or file.name, time_zero

    def read_column(self, column: Column) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return times and values of a column, run by run, without gaps."""
        checks.check_readable(column.file)
        reader: Any = ReadColumns(1)
        units = {"time": column.time_unit} if column.time_unit else None
        runs = read(
            column.file, {reader: (column.name,)}, time=column.time, run=column.run, units=units,
            gaps="mask", time_zero=self.time_zero,
        )  # fmt: skip
        used = [np.asarray(run.mask[0])[:, 0] for run in runs]
        return [
            (np.asarray(run.ts)[rows], np.asarray(run.values[0])[rows])
            for run, rows in zip(runs, used, strict=True)
        ]


class Source(NamedTuple):
    """Location of samples in a file; sensors of one source share their times.

    `preparation` holds the filters, derivatives and cuts that are applied to the samples.
    """

    file: pathlib.Path
    time: str | None
    time_unit: str
    run: str | None
    gaps: str
    every: int
    delimiter: str | None
    decimal: str | None
    clock: Clock
    preparation: Preparation

    @property
    def files(self) -> tuple[str, ...]:
        """The file, and that of a reference for its clock."""
        align = self.preparation.align
        return (str(self.file), *([] if align is None else [str(align.reference.file)]))

    def column(self, name: str) -> Column:
        """Return another column of the same file."""
        return Column(self.file, name, self.time, self.time_unit, self.run)


# Defaults of `[data]`; every sensor may name another file.
_DEFAULT_SOURCE = Source(
    pathlib.Path(), None, "", None, "raise", 1, None, None, Clock(), Preparation()
)


class _Channel(NamedTuple):
    """A sensor, its columns and units, and its noise in the unit of the sensor (or `None`)."""

    sensor: Any
    source: Source
    columns: str | tuple[str, ...]
    units: dict[Any, str]
    orientation: str | None
    noise: Any


class Data(NamedTuple):
    """Measured runs and the files that contain them."""

    runs: list[Measurements]
    files: tuple[str, ...]


class ReadColumns(AbstractQuantity):
    """A scalar or several, read from columns, that no sensor predicts."""

    count: int = eqx.field(static=True)
    label: str = eqx.field(static=True)
    unit: ClassVar[str] = "1"

    def __init__(self, count: int, label: str = "columns"):
        self.count, self.label = count, label

    @property
    def channels(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return tuple(str(k) for k in range(self.count))

    @property
    def value_shape(self) -> tuple[int, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return () if self.count == 1 else (self.count,)

    @property
    def name(self) -> str:
        return self.label

    def check_values(self, values: Any, argument: str) -> Any:
        return values


def read_common(top: CaseTable, folder: pathlib.Path) -> tuple[Source, Cut | None]:
    """Read `[data]`: the default source of samples for sensors and inputs, and how runs are cut.

    **Arguments:** `folder`, to which file names are relative.
    **Errors:** `ValueError` naming the table.
    """
    table = top.table("data", {})
    common = _source(table, folder, _DEFAULT_SOURCE._replace(clock=Clock()))
    cut = read_cut(table)
    table.reject_unknown()
    return common, cut


def read_series(
    table: CaseTable,
    folder: pathlib.Path,
    common: Source,
    reader: Any,
    columns: str | tuple[str, ...],
) -> tuple[list[Measurements], str]:
    """Read the runs of one reader of columns, without unit conversion; return also their file.

    **Errors:** `ValueError` naming the table, or file and line; `OSError` for a missing file.
    """
    # The keys `every`, `cutoff` and `rate` are for the sensors, not for the inputs.
    common = common._replace(every=1, preparation=common.preparation.without_filters())
    source = _own_source(table, folder, common)
    channel = _Channel(reader, source, columns, {}, None, None)
    return _read(table, source, [channel]), str(source.file)


def read_data(top: CaseTable, folder: pathlib.Path, common: Source) -> Data:
    """Read the runs of a case; sensors in different files are merged run by run.

    **Arguments:** `folder`, to which file names are relative; `common`, see `read_common`.
    **Errors:** `ValueError` naming the table, or file and line; `OSError` for a missing file.
    """
    channels = [_channel(t, folder, common) for t in array_of_tables(top, "sensor")]
    if not channels:
        top.fail("there is no [[sensor]]; add one for each measured quantity, with its columns.")
    sources: dict[Source, list[_Channel]] = {}
    for channel in channels:
        sources.setdefault(channel.source, []).append(channel)
    parts = [_read(top, source, group) for source, group in sources.items()]
    files = tuple(dict.fromkeys(file for source in sources for file in source.files))
    if len(parts) == 1:
        return Data(parts[0], files)
    order = [channel.sensor for channel in channels]
    return Data(_merge(top, list(sources), parts, order), files)


def _source(table: CaseTable, folder: pathlib.Path, common: Source) -> Source:
    file = table.text("file", None)
    return Source(
        common.file if file is None else folder / file,
        table.text("time", common.time),
        table.text("time_unit", common.time_unit),
        table.text("run", common.run),
        table.text("gaps", common.gaps),
        table.take("every", "an integer", common.every),
        table.text("delimiter", common.delimiter),
        table.text("decimal", common.decimal),
        common.clock,
        read_preparation(table, folder, common.preparation),
    )


def _own_source(table: CaseTable, folder: pathlib.Path, common: Source) -> Source:
    source = _source(table, folder, common)
    if source.file == _DEFAULT_SOURCE.file:
        table.fail("`file` is missing; name the file of the samples here or in [data].")
    return source


def _channel(table: CaseTable, folder: pathlib.Path, common: Source) -> _Channel:
    kind = table.pick("type", find_kinds(sensors.AbstractSensor, sensors))
    source = _own_source(table, folder, common)
    if table.has("columns") and isinstance(table.values["columns"], str):
        columns: Any = table.text("columns")
    else:
        columns = table.texts("columns")
    unit, units = table.text("unit", None), table.texts("units", None)
    orientation = table.text("orientation", None)
    noise, noise_unit = table.numbers("noise", None), table.text("noise_unit", None)
    sensor = _sensor(table, kind)
    if unit is not None and units is not None:
        table.fail("use either `unit` for all columns, or `units` for each of them.")
    column_units: dict[Any, str] = {} if unit is None else {sensor: unit}
    if units is not None:
        if len(units) != len(columns):
            table.fail(f"`units` must have {len(columns)} entries, one for each column.")
        column_units = dict(zip(columns, units, strict=True))
    needs_conversion = any(table.call(factor, u) != 1.0 for u in column_units.values())
    if noise is not None and noise_unit is None and needs_conversion:
        table.fail(
            f"the unit of `noise` is ambiguous; set `noise_unit`, such as {unit!r} or "
            f"{sensor.unit!r}, the unit of the sensor."
        )
    if noise is not None:
        quantities = quantities_of(sensor.unit)
        scale = 1.0 if noise_unit is None else table.call(factor, noise_unit, *quantities)
        noise = np.asarray(noise, float) * scale
    return _Channel(sensor, source, columns, column_units, orientation, noise)


def _sensor(table: CaseTable, kind: Any) -> Any:
    """Build a sensor from the remaining keys; every sensor accepts `delay`."""
    if "delay" in inspect.signature(kind).parameters:
        return table.build(kind)
    delay = table.number("delay", None)
    sensor = table.build(kind)
    return sensor if delay is None else table.call(sensors.Delayed, sensor, delay)


def read_sensor(table: CaseTable, folder: pathlib.Path) -> Any:
    """Read a sensor without its data: keys that locate samples and give their noise are skipped.

    **Arguments:** `folder`, to which file names are relative.
    **Errors:** `ValueError` naming the table.
    """
    kind = table.pick("type", find_kinds(sensors.AbstractSensor, sensors))
    _source(table, folder, _DEFAULT_SOURCE)
    for key in ("columns", "unit", "units", "orientation", "noise", "noise_unit"):
        table.values.pop(key, None)
    return _sensor(table, kind)


def _read(top: CaseTable, source: Source, group: list[_Channel]) -> list[Measurements]:
    table = CaseTable({}, f"{top.where}, [data]")
    checks.check_readable(source.file)
    units = {key: unit for channel in group for key, unit in channel.units.items()}
    if source.time_unit:
        units["time"] = source.time_unit
    noise = {c.sensor: c.noise for c in group if c.noise is not None}
    runs = table.call(
        read,
        source.file,
        {c.sensor: c.columns for c in group},
        time=source.time,
        run=source.run,
        noise=noise or None,
        units=units,
        orientation={c.sensor: c.orientation for c in group if c.orientation is not None},
        gaps=source.gaps,
        every=source.every,
        time_zero=source.clock.time_zero if source.preparation.align is None else None,
        delimiter=source.delimiter,
        decimal=source.decimal,
    )
    if source.preparation.align is None:
        table.call(source.clock.take, source.file, runs[0].time_zero)
    return source.preparation.apply(table, runs, source.column, source.clock.read_column)


def _merge(
    top: CaseTable, sources: list[Source], parts: list[list[Measurements]], order: list[Any]
) -> list[Measurements]:
    names = [[run.name for run in runs] for runs in parts]
    if any(run_names != names[0] for run_names in names):
        listed = "; ".join(f"{s.file.name}: {n}" for s, n in zip(sources, names, strict=True))
        top.fail(f"the files of the sensors must have the same runs in the same order; {listed}.")
    return [top.call(merge_runs, runs, order) for runs in zip(*parts, strict=True)]
