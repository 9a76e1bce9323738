"""Evaluation of chunks by other processes, through the futures of an executor."""

import collections
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax

from .chunks import ChunkResult, evaluate
from .members import Members
from .traced_run import TracedRun

# Number of crashes after which a chunk is abandoned, and number of chunks submit_chunks at once.
_MAX_TRIES = 5
_MAX_WAITING = 64


class WorkerError(RuntimeError):
    """Failure of all workers to compute a chunk of members."""


def submit_chunks(
    executor: Any,
    run: Callable[[Any], Any],
    members: Members,
    parts: list[slice],
    numbers: Iterable[int],
    size: int,
) -> Iterator[ChunkResult]:
    """Yield chunks in the order of `numbers`, each computed by a future of `executor`.

    **Raises:** `WorkerError` for a chunk whose processes crashed repeatedly. Errors that the user's
    function raises are passed on.
    """
    x64 = bool(jax.config.read("jax_enable_x64"))

    def submit(number: int) -> Any:
        part = parts[number]
        leaves = members.rows(part)
        return executor.submit(_compute_chunk, run, members.tree(leaves), number, size, x64)

    waiting: collections.deque[tuple[int, Any]] = collections.deque()
    remaining = iter(numbers)
    while True:
        for number in remaining:
            waiting.append((number, submit(number)))
            if len(waiting) >= _MAX_WAITING:
                break
        if not waiting:
            return
        number, future = waiting.popleft()
        yield _result_with_retries(future, lambda number=number: submit(number), parts[number])


def _result_with_retries(future: Any, resubmit: Callable[[], Any], part: slice) -> ChunkResult:
    """Return the result of a future; submit the chunk again if its process crashed."""
    for remaining in reversed(range(_MAX_TRIES)):
        try:
            return future.result()
        except Exception as error:
            if not _is_crash(error):
                raise
            if remaining == 0:
                raise WorkerError(
                    f"Members {part.start} to {part.stop - 1} crashed {_MAX_TRIES} workers; the "
                    f"last error was: {error}."
                ) from error
        future = resubmit()
    raise AssertionError


def _is_crash(error: Exception) -> bool:
    """Return whether the worker process crashed, as opposed to the user's function raising."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"KilledWorker", "CommClosedError", "CancelledError", "ConnectionError"})


_traced_runs: dict[Any, TracedRun] = {}


def _compute_chunk(run: Any, parameters: Any, number: int, size: int, x64: bool) -> ChunkResult:
    """Compute one chunk in this process; the run is traced once for all chunks."""
    if bool(jax.config.read("jax_enable_x64")) != x64:
        jax.config.update("jax_enable_x64", x64)
    members = Members(parameters)
    key = run, tuple((leaf.shape[1:], leaf.dtype) for leaf in members.leaves)
    if key not in _traced_runs:
        _traced_runs.clear()
        _traced_runs[key] = TracedRun(run, members)
    device = jax.local_devices()[0]
    chunk = evaluate(_traced_runs[key], members, slice(0, members.count), size, device)
    return ChunkResult(number, chunk.outputs, chunk.status)
