"""Chunks computed by other processes: through futures of any executor."""

import collections
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax

from .chunks import Done, evaluate
from .members import Members
from .program import Program

# A chunk that so many processes died of is given up, and so many chunks wait at once.
_TRIES = 5
_WAITING = 64


class WorkerError(RuntimeError):
    """A chunk of members that no worker could compute."""


def submitted(
    executor: Any,
    run: Callable[[Any], Any],
    members: Members,
    parts: list[slice],
    numbers: Iterable[int],
    size: int,
) -> Iterator[Done]:
    """Chunks in the order of their numbers, each computed by a future of `executor`.

    **Raises:** `WorkerError` for a chunk whose processes died again and again; errors of the run
    as they are.
    """
    x64 = bool(jax.config.read("jax_enable_x64"))

    def submit(number: int) -> Any:
        part = parts[number]
        leaves = members.rows(part)
        return executor.submit(_chunk, run, members.tree(leaves), number, size, x64)

    waiting: collections.deque[tuple[int, Any]] = collections.deque()
    left = iter(numbers)
    while True:
        for number in left:
            waiting.append((number, submit(number)))
            if len(waiting) >= _WAITING:
                break
        if not waiting:
            return
        number, future = waiting.popleft()
        yield _resulting(future, lambda number=number: submit(number), parts[number])


def _resulting(future: Any, again: Callable[[], Any], part: slice) -> Done:
    """What a future gives, submitted again as long as processes die."""
    for left in reversed(range(_TRIES)):
        try:
            return future.result()
        except Exception as error:
            if not _is_death(error):
                raise
            if left == 0:
                raise WorkerError(
                    f"Members {part.start} to {part.stop - 1} ended {_TRIES} workers; the last "
                    f"said: {error}."
                ) from error
        future = again()
    raise AssertionError


def _is_death(error: Exception) -> bool:
    """Whether a process died, and not the run in it."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"KilledWorker", "CommClosedError", "CancelledError", "ConnectionError"})


_programs: dict[Any, Program] = {}


def _chunk(run: Any, parameters: Any, number: int, size: int, x64: bool) -> Done:
    """Compute one chunk in this process; the program is traced once for all of them."""
    if bool(jax.config.read("jax_enable_x64")) != x64:
        jax.config.update("jax_enable_x64", x64)
    members = Members(parameters)
    key = run, tuple((leaf.shape[1:], leaf.dtype) for leaf in members.leaves)
    if key not in _programs:
        _programs.clear()
        _programs[key] = Program(run, members)
    done = evaluate(_programs[key], members, slice(0, members.count), size, jax.local_devices()[0])
    return Done(number, done.outputs, done.status)
