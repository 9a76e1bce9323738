"""Preparation of the samples of a case: clocks, filters, rates, and pieces."""

import pathlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...identification import (
    Measurements,
    cut_run,
    filter_run,
    find_time_shift,
    resample_run,
    shift_run,
)
from .table import CaseTable


class Column(NamedTuple):
    """One column of a file, with its time column, the unit of time and the column of runs."""

    file: pathlib.Path
    name: str
    time: str | None
    time_unit: str
    run: str | None


class Alignment(NamedTuple):
    """A column whose motion the column `reference` of another file also contains."""

    column: str
    reference: Column
    max_shift: float


# Reads the runs of one column, each as times and values.
ColumnReader = Callable[[Column], list[tuple[np.ndarray, np.ndarray]]]


class Preparation(NamedTuple):
    """Changes of samples before they are used, in this order.

    `shift` of the clock, s; `align`, an unknown shift; `cutoff` of a low-pass filter, Hz; `rate`
    at which samples are interpolated, Hz.
    """

    shift: float = 0.0
    align: Alignment | None = None
    cutoff: float | None = None
    rate: float | None = None

    def without_filters(self) -> "Preparation":
        """Return the preparation without filter and rate."""
        return self._replace(cutoff=None, rate=None)

    def apply(
        self,
        table: CaseTable,
        runs: Sequence[Measurements],
        own: Callable[[str], Column],
        read_column: ColumnReader,
    ) -> list[Measurements]:
        """Return the prepared runs.

        **Arguments:** `table`, for messages; `own`, which gives a column of the file of the runs.
        **Errors:** `ValueError` naming the table.
        """
        prepared = list(runs)
        if self.align is not None:
            shifts = table.call(_find_shifts, self.align, own(self.align.column), read_column)
            if len(shifts) == 1:
                shifts = shifts * len(runs)
            prepared = [shift_run(run, s) for run, s in zip(prepared, shifts, strict=True)]
        if self.shift != 0:
            prepared = [table.call(shift_run, run, self.shift) for run in prepared]
        if self.cutoff is not None:
            prepared = [table.call(filter_run, run, self.cutoff) for run in prepared]
        if self.rate is not None:
            prepared = [table.call(_at_rate, run, self.rate) for run in prepared]
        return prepared


def read_preparation(table: CaseTable, folder: pathlib.Path, default: Preparation) -> Preparation:
    """Read the keys `shift`, `align`, `cutoff` and `rate` of a table.

    **Errors:** `ValueError` naming the table.
    """
    numbers = {key: table.number(key, getattr(default, key)) for key in ("cutoff", "rate")}
    for key, value in numbers.items():
        if value is not None and not 0 < value < np.inf:
            table.fail(f"`{key}` must be positive, Hz; got {value}.")
    align = default.align
    if table.has("align"):
        part = table.table("align")
        column, max_shift = part.text("column"), part.number("max_shift")
        reference = part.table("reference")
        part.reject_unknown()
        align = Alignment(
            column,
            Column(
                folder / reference.text("file"),
                reference.text("column"),
                reference.text("time", None),
                reference.text("time_unit", ""),
                reference.text("run", None),
            ),
            max_shift,
        )
        reference.reject_unknown()
    return Preparation(table.number("shift", default.shift), align, **numbers)


def _find_shifts(align: Alignment, own: Column, read_column: ColumnReader) -> list[float]:
    moved, fixed = read_column(own), read_column(align.reference)
    if len(fixed) not in (1, len(moved)):
        raise ValueError(
            f"`align`: {own.file.name} has {len(moved)} runs, and {align.reference.file.name} has "
            f"{len(fixed)}."
        )
    if len(fixed) == 1 and len(moved) > 1:
        fixed = fixed * len(moved)
    return [
        find_time_shift(*a, *b, max_shift=align.max_shift).shift
        for a, b in zip(moved, fixed, strict=True)
    ]


def _at_rate(run: Measurements, rate: float) -> Measurements:
    # Multiples of the time between samples, which sensors of other files share.
    first = np.ceil(float(run.ts[0]) * rate * (1 - 1e-12))
    last = np.floor(float(run.ts[-1]) * rate * (1 + 1e-12))
    return resample_run(run, np.arange(first, last + 1) / rate)


class Cut(NamedTuple):
    """How runs are cut into pieces: arguments of `cut_run`, and the column of a flag."""

    table: CaseTable
    flag: str | None
    options: dict[str, float]

    def apply(
        self, runs: Sequence[Measurements], own: Callable[[str], Column], read_column: ColumnReader
    ) -> list[Measurements]:
        """Return the pieces of all runs.

        **Errors:** `ValueError` naming the table.
        """
        flags: list[Any] = [None] * len(runs)
        if self.flag is not None:
            flags = read_column(own(self.flag))
        if len(flags) != len(runs):
            self.table.fail(f"the file of `flag` has {len(flags)} runs, the sensors {len(runs)}.")
        pieces = []
        for run, flag in zip(runs, flags, strict=True):
            where = None if flag is None else _hold_flag(np.asarray(run.ts), *flag)
            pieces += self.table.call(cut_run, run, where=where, **self.options)
        return pieces


def read_cut(data: CaseTable) -> Cut | None:
    """Read the key `cut` of `[data]`: `length`, `gap`, `flag`, `shortest`.

    **Errors:** `ValueError` naming the table.
    """
    if not data.has("cut"):
        return None
    table = data.table("cut")
    flag = table.text("flag", None)
    options = {k: table.number(k) for k in ("length", "gap", "shortest") if table.has(k)}
    table.reject_unknown()
    return Cut(table, flag, options)


def _hold_flag(ts: np.ndarray, flag_ts: np.ndarray, flag: np.ndarray) -> np.ndarray:
    """Return whether the last flag up to each time is not zero, (T,); before the first, not."""
    last = np.searchsorted(flag_ts, ts, side="right") - 1
    return np.where(last >= 0, flag[np.maximum(last, 0)] != 0, False)
