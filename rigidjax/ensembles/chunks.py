"""Chunks of members: how many at once, on which device, and the loop over them."""

import collections
import concurrent.futures
import dataclasses
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from .members import Device, Members
from .program import Program, Status
from .result import INVALID

# Bytes of parameters and outputs of a chunk, and its most members: enough to keep kernels busy,
# little enough that progress is seen and that stragglers do not wait for each other.
_BYTES = 32 * 2**20
_MOST = 16384
# A chunk is a multiple of the lanes of a kernel and of the groups in which XLA's loops run.
_MULTIPLE = 64


@dataclasses.dataclass(frozen=True)
class Done:
    """A chunk of members: its number, outputs and status on the host."""

    number: int
    outputs: list[np.ndarray]
    status: Status

    def at(self, index: np.ndarray) -> "Done":
        """The same with its members in another order."""
        outputs, status = jax.tree.map(lambda x: x[index], (self.outputs, self.status))
        return Done(self.number, outputs, status)


def chunk_size(members: Members, program: Program, batch: int | None, lanes: int) -> int:
    """Members of a chunk, as given, or by memory and such that all `lanes` have work."""
    if batch is not None:
        if batch < 1:
            raise ValueError(f"`ensemble(batch=...)` must be positive; got {batch}.")
        return min(batch, members.count)
    size = sum(math.prod(s.shape) * s.dtype.itemsize for s in program.shapes)
    size += sum(leaf[0].nbytes for leaf in members.leaves)
    share = math.ceil(members.count / lanes)
    most = min(_MOST, max(_BYTES // max(size, 1), 1), share)
    return most if most < _MULTIPLE else most // _MULTIPLE * _MULTIPLE


def slices(count: int, size: int) -> list[slice]:
    """The members of each chunk; the last may have fewer."""
    return [slice(begin, min(begin + size, count)) for begin in range(0, count, size)]


def by_length(members: Members, lengths: Any, size: int) -> np.ndarray:
    """Numbers of all members, in each chunk of `size` the longest first.

    **Raises:** `ValueError` for lengths that are not a number for each member.
    """
    if isinstance(lengths, str):
        if lengths not in members.names:
            raise ValueError(
                f"`ensemble(lengths={lengths!r})` names no parameter; there are {members.names}."
            )
        lengths = members.leaves[members.names.index(lengths)]
    values = np.asarray(lengths)
    if values.shape != (members.count,) or values.dtype.kind not in "biuf":
        raise ValueError(
            f"`ensemble(lengths=...)` takes a number for each of the {members.count} members; got "
            f"{values.dtype} of shape {values.shape}."
        )
    # Parts of the same size are sorted one by one, so that a chunk keeps its members.
    return np.lexsort((-values.astype(float), np.arange(members.count) // size))


def checked_devices(devices: Sequence[Device] | None) -> list[Device]:
    """The devices as given, all of this process by default."""
    if devices is None:
        return list(jax.local_devices())
    devices = list(devices)
    if not devices or not all(isinstance(device, jax.Device) for device in devices):
        raise TypeError(f"`ensemble(devices=...)` takes devices of JAX; got {devices!r}.")
    return devices


def lanes_of(devices: Sequence[Device], threads: int | None) -> list[Device]:
    """A device for each host thread: on processors one thread for each core, else one."""
    if threads is not None and threads < 1:
        raise ValueError(f"`ensemble(threads=...)` must be positive; got {threads}.")
    if devices[0].platform != "cpu":
        return list(devices)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    count = threads or max(cores or 1, len(devices))
    return [devices[k % len(devices)] for k in range(count)]


def evaluate(program: Program, members: Members, which: slice, size: int, device: Any) -> Done:
    """Run one chunk. One with fewer than `size` members repeats its last: the program is the same.

    Which members are in a chunk has no influence on their numbers, but for round-off.
    """
    index = np.minimum(np.arange(which.start, which.start + size), which.stop - 1)
    rows = members.rows(index)
    outputs, status = program(rows, device)
    count = which.stop - which.start
    outputs, status = jax.tree.map(lambda x: np.asarray(x)[:count], (outputs, status))
    invalid = np.zeros(count, bool)
    for row in rows:
        if row.dtype.kind in "fc":
            invalid |= np.isnan(row[:count].reshape(count, -1)).any(axis=1)
    status = status._replace(result=np.where(invalid, INVALID, status.result))
    return Done(which.start // size, outputs, status)


def in_turn(
    function: Callable[[int, Device], Done], numbers: Iterable[int | None], lanes: list[Device]
) -> Iterator[Done]:
    """Chunks in the order of their numbers, computed on all lanes at once.

    Each lane has a chunk waiting, so that none idles while the host works, and no more, so that
    memory does not grow with their number. `None` says that there is no number yet.
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
