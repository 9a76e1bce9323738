"""Chunks of members: their size, their devices, and their concurrent evaluation."""

import collections
import concurrent.futures
import itertools
import math
from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np

from ..native import count_cores
from .members import Device, Members, Status
from .traced_run import INVALID, TracedRun

# Largest size of the parameters and outputs of a chunk in bytes, and its largest number of members:
# large enough to keep kernels busy, small enough for frequent progress reports and for balanced
# loads.
_MAX_BYTES = 32 * 2**20
_MAX_MEMBERS = 16384
# A chunk is a multiple of the lanes of a kernel and of the vector width of XLA's loops.
_MULTIPLE = 64

# Outputs and status of the members of a chunk, on the host.
ChunkResult: TypeAlias = tuple[list[np.ndarray], Status]


def choose_chunk_size(
    members: Members, traced_run: TracedRun, batch: int | None, lanes: int
) -> int:
    """Return the number of members in a chunk.

    By default it is limited by memory, and such that all `lanes` have work.
    """
    if batch is not None:
        if batch < 1:
            raise ValueError(f"`ensemble(batch=...)` must be positive; got {batch}.")
        return min(batch, members.count)
    size = sum(math.prod(s.shape) * s.dtype.itemsize for s in traced_run.shapes)
    size += sum(leaf[0].nbytes for leaf in members.leaves)
    share = math.ceil(members.count / lanes)
    limit = min(_MAX_MEMBERS, max(_MAX_BYTES // max(size, 1), 1), share)
    return limit if limit < _MULTIPLE else limit // _MULTIPLE * _MULTIPLE


def sort_by_duration(members: Members, lengths: Any, size: int) -> np.ndarray:
    """Return the indices of all members, sorted by decreasing duration in each group of `size`.

    **Arguments:** `lengths`, expected durations (N,), or the name of a parameter; `None` if they
    are unknown, so that members keep their order.
    **Raises:** `ValueError` unless there is one duration per member.
    """
    if lengths is None:
        return np.arange(members.count)
    if isinstance(lengths, str):
        if lengths not in members.names:
            raise ValueError(
                f"`ensemble(lengths={lengths!r})` is not a parameter; there are {members.names}."
            )
        lengths = members.leaves[members.names.index(lengths)]
    values = np.asarray(lengths)
    if values.shape != (members.count,) or values.dtype.kind not in "biuf":
        raise ValueError(
            f"`ensemble(lengths=...)` takes a number for each of the {members.count} members; got "
            f"{values.dtype} with shape {values.shape}."
        )
    return np.lexsort((-values.astype(float), np.arange(members.count) // size))


def assign_lanes(devices: Sequence[Device] | None, threads: int | None) -> list[Device]:
    """Return the device of each host thread: one thread per CPU core, one per other device."""
    devices = list(jax.local_devices() if devices is None else devices)
    if not devices or not all(isinstance(device, jax.Device) for device in devices):
        raise TypeError(f"`ensemble(devices=...)` takes JAX devices; got {devices!r}.")
    if threads is not None and threads < 1:
        raise ValueError(f"`ensemble(threads=...)` must be positive; got {threads}.")
    if devices[0].platform != "cpu":
        return devices
    count = threads or max(count_cores(), len(devices))
    return [devices[k % len(devices)] for k in range(count)]


def evaluate(
    traced_run: TracedRun, rows: list[np.ndarray], count: int, device: Device
) -> ChunkResult:
    """Evaluate the first `count` members of a chunk; the other ones fill it up.

    The other members of a chunk affect results only to round-off.
    """
    outputs, status = jax.tree.map(lambda x: np.asarray(x)[:count], traced_run(rows, device))
    invalid = np.zeros(count, bool)
    for row in rows:
        if row.dtype.kind in "fc":
            invalid |= np.isnan(row[:count].reshape(count, -1)).any(axis=1)
    return outputs, status._replace(result=np.where(invalid, INVALID, status.result))


def evaluate_in_threads(
    traced_run: TracedRun, members: Members, parts: list[np.ndarray], size: int, lanes: list[Device]
) -> Generator[ChunkResult]:
    """Yield the results of chunks in the order of `parts`, computed concurrently on all lanes.

    **Arguments:** `parts`, the indices of the members of each chunk; `size`, of a full chunk.
    """

    def work(part, device):
        return evaluate(traced_run, members.rows(part, size), len(part), device)

    devices = itertools.cycle(lanes)

    def submit(part):
        return pool.submit(work, part, next(devices))

    with concurrent.futures.ThreadPoolExecutor(len(lanes)) as pool:
        # Each lane has one chunk queued, so that it does not idle while the host works; a longer
        # queue would use memory.
        yield from results_in_order(submit, parts, 2 * len(lanes))


def results_in_order(
    submit: Callable[[np.ndarray], Any], parts: list[np.ndarray], window: int
) -> Generator[ChunkResult]:
    """Yield the results of the futures of `submit` in order, at most `window` of them pending."""
    waiting: collections.deque[Any] = collections.deque()
    try:
        for part in parts:
            if len(waiting) == window:
                yield waiting.popleft().result()
            waiting.append(submit(part))
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
