"""Evaluation of an ensemble: the entry point `rj.ensemble`."""

import contextlib
import functools
import importlib.util
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Real

from ..checks import ArrayInput
from .chunks import assign_lanes, choose_chunk_size, evaluate_in_threads, sort_by_duration
from .executors import choose_client, evaluate_by_workers
from .members import STATUS_TYPES, Device, Members, Status
from .result import Ensemble
from .statistics import AbstractStatistic
from .store import Store, make_plan
from .traced_run import TracedRun, result_names

# Seconds before the first report, and between lines if the output is not a terminal.
_DELAY = 1.0
_INTERVAL = 10.0

Statistics = Mapping[str, AbstractStatistic | Sequence[AbstractStatistic]]


def ensemble(
    run: Callable[[Any], Any],
    parameters: Any,
    *,
    devices: Sequence[Device] | None = None,
    batch: int | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: bool = True,
    resume: bool = True,
    threads: int | None = None,
    statistics: Statistics | None = None,
    executor: Any = None,
    workers: int | None = None,
    lengths: str | Real[ArrayInput, " N"] | None = None,
) -> Ensemble:
    """Evaluate one function for many members, in chunks, on all cores and devices.

    `run(p)` receives the parameters of one member and returns a pytree of arrays, or a `Solution`.
    It may contain any JAX code, including `rj.simulate` and its gradients. A failed member does not
    affect the others: `rj.simulate` does not raise here, the samples of a failed run are NaN, and
    `Ensemble.failed` lists it. The compiled function of a chunk does not depend on the number of
    members, devices and threads; results do not depend on the number of processes.

    **Arguments:**

    - `run`: a function of a pytree like `parameters`, without the leading axis of members.
    - `parameters`: a pytree of arrays with a leading axis of N members, as `rj.ensembles.grid(...)`
      returns it; or an `xarray.Dataset` or a file (.nc, .csv), which stand for a dictionary of
      their variables. From a dataset that `Ensemble.to_xarray` returned, the parameters are used,
      which are its coordinates, and not the outputs.
    - `devices`: JAX devices; by default all devices of this process.
    - `batch`: number of members in a chunk, and in a shard of `out`; by default limited by memory.
    - `out`: a Zarr store to write to, a folder `*.zarr`. Each shard is marked when it is complete.
      The outputs are read from the store at the end.
    - `resume`: continue an existing store if it was made for the same run, parameters, precision
      and versions. Its complete shards are kept; the result is that of an uninterrupted call.
    - `progress`: report members per second, failures and remaining time on the error stream, after
      one second.
    - `threads`: number of host threads on CPUs, by default one per core. Other devices use one
      thread each.
    - `statistics`: by name of an output, `rj.ensembles.Moments()`, `Histogram`, `Quantiles` or
      several of them. They replace the outputs, which are then not stored.
    - `executor`: a Dask client, whose workers compute the chunks, on this host or others. `run` has
      to be picklable, as by cloudpickle. Work of a crashed worker is repeated by another one.
    - `workers`: number of processes on this host that compute the chunks, instead of an executor.
      They are started by Dask, and closed at the end.
    - `lengths`: expected durations of the members in any unit, or the name of a parameter. Members
      of similar duration then run side by side and do not wait for each other, the longest first.
      Members are sorted within a chunk with `out`, otherwise all together.

    **Returns:** an `Ensemble`.
    **Raises:** `ValueError` and `TypeError` for invalid arguments; `StoreError` and `OSError` for a
    store that does not match or cannot be written; `WorkerError` for members that crash their
    processes. Complete shards are kept.
    """
    members = Members(parameters)
    traced_run = TracedRun(run, members)
    chosen = _check_statistics(statistics, traced_run)
    if chosen and out is not None:
        raise ValueError("Statistics are kept in memory: pass `statistics` or `out`, not both.")
    client = None
    if executor is not None or workers is not None:
        if devices is not None or threads is not None:
            raise ValueError(
                "`devices` and `threads` are those of this process: leave them out with `executor` "
                "or `workers`."
            )
        client = choose_client(executor, workers)
    lanes = assign_lanes(devices, threads)
    size = choose_chunk_size(members, traced_run, batch, len(lanes))
    if out is not None and batch is None and resume and os.path.exists(out):
        size = Store(out).size
    order = sort_by_duration(members, lengths, members.count if out is None else size)
    parts = np.split(order, range(size, members.count, size))
    if out is None:
        results: Any = _InMemory(members.count, traced_run, chosen)
    else:
        plan = make_plan(members, traced_run, size, lengths)
        results = Store.open_or_create(out, plan, members, traced_run, resume)
        parts = [parts[k] for k in results.missing()]
    with contextlib.ExitStack() as stack:
        if client is None or not parts:
            chunks = evaluate_in_threads(traced_run, members, parts, size, lanes)
        else:
            chunks = evaluate_by_workers(stack.enter_context(client), run, members, parts, size)
        stack.enter_context(contextlib.closing(chunks))
        done = members.count - sum(map(len, parts))
        add = stack.enter_context(_report_progress(members.count, done, progress))
        for part, (outputs, status) in zip(parts, chunks, strict=True):
            results.write(part, outputs, status)
            add(status.result)
    outputs, status = results.read()

    def again(chosen: Members, changes: dict[str, Any]) -> Ensemble:
        changed = functools.partial(run, **changes) if changes else run
        options: Any = {"devices": devices, "progress": progress, "threads": threads}
        return ensemble(changed, chosen.tree(chosen.leaves), **options)

    return Ensemble(
        members=members,
        outputs=None if chosen else jax.tree.unflatten(traced_run.structure, outputs),
        statistics=results.statistics() if chosen else {},
        result=result_names(status.result),
        num_steps=status.num_steps,
        reached=status.reached,
        names=() if chosen else tuple(traced_run.names),
        leaves=tuple(outputs),
        joints=traced_run.joints,
        again=again,
    )


class _InMemory:
    """Status, and outputs or their statistics, of all members in memory."""

    def __init__(self, count: int, traced_run: TracedRun, statistics: dict[str, Any]):
        shapes = [] if statistics else traced_run.shapes
        self._outputs = [np.empty((count, *s.shape), s.dtype) for s in shapes]
        self._status = Status(*(np.empty(count, dtype) for dtype in STATUS_TYPES))
        self._chosen = [
            (traced_run.names.index(name), name, statistic)
            for name, several in statistics.items()
            for statistic in several
        ]
        self._states: list[Any] = [None] * len(self._chosen)

    def write(self, part: np.ndarray, outputs: list[np.ndarray], status: Status) -> None:
        """Add the results of the members `part`."""
        written = [*status, *(outputs if self._outputs else [])]
        for total, values in zip([*self._status, *self._outputs], written, strict=True):
            total[part] = values
        for k, (index, _, statistic) in enumerate(self._chosen):
            state, before = statistic.of(outputs[index][status.result == 0]), self._states[k]
            self._states[k] = state if before is None else statistic.merged(before, state)

    def read(self) -> tuple[list[np.ndarray], Status]:
        """Return outputs and status of all members."""
        return self._outputs, self._status

    def statistics(self) -> dict[str, dict[str, np.ndarray]]:
        """Return the statistics by output and name."""
        found: dict[str, dict[str, np.ndarray]] = {}
        for (_, name, statistic), state in zip(self._chosen, self._states, strict=True):
            found.setdefault(name, {}).update(statistic.result(state))
        return found


def _check_statistics(
    statistics: Statistics | None, traced_run: TracedRun
) -> dict[str, list[AbstractStatistic]]:
    checked = {}
    for name, value in (statistics or {}).items():
        if name not in traced_run.names:
            raise ValueError(
                f"`ensemble(statistics=...)` names {name!r}; the run returns {traced_run.names}."
            )
        values = [value] if isinstance(value, AbstractStatistic) else list(value)
        if not values or not all(isinstance(s, AbstractStatistic) for s in values):
            raise TypeError(
                f"`ensemble(statistics=...)` takes for {name!r} statistics such as "
                f"`rj.ensembles.Moments()`; got {value!r}."
            )
        checked[name] = values
    return checked


def _make_bar() -> Any:
    """Return a progress bar.

    It is `None` without the optional package rich, and where neither a terminal nor a notebook
    shows a bar.
    """
    if importlib.util.find_spec("rich") is None:
        return None
    from rich import console, progress as bars

    stream = console.Console(stderr=True)
    if not (stream.is_terminal or stream.is_jupyter):
        return None
    return bars.Progress(
        bars.TextColumn("members"), bars.BarColumn(), bars.MofNCompleteColumn(),
        bars.TextColumn("{task.fields[rate]}"), bars.TimeRemainingColumn(),
        console=stream, transient=True,
    )  # fmt: skip


@contextlib.contextmanager
def _report_progress(
    count: int, done: int, enabled: bool
) -> Iterator[Callable[[np.ndarray], None]]:
    """Show a progress bar on a terminal or in a notebook, a line at intervals elsewhere.

    The function that it yields takes the results of further members.
    """
    total, failed, begin = done, 0, time.monotonic()
    last_line = begin
    bar = _make_bar() if enabled else None
    task = bar and bar.add_task("", total=count, completed=done, rate="")

    def add(results):
        nonlocal total, failed, last_line
        total += len(results)
        failed += np.count_nonzero(results)
        now = time.monotonic()
        if not enabled or now - begin < _DELAY:
            return
        rate = (total - done) / (now - begin)
        text = f"{rate:,.0f} /s" + (f", {failed} failed" if failed else "")
        if bar:
            bar.start()
            bar.update(task, completed=total, rate=text)
        elif now - last_line >= _INTERVAL:
            last_line = now
            left = (count - total) / rate
            line = f"{total} of {count} members, {text}, {left:.0f} s left"
            print(line, file=sys.stderr, flush=True)

    try:
        yield add
    finally:
        if bar:
            bar.stop()
