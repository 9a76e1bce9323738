"""Chunks of members: their size, their devices, and their concurrent evaluation."""

import collections
import concurrent.futures
import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from ..native import count_cores
from .members import Device, Members
from .result import INVALID
from .traced_run import Status, TracedRun

# Largest size of the parameters and outputs of a chunk in bytes, and its largest number of members:
# large enough to keep kernels busy, small enough for frequent progress reports and for balanced
# loads.
_MAX_BYTES = 32 * 2**20
_MAX_MEMBERS = 16384
# A chunk is a multiple of the lanes of a kernel and of the vector width of XLA's loops.
_MULTIPLE = 64


@dataclasses.dataclass(frozen=True)
class ChunkResult:
    """Outputs and status of a chunk of members, on the host, with the number of the chunk."""

    number: int
    outputs: list[np.ndarray]
    status: Status

    def reorder(self, index: np.ndarray) -> "ChunkResult":
        """Return the result with its members in the order of `index`."""
        outputs, status = jax.tree.map(lambda x: x[index], (self.outputs, self.status))
        return ChunkResult(self.number, outputs, status)


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


def split_into_chunks(count: int, size: int) -> list[slice]:
    """Return the slice of members in each chunk; the last chunk may be smaller."""
    return [slice(begin, min(begin + size, count)) for begin in range(0, count, size)]


def sort_by_duration(members: Members, lengths: Any, size: int) -> np.ndarray:
    """Return the indices of all members, sorted by decreasing duration within chunks of `size`.

    **Arguments:** `lengths`, expected durations (N,), or the name of a parameter.
    **Raises:** `ValueError` unless there is one duration per member.
    """
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
    # Each chunk is sorted by itself, so that it keeps its members.
    return np.lexsort((-values.astype(float), np.arange(members.count) // size))


def check_devices(devices: Sequence[Device] | None) -> list[Device]:
    """Return the devices, by default all devices of this process."""
    if devices is None:
        return list(jax.local_devices())
    devices = list(devices)
    if not devices or not all(isinstance(device, jax.Device) for device in devices):
        raise TypeError(f"`ensemble(devices=...)` takes JAX devices; got {devices!r}.")
    return devices


def assign_lanes(devices: Sequence[Device], threads: int | None) -> list[Device]:
    """Return the device of each host thread: one thread per CPU core, one per other device."""
    if threads is not None and threads < 1:
        raise ValueError(f"`ensemble(threads=...)` must be positive; got {threads}.")
    if devices[0].platform != "cpu":
        return list(devices)
    count = threads or max(count_cores(), len(devices))
    return [devices[k % len(devices)] for k in range(count)]


def evaluate(
    traced_run: TracedRun, members: Members, which: slice, size: int, device: Any
) -> ChunkResult:
    """Evaluate one chunk of members.

    A chunk with fewer than `size` members is padded with its last member, so that the compiled
    function is reused. The other members of a chunk affect results only to round-off.
    """
    index = np.minimum(np.arange(which.start, which.start + size), which.stop - 1)
    rows = members.rows(index)
    outputs, status = traced_run(rows, device)
    count = which.stop - which.start
    outputs, status = jax.tree.map(lambda x: np.asarray(x)[:count], (outputs, status))
    invalid = np.zeros(count, bool)
    for row in rows:
        if row.dtype.kind in "fc":
            invalid |= np.isnan(row[:count].reshape(count, -1)).any(axis=1)
    status = status._replace(result=np.where(invalid, INVALID, status.result))
    return ChunkResult(which.start // size, outputs, status)


def map_in_order(
    function: Callable[[int, Device], ChunkResult],
    numbers: Iterable[int | None],
    lanes: list[Device],
) -> Iterator[ChunkResult]:
    """Evaluate chunks concurrently on all lanes and yield them in the order of `numbers`.

    Each lane has one chunk queued, so that it does not idle while the host works; a longer queue
    would use memory. `None` among the numbers means that no chunk is available yet.
    """
    free = collections.deque(lanes)
    free.extend(lanes)
    waiting: collections.deque[tuple[Any, Device]] = collections.deque()
    with concurrent.futures.ThreadPoolExecutor(len(lanes)) as pool:
        try:
            for number in numbers:
                if waiting and (not free or number is None):
                    future, lane = waiting.popleft()
                    yield future.result()
                    free.append(lane)
                elif number is None:
                    time.sleep(0.2)
                if number is None:
                    continue
                lane = free.popleft()
                waiting.append((pool.submit(function, number, lane), lane))
            while waiting:
                yield waiting.popleft()[0].result()
        except BaseException:
            for future, _ in waiting:
                future.cancel()
            raise
