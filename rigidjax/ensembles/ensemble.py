"""The entry point: one function and the parameters of many members in, an `Ensemble` out."""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Real

from ..checks import ArrayInput
from .chunks import (
    Done,
    by_length,
    checked_devices,
    chunk_size,
    evaluate,
    in_turn,
    lanes_of,
    slices,
)
from .members import Device, Members
from .program import Program, Status, names_of
from .progress import Report
from .result import Ensemble
from .statistics import AbstractStatistic
from .store import Store, plan_of

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
    """Run one function for many members, in chunks, on all cores and devices.

    `run(p)` gets the parameters of one member and returns a pytree of arrays, or a `Solution`. Any
    JAX code is fine, `rj.simulate` and its gradients too. A member that fails never ends the
    others: `rj.simulate` does not raise here, what a failed run saved is NaN, and `Ensemble.failed`
    lists it. Chunks are the same programs whatever the number of members, devices and threads.

    **Arguments:**

    - `run`: a function of a pytree like `parameters` without the members in front.
    - `parameters`: a pytree of arrays with N members in front, such as `rj.ensembles.grid(...)`
      returns it; an `xarray.Dataset` or a file (.nc, .csv), which are dictionaries by the name of a
      variable. Of a dataset that an ensemble returned (`Ensemble.to_xarray`) its parameters are
      taken, which are coordinates there, not its outputs.
    - `devices`: of JAX; all of this process by default.
    - `batch`: members of a chunk, and of a shard of `out`; by default as many as memory suggests.
    - `out`: a Zarr store to write to, a folder `*.zarr`: shard by shard, each marked when it is
      complete. The outputs are read from there at the end.
    - `resume`: go on with a store that is there, if it was made for the same program, parameters,
      precision and versions; its shards are kept, the result is that of an undisturbed run.
    - `progress`: say members per second, failures and time left on the error stream, after a
      second.
    - `threads`: of the host on processors; by default one for each core. Devices get one each.
    - `statistics`: by the name of an output, `rj.ensembles.Moments()`, `Histogram`, `Quantiles` or
      several of them, in the place of the outputs, which then are not kept.
    - `executor`: anything with `submit` that returns futures (`concurrent.futures`, dask,
      submitit), for other processes and hosts. `run` must be picklable for it. Work of a process
      that dies is given to another.
    - `worker`: with `out`, this process is worker i of n: it computes shards that no other worker
      has claimed, and returns when all are done.
    - `lengths`: how long members are expected to take, in any unit; numbers, or the name of a
      parameter. Members of similar length then run side by side and do not wait for each other, the
      longest first: those of a chunk with `out` or `executor`, else all.

    **Returns:** an `Ensemble`.
    **Raises:** `ValueError`, `TypeError` for arguments that do not fit; `OSError` and `StoreError`
    for a store that cannot be taken, and for a disk that is full: what is done stays.
    """
    members = Members(parameters)
    program = Program(run, members)
    chosen = _checked_statistics(statistics, program)
    if chosen and out is not None:
        raise ValueError("Statistics are kept in memory: give `statistics` or `out`, not both.")
    if executor is not None and worker != (0, 1):
        raise ValueError("Give `executor` or `worker`, not both.")
    lanes = lanes_of(checked_devices(devices), threads)
    size = chunk_size(members, program, batch, len(lanes) * worker[1])
    # As one chunk, and before a store is made.
    order = None if lengths is None else by_length(members, lengths, members.count)
    store: Store | None = None
    numbers: Any = None
    if out is not None:
        plan = plan_of(members, program, size, lengths)
        store = _opened(out, plan, members, program, resume, batch)
        size, first = store.size, _first(worker, store.num_shards)
        numbers = store.missing() if worker == (0, 1) else store.claimed(first)
    parts = slices(members.count, size)
    numbers = range(len(parts)) if numbers is None else numbers
    if lengths is not None and (store is not None or executor is not None):
        order = by_length(members, lengths, size)
    kept = _Kept(members.count, program, chosen, store)
    begun = 0 if store is None else store.num_done()
    sorted_members = members if order is None else members.chosen(order)
    work = lambda k, device: evaluate(program, sorted_members, parts[k], size, device)  # noqa: E731
    if executor is not None:
        from .executors import submitted

        finished: Iterator[Done] = submitted(executor, run, sorted_members, parts, numbers, size)
    else:
        finished = in_turn(work, numbers, lanes)
    release = contextlib.nullcontext() if store is None else contextlib.closing(store)
    with release, Report(members.count, begun, progress) as report:
        for done in finished:
            where = parts[done.number]
            kept.add(done, where if order is None else order[where])
            report.add(len(done.status.result), int(np.count_nonzero(done.status.result)))

    def again(chosen: Members, changes: dict[str, Any]) -> Ensemble:
        changed = (lambda p: run(p, **changes)) if changes else run  # pyright: ignore[reportCallIssue]
        return ensemble(
            changed, chosen.tree(chosen.leaves), devices=devices, progress=progress,
            threads=threads,
        )  # fmt: skip

    outputs, status, found = kept.result()
    return Ensemble(
        members=members,
        outputs=None if chosen else jax.tree.unflatten(program.structure, outputs),
        statistics=found,
        result=names_of(status.result),
        num_steps=status.num_steps,
        reached=status.reached,
        names=() if chosen else tuple(program.names),
        leaves=() if chosen else tuple(outputs),
        again=again,
    )


class _Kept:
    """What is kept of the chunks: all outputs in memory, statistics, or shards in a store."""

    def __init__(self, count: int, program: Program, statistics: Any, store: Store | None):
        self._store, self._statistics = store, statistics
        self._names = program.names
        self._states: dict[tuple[str, int], Any] = {}
        self._outputs = []
        if store is not None:
            return
        if not statistics:
            self._outputs = [np.empty((count, *s.shape), s.dtype) for s in program.shapes]
        reached = np.empty(count)
        self._status = Status(np.empty(count, np.int32), np.empty(count, np.int32), reached)

    def add(self, done: Done, where: slice | np.ndarray) -> None:
        """Take a chunk of the members `where`."""
        if self._store is not None:
            self._store.write(done if isinstance(where, slice) else done.at(np.argsort(where)))
            return
        for total, part in zip(self._status, done.status, strict=True):
            total[where] = part
        for total, part in zip(self._outputs, done.outputs, strict=False):
            total[where] = part
        fine = done.status.result == 0
        for name, values in zip(self._names, done.outputs, strict=True):
            for k, statistic in enumerate(self._statistics.get(name, ())):
                state = statistic.of(np.asarray(values)[fine])
                before = self._states.get((name, k))
                merged = state if before is None else statistic.merged(before, state)
                self._states[name, k] = merged

    def result(self) -> tuple[list[np.ndarray], Status, dict[str, dict[str, np.ndarray]]]:
        """Outputs, status and statistics of all members."""
        if self._store is not None:
            return *self._store.read(), {}
        found: dict[str, dict[str, np.ndarray]] = {}
        for (name, k), state in self._states.items():
            found.setdefault(name, {}).update(self._statistics[name][k].result(state))
        return self._outputs, self._status, found


def _checked_statistics(given: Statistics | None, program: Program) -> dict[str, Any]:
    chosen = {}
    for name, some in (given or {}).items():
        if name not in program.names:
            raise ValueError(
                f"`ensemble(statistics=...)` names {name!r}; the run returns {program.names}."
            )
        several = [some] if isinstance(some, AbstractStatistic) else list(some)
        if not several or not all(isinstance(s, AbstractStatistic) for s in several):
            raise TypeError(
                f"`ensemble(statistics=...)` of {name!r} takes statistics such as "
                f"`rj.ensembles.Moments()`; got {some!r}."
            )
        chosen[name] = several
    return chosen


def _opened(out, plan, members, program, resume, batch):
    """The store; one that is there has its own size of shards, unless another is asked for."""
    try:
        if batch is None and resume:
            plan = {**plan, "shard": Store(out).size}
    except FileNotFoundError:
        pass
    return Store.opened(out, plan, members, program, resume)


def _first(worker: tuple[int, int], num_shards: int) -> int:
    number, count = worker
    if not 0 <= number < count:
        raise ValueError(f"`worker=(i, n)` takes 0 <= i < n; got {worker}.")
    return number * num_shards // count
