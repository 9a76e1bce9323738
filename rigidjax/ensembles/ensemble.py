"""Evaluation of an ensemble: the entry point `rj.ensemble`."""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Real

from ..checks import ArrayInput
from .chunks import (
    ChunkResult,
    assign_lanes,
    check_devices,
    choose_chunk_size,
    evaluate,
    map_in_order,
    sort_by_duration,
    split_into_chunks,
)
from .members import Device, Members
from .progress import ProgressReport
from .result import Ensemble
from .statistics import AbstractStatistic
from .store import Store, make_plan
from .traced_run import Status, TracedRun, result_names

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
    worker: tuple[int, int] = (0, 1),
    lengths: str | Real[ArrayInput, " N"] | None = None,
) -> Ensemble:
    """Evaluate one function for many members, in chunks, on all cores and devices.

    `run(p)` receives the parameters of one member and returns a pytree of arrays, or a `Solution`.
    It may contain any JAX code, including `rj.simulate` and its gradients. A failed member does not
    affect the others: `rj.simulate` does not raise here, the samples of a failed run are NaN, and
    `Ensemble.failed` lists it. The compiled function of a chunk does not depend on the number of
    members, devices and threads.

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
    - `executor`: an object whose `submit` returns futures (`concurrent.futures`, dask, submitit),
      for other processes and hosts. It needs a `run` that can be pickled. If a process crashes,
      its chunk is submit_chunks again.
    - `worker`: with `out`, `(i, n)` makes this process worker i of n. It computes shards that no
      other worker has claimed, and returns when all are complete.
    - `lengths`: expected durations of the members in any unit, or the name of a parameter. Members
      of similar duration then run side by side and do not wait for each other, the longest first.
      Members are sorted within a chunk with `out` or `executor`, otherwise all together.

    **Returns:** an `Ensemble`.
    **Raises:** `ValueError` and `TypeError` for invalid arguments; `StoreError` and `OSError` for a
    store that does not match or cannot be written. Complete shards are kept.
    """
    members = Members(parameters)
    traced_run = TracedRun(run, members)
    chosen = _check_statistics(statistics, traced_run)
    if chosen and out is not None:
        raise ValueError("Statistics are kept in memory: pass `statistics` or `out`, not both.")
    if executor is not None and worker != (0, 1):
        raise ValueError("Pass `executor` or `worker`, not both.")
    lanes = assign_lanes(check_devices(devices), threads)
    size = choose_chunk_size(members, traced_run, batch, len(lanes) * worker[1])
    # This also checks `lengths` before a store is created.
    order = None if lengths is None else sort_by_duration(members, lengths, members.count)
    store: Store | None = None
    numbers: Any = None
    if out is not None:
        plan = make_plan(members, traced_run, size, lengths)
        store = _open_store(out, plan, members, traced_run, resume, batch)
        size, first = store.size, _first_shard(worker, store.num_shards)
        numbers = store.missing() if worker == (0, 1) else store.claim_shards(first)
    parts = split_into_chunks(members.count, size)
    numbers = range(len(parts)) if numbers is None else numbers
    if lengths is not None and (store is not None or executor is not None):
        order = sort_by_duration(members, lengths, size)
    collector = _Collector(members.count, traced_run, chosen, store)
    num_complete = 0 if store is None else store.num_done()
    sorted_members = members if order is None else members.select(order)
    work = lambda k, device: evaluate(traced_run, sorted_members, parts[k], size, device)  # noqa: E731
    if executor is not None:
        from .executors import submit_chunks

        results: Iterator[ChunkResult] = submit_chunks(
            executor, run, sorted_members, parts, numbers, size
        )
    else:
        results = map_in_order(work, numbers, lanes)
    release = contextlib.nullcontext() if store is None else contextlib.closing(store)
    with release, ProgressReport(members.count, num_complete, progress) as report:
        for chunk in results:
            where = parts[chunk.number]
            collector.add(chunk, where if order is None else order[where])
            report.add(len(chunk.status.result), int(np.count_nonzero(chunk.status.result)))

    def again(chosen: Members, changes: dict[str, Any]) -> Ensemble:
        changed = (lambda p: run(p, **changes)) if changes else run  # pyright: ignore[reportCallIssue]
        return ensemble(
            changed, chosen.tree(chosen.leaves), devices=devices, progress=progress,
            threads=threads,
        )  # fmt: skip

    outputs, status, statistics_by_output = collector.result()
    return Ensemble(
        members=members,
        outputs=None if chosen else jax.tree.unflatten(traced_run.structure, outputs),
        statistics=statistics_by_output,
        result=result_names(status.result),
        num_steps=status.num_steps,
        reached=status.reached,
        names=() if chosen else tuple(traced_run.names),
        leaves=() if chosen else tuple(outputs),
        joints=traced_run.joints,
        again=again,
    )


class _Collector:
    """Collection of chunk results: in memory, as statistics, or as shards in a store."""

    def __init__(self, count: int, traced_run: TracedRun, statistics: Any, store: Store | None):
        self._store, self._statistics = store, statistics
        self._names = traced_run.names
        self._states: dict[tuple[str, int], Any] = {}
        self._outputs = []
        if store is not None:
            return
        if not statistics:
            self._outputs = [np.empty((count, *s.shape), s.dtype) for s in traced_run.shapes]
        reached = np.empty(count)
        self._status = Status(np.empty(count, np.int32), np.empty(count, np.int32), reached)

    def add(self, chunk: ChunkResult, where: slice | np.ndarray) -> None:
        """Add the results of the members `where`."""
        if self._store is not None:
            is_ordered = isinstance(where, slice)
            self._store.write(chunk if is_ordered else chunk.reorder(np.argsort(where)))
            return
        for total, part in zip(self._status, chunk.status, strict=True):
            total[where] = part
        for total, part in zip(self._outputs, chunk.outputs, strict=False):
            total[where] = part
        succeeded = chunk.status.result == 0
        for name, values in zip(self._names, chunk.outputs, strict=True):
            for k, statistic in enumerate(self._statistics.get(name, ())):
                state = statistic.of(np.asarray(values)[succeeded])
                before = self._states.get((name, k))
                merged = state if before is None else statistic.merged(before, state)
                self._states[name, k] = merged

    def result(self) -> tuple[list[np.ndarray], Status, dict[str, dict[str, np.ndarray]]]:
        """Return outputs, status and statistics of all members."""
        if self._store is not None:
            return *self._store.read(), {}
        statistics: dict[str, dict[str, np.ndarray]] = {}
        for (name, k), state in self._states.items():
            statistics.setdefault(name, {}).update(self._statistics[name][k].result(state))
        return self._outputs, self._status, statistics


def _check_statistics(statistics: Statistics | None, traced_run: TracedRun) -> dict[str, Any]:
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


def _open_store(
    out: str | os.PathLike[str],
    plan: dict[str, Any],
    members: Members,
    traced_run: TracedRun,
    resume: bool,
    batch: int | None,
) -> Store:
    """Return the store; an existing one keeps its shard size unless `batch` is set."""
    try:
        if batch is None and resume:
            plan = {**plan, "shard": Store(out).size}
    except FileNotFoundError:
        pass
    return Store.open_or_create(out, plan, members, traced_run, resume)


def _first_shard(worker: tuple[int, int], num_shards: int) -> int:
    number, count = worker
    if not 0 <= number < count:
        raise ValueError(f"`worker=(i, n)` takes 0 <= i < n; got {worker}.")
    return number * num_shards // count
