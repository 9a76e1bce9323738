"""Entries of one table: its times are searched once for all signals that share them.

A pytree has no shared leaves: every entry of a table has the times among its own leaves. Entries of
one table carry the same static number, given where a `System` or a `FixedPointBody` is built.
"""

import collections
from collections.abc import Callable
from typing import Any

from jaxtyping import PyTree

from ..annotations import T, Time
from ..checks import check
from .signal import Piece, Pieces, Signal, TablePosition, signals_of, with_signals

_OTHER_TIMES = (
    "Entries of a Signal share the times of its table, but in this model some have other times. "
    "Replace the times of all entries, or build the system with separate signals."
)


def number_tables(tree: T) -> T:
    """Return a pytree whose signals carry the number of the table that they share.

    Entries of the same table are recognised by the identity of its times, and a signal that stands
    in several places by that of its values. Signals with a delay search their tables at times of
    their own, because each delay is a separate parameter.
    """
    counts = collections.Counter(
        _identity(signal) for signal in signals_of(tree) if signal.delay is None
    )
    shared = [identity for identity, count in counts.items() if count > 1]
    if not shared and all(signal.table is None for signal in signals_of(tree)):
        return tree

    def with_number(signal: Signal) -> Signal:
        is_shared = signal.delay is None and _identity(signal) in shared
        return signal.replace(table=shared.index(_identity(signal)) if is_shared else None)

    return with_signals(tree, with_number)


def table_signals(tree: PyTree) -> list[Signal]:
    """Return the signals of a pytree, of those that share a table only the first."""
    found: dict[Any, Signal] = {}
    for position, signal in enumerate(signals_of(tree)):
        found.setdefault(_table(signal) or position, signal)
    return list(found.values())


def freeze_signals(
    tree: T, t: Time, which: Callable[[Signal], bool] = lambda signal: True, end: Time | None = None
) -> T:
    """Replace signals in a pytree by their polynomials from `t` until the next sample.

    Signals that are called at any time remain.

    **Arguments:** `which`, whether a signal is replaced; by default all are; `end`, s, of the step
    from `t`, for signals with clocks.
    """
    positions: dict[Any, TablePosition] = {}

    def frozen(signal: Signal) -> Signal | Piece | Pieces:
        if not which(signal):
            return signal
        table = _table(signal)
        if table is None:
            return signal.freeze(t, t if end is None else end)
        if table not in positions:
            positions[table] = signal.locate(t)
        return signal.piece(t, positions[table])

    return with_signals(tree, frozen)


def check_shared_times(tree: T) -> T:
    """Return the pytree, in which signals that share a table have the same times.

    **Errors:** `ValueError` for different times, at run time if they are traced.
    """
    times: dict[Any, list[Any]] = {}
    for signal in signals_of(tree):
        times.setdefault(_table(signal), []).append(signal.ts)
    times.pop(None, None)
    checked = {}
    for table, (first, *rest) in times.items():
        others = [ts for ts in rest if ts is not first]
        if others:
            checked[table] = check(
                first,
                lambda ts, others=others: sum((ts != other).sum() for other in others) == 0,
                _OTHER_TIMES,
            )
    if not checked:
        return tree
    return with_signals(
        tree, lambda signal: signal.replace(ts=checked.get(_table(signal), signal.ts))
    )


def without_entries(tree: T) -> T:
    """Return a pytree whose signals do not contain the index of their entry in a table.

    Laws that differ in it alone then have equal structures.
    """
    return with_signals(tree, lambda signal: signal.replace(entry=None))


def _table(signal: Signal) -> tuple[int] | None:
    """Return a key of the shared table of a signal; `None` without one."""
    is_shared = signal.table is not None and signal.delay is None and signal.call_times == "run"
    return (signal.table,) if is_shared else None  # pyright: ignore[reportReturnType]


def _identity(signal: Signal) -> tuple[int, ...]:
    return (id(signal.ts),) if signal.entry is not None else (id(signal.ts), id(signal.values))
