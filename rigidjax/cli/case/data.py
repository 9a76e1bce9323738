"""Samples of a case: `[data]`, `[[sensor]]`, and columns of files, filtered and cut."""

import inspect
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import equinox as eqx
import numpy as np

from ... import sensors
from ...identification import (
    Measurements,
    cut_run,
    filter_run,
    find_time_shift,
    merge_runs,
    read,
    resample_run,
    shift_run,
)
from ...identification.data.units import factor, quantities_of
from ...sensors.base import AbstractQuantity
from ..base import checks
from ..base.choices import find_kinds
from .schema import (
    CaseTable,
    File,
    Frequency,
    Integer,
    Number,
    Numbers,
    PartTable,
    Text,
    TextOrTexts,
    Texts,
    TypedTable,
    build,
)


class ColumnTable(CaseTable):
    """One column of a file, with its time column, the unit of time and the column of runs."""

    file: File
    column: Text
    time: Text | None = None
    time_unit: Text = ""
    run: Text | None = None


class AlignTable(CaseTable):
    """A column whose motion the column `reference` of another file also contains."""

    column: Text
    max_shift: Number
    reference: ColumnTable


class CutTable(CaseTable):
    """How runs are cut into pieces: arguments of `cut_run`, and the column of a flag."""

    flag: Text | None = None
    length: Number | None = None
    gap: Number | None = None
    shortest: Number | None = None


class SourceTable(PartTable):
    """Location of samples in a file, and their changes before they are used.

    These are, in this order: the unknown `shift` that `align` finds, `shift` of the clock, s, the
    `cutoff` of a low-pass filter, Hz, and the `rate` at which samples are interpolated, Hz.
    """

    file: File | None = None
    time: Text | None = None
    time_unit: Text = ""
    run: Text | None = None
    gaps: Text = "raise"
    every: Integer = 1
    delimiter: Text | None = None
    decimal: Text | None = None
    shift: Number = 0.0
    align: AlignTable | None = None
    cutoff: Frequency | None = None
    rate: Frequency | None = None

    def column_of(self, name: str) -> ColumnTable:
        """Return a column of this file."""
        return ColumnTable.model_construct(
            file=self.file or pathlib.Path(),
            column=name,
            time=self.time,
            time_unit=self.time_unit,
            run=self.run,
        )

    @property
    def files(self) -> tuple[str, ...]:
        """The file, and the file of the reference for its clock if there is one."""
        return (str(self.file), *([] if self.align is None else [str(self.align.reference.file)]))


class DataTable(SourceTable, extra="forbid"):
    """`[data]`: the defaults of all sources, and how runs are cut."""

    cut: CutTable | None = None


class SensorTable(SourceTable, TypedTable):
    """`[[sensor]]`: class, columns, units and noise; the other keys are arguments of the class."""

    columns: TextOrTexts | None = None
    unit: Text | None = None
    units: Texts | None = None
    orientation: Text | None = None
    noise: Numbers = None
    noise_unit: Text | None = None

    def sensor(self) -> Any:
        """Return the sensor; every sensor accepts `delay` and `skew`."""
        kind, values = self.kind(find_kinds(sensors.AbstractSensor, sensors)), self.arguments
        late = {"delay", "skew"} - set(inspect.signature(kind).parameters)
        late = {name: values.pop(name) for name in late if name in values}
        sensor = build(kind, values, self.where, {*type(self).model_fields, "delay", "skew"})
        return self.call(sensors.Delayed, sensor, **late) if late else sensor

    def units_of(self, sensor: Any) -> dict[Any, str]:
        """Return the units of the sensor or of its columns."""
        if self.columns is None:
            self.fail("`columns` is missing.")
        if self.unit is not None and self.units is not None:
            self.fail("use either `unit` for all columns, or `units` for each of them.")
        units: dict[Any, str] = {} if self.unit is None else {sensor: self.unit}
        if self.units is not None:
            if len(self.units) != len(self.columns):
                self.fail(f"`units` must have {len(self.columns)} entries, one for each column.")
            units = dict(zip(self.columns, self.units, strict=True))
        needs_conversion = any(self.call(factor, unit) != 1.0 for unit in units.values())
        if self.noise is not None and self.noise_unit is None and needs_conversion:
            self.fail(
                f"the unit of `noise` is ambiguous; set `noise_unit`, such as {self.unit!r} or "
                f"{sensor.unit!r}, the unit of the sensor."
            )
        return units

    def noise_of(self, sensor: Any) -> np.ndarray:
        """Return the noise in the unit of the sensor."""
        scale = 1.0
        if self.noise_unit is not None:
            scale = self.call(factor, self.noise_unit, *quantities_of(sensor.unit))
        return np.asarray(self.noise, float) * scale


class ReadColumns(AbstractQuantity):
    """One or more scalars, read from columns, that no sensor predicts."""

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


class Reader:
    """Reader of the files of a case, whose times have one origin.

    This is the first time stamp of the file that is read first.

    **Attributes:** `data`, the defaults of all sources; `time_zero`, see `read_csv`; `first`, the
    name of the first file, empty before it is read.
    """

    def __init__(self, data: DataTable):
        self.data, self.time_zero, self.first = data, None, ""

    def source(self, table: SourceTable, defaults: SourceTable | None = None) -> SourceTable:
        """Return the source of a table, with the keys of `[data]` that it does not have.

        **Errors:** `ValueError` naming the table if there is no file.
        """
        defaults = self.data if defaults is None else defaults
        source = SourceTable.model_construct(
            **{
                key: getattr(table if key in table.model_fields_set else defaults, key)
                for key in SourceTable.model_fields
            }
        )
        if source.file is None:
            table.fail("`file` is missing; name the file of the samples here or in [data].")
        return source

    def read(
        self,
        table: CaseTable,
        source: SourceTable,
        columns: Mapping[Any, Any],
        units: Mapping[Any, str] = {},
        **options: Any,
    ) -> list[Measurements]:
        """Read and prepare the runs of a source.

        **Arguments:** `table`, for messages; `columns` by sensor; `units` and further `options` of
        `rj.identification.read`, of which empty ones are left out.
        **Errors:** `ValueError` naming the table, or file and line; `OSError` for a missing file.
        """
        file: Any = source.file
        checks.check_readable(file)
        time_unit = {"time": source.time_unit} if source.time_unit else {}
        runs = table.call(
            read, file, columns, units={**units, **time_unit}, time=source.time,
            run=source.run, gaps=source.gaps, every=source.every, delimiter=source.delimiter,
            decimal=source.decimal, time_zero=self.time_zero if source.align is None else None,
            **{key: value for key, value in options.items() if value},
        )  # fmt: skip
        if source.align is None:
            time_zero = runs[0].time_zero
            if self.first and (time_zero is None) != (self.time_zero is None):
                table.fail(
                    f"the times of {self.first} and {file.name} are not from one clock: one of the "
                    "files has dates or time stamps since 1970, the other has not."
                )
            self.first, self.time_zero = self.first or file.name, time_zero
        else:
            shifts = table.call(self._find_shifts, source, source.align)
            shifts = shifts * len(runs) if len(shifts) == 1 else shifts
            runs = [shift_run(run, s) for run, s in zip(runs, shifts, strict=True)]
        if source.shift != 0:
            runs = [table.call(shift_run, run, source.shift) for run in runs]
        if source.cutoff is not None:
            runs = [table.call(filter_run, run, source.cutoff) for run in runs]
        if source.rate is not None:
            runs = [table.call(_at_rate, run, source.rate) for run in runs]
        return runs

    def series(
        self,
        table: SourceTable,
        reader: Any,
        columns: str | tuple[str, ...],
        defaults: SourceTable | None = None,
    ) -> tuple[list[Measurements], str]:
        """Read columns without unit conversion, run by run; return also their file.

        **Arguments:** `reader`, a `ReadColumns`; `defaults` of the source, by default `[data]`,
        whose keys `every`, `cutoff` and `rate` are for the sensors, and not for these columns.
        """
        defaults = self.data if defaults is None else defaults
        plain = defaults.model_copy(update={"every": 1, "cutoff": None, "rate": None})
        source = self.source(table, plain)
        return self.read(table, source, {reader: columns}), str(source.file)

    def read_column(self, column: ColumnTable) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return times and values of a column, run by run, without gaps."""
        checks.check_readable(column.file)
        reader: Any = ReadColumns(1)
        units = {"time": column.time_unit} if column.time_unit else None
        runs = read(
            column.file, {reader: (column.column,)}, time=column.time, run=column.run, units=units,
            gaps="mask", time_zero=self.time_zero,
        )  # fmt: skip
        used = [np.asarray(run.mask[0])[:, 0] for run in runs]
        return [
            (np.asarray(run.ts)[rows], np.asarray(run.values[0])[rows])
            for run, rows in zip(runs, used, strict=True)
        ]

    def cut(
        self, runs: Sequence[Measurements], source: SourceTable | None = None
    ) -> list[Measurements]:
        """Return the pieces of all runs, or the runs if `[data]` has no `cut`.

        **Arguments:** `source`, whose file contains the flag, by default `[data]`.
        **Errors:** `ValueError` naming the table.
        """
        table = self.data.cut
        if table is None:
            return list(runs)
        flags: list[Any] = [None] * len(runs)
        if table.flag is not None:
            flags = self.read_column((source or self.data).column_of(table.flag))
        if len(flags) != len(runs):
            table.fail(f"the file of `flag` has {len(flags)} runs, the sensors {len(runs)}.")
        pieces = []
        for run, flag in zip(runs, flags, strict=True):
            where = None if flag is None else _hold_flag(np.asarray(run.ts), *flag)
            pieces += table.call(cut_run, run, where=where, **table.given_values("flag"))
        return pieces

    def _find_shifts(self, source: SourceTable, align: AlignTable) -> list[float]:
        moved = self.read_column(source.column_of(align.column))
        fixed = self.read_column(align.reference)
        if len(fixed) not in (1, len(moved)):
            raise ValueError(
                f"`align`: {pathlib.Path(str(source.file)).name} has {len(moved)} runs; the file "
                f"{align.reference.file.name} needs one or as many, and has {len(fixed)}."
            )
        if len(fixed) == 1:
            fixed = fixed * len(moved)
        return [
            find_time_shift(*a, *b, max_shift=align.max_shift).shift
            for a, b in zip(moved, fixed, strict=True)
        ]


def read_data(
    top: CaseTable, tables: Sequence[SensorTable], reader: Reader
) -> tuple[list[Measurements], tuple[str, ...]]:
    """Read the runs of a case, and return also their files.

    Sensors in different files are merged run by run.

    **Errors:** `ValueError` naming the table, or file and line; `OSError` for a missing file.
    """
    if not tables:
        top.fail("there is no [[sensor]]; add one for each measured quantity, with its columns.")
    groups: dict[Any, tuple[SourceTable, dict[str, dict[Any, Any]]]] = {}
    order = []
    for table in tables:
        source, sensor = reader.source(table), table.sensor()
        order.append(sensor)
        key = tuple(getattr(source, name) for name in SourceTable.model_fields)
        names = ("columns", "units", "noise", "orientation")
        _, options = groups.setdefault(key, (source, {name: {} for name in names}))
        options["columns"][sensor] = table.columns
        options["units"] |= table.units_of(sensor)
        if table.noise is not None:
            options["noise"][sensor] = table.noise_of(sensor)
        if table.orientation is not None:
            options["orientation"][sensor] = table.orientation
    parts = [
        reader.read(reader.data, source, options.pop("columns"), **options)
        for source, options in groups.values()
    ]
    sources = [source for source, _ in groups.values()]
    files = tuple(dict.fromkeys(file for source in sources for file in source.files))
    if len(parts) == 1:
        return parts[0], files
    names = [[run.name for run in runs] for runs in parts]
    if any(run_names != names[0] for run_names in names):
        file_names = [pathlib.Path(str(source.file)).name for source in sources]
        listed = "; ".join(f"{s}: {n}" for s, n in zip(file_names, names, strict=True))
        top.fail(f"the files of the sensors must have the same runs in the same order; {listed}.")
    return [top.call(merge_runs, runs, order) for runs in zip(*parts, strict=True)], files


def _at_rate(run: Measurements, rate: float) -> Measurements:
    # Multiples of the time between samples, which sensors of other files share.
    first = np.ceil(float(run.ts[0]) * rate * (1 - 1e-12))
    last = np.floor(float(run.ts[-1]) * rate * (1 + 1e-12))
    return resample_run(run, np.arange(first, last + 1) / rate)


def _hold_flag(ts: np.ndarray, flag_ts: np.ndarray, flag: np.ndarray) -> np.ndarray:
    """Return whether the last flag up to each time is not zero, (T,); before the first, not."""
    last = np.searchsorted(flag_ts, ts, side="right") - 1
    return np.where(last >= 0, flag[np.maximum(last, 0)] != 0, False)
