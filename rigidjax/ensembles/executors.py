"""Evaluation of chunks by the worker processes of Dask, on this host or others."""

import contextlib
import functools
import threading
import uuid
from collections.abc import Callable, Generator, Iterator
from typing import Any

import jax
import numpy as np

from ..extras import import_optional
from .chunks import ChunkResult, evaluate, results_in_order
from .members import Members
from .traced_run import TracedRun

# Smallest number of chunks that are submitted at once, since workers may join later.
_MIN_SUBMITTED = 64


class WorkerError(RuntimeError):
    """Failure of a chunk of members that crashed the worker processes."""


def choose_client(executor: Any, workers: int | None) -> contextlib.AbstractContextManager[Any]:
    """Return a context with the Dask client; `workers` are started in it and end with it.

    **Raises:** `TypeError` and `ValueError` for invalid arguments; `ModuleNotFoundError` without
    the optional package distributed.
    """
    if executor is not None and workers is not None:
        raise ValueError("Pass `executor` or `workers`, not both.")
    distributed = import_optional("distributed", "`workers` and `executor` of `ensemble`")
    if workers is None:
        if not isinstance(executor, distributed.Client):
            raise TypeError(
                f"`ensemble(executor=...)` takes a `distributed.Client`; got {executor!r}."
            )
        return contextlib.nullcontext(executor)
    if workers < 1:
        raise ValueError(f"`ensemble(workers=...)` must be positive; got {workers}.")
    return _start_workers(workers)


@contextlib.contextmanager
def _start_workers(count: int) -> Iterator[Any]:
    import distributed

    # Dask kills workers beyond a limit of memory, which compilers may exceed for a short time.
    options: Any = {"memory_limit": None, "dashboard_address": "127.0.0.1:0"}
    with (
        distributed.LocalCluster(n_workers=count, threads_per_worker=1, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def evaluate_by_workers(
    client: Any, run: Callable[[Any], Any], members: Members, parts: list[np.ndarray], size: int
) -> Generator[ChunkResult]:
    """Yield the results of chunks in the order of `parts`, computed by the workers of `client`.

    **Raises:** `WorkerError` for a chunk that crashed several workers. Errors that the user's
    function raises are passed on.
    """
    import cloudpickle
    from distributed.scheduler import KilledWorker

    # A worker recognises by these bytes a function that it has traced already.
    payload = cloudpickle.dumps((run, members.tree([leaf[:1] for leaf in members.leaves])))
    x64 = bool(jax.config.read("jax_enable_x64"))

    def submit(part):
        key = f"members {np.array2string(part, threshold=10)} {uuid.uuid4().hex}"
        rows = members.rows(part, size)
        return client.submit(_evaluate_in_worker, payload, x64, rows, len(part), key=key)

    window = max(_MIN_SUBMITTED, 2 * sum(client.nthreads().values()))
    try:
        yield from results_in_order(submit, parts, window)
    except KilledWorker as error:
        raise WorkerError(f"A chunk of members crashed its worker processes. {error}") from error


def _evaluate_in_worker(
    payload: bytes, x64: bool, rows: list[np.ndarray], count: int
) -> ChunkResult:
    with _LOCK:
        traced_run = _trace(payload, x64)
    return evaluate(traced_run, rows, count, jax.local_devices()[0])


# Threads of one worker share a trace.
_LOCK = threading.Lock()


@functools.lru_cache(maxsize=1)
def _trace(payload: bytes, x64: bool) -> TracedRun:
    import cloudpickle

    # Enabled before the function is loaded, whose arrays would lose their precision otherwise.
    jax.config.update("jax_enable_x64", x64)
    run, parameters = cloudpickle.loads(payload)
    return TracedRun(run, Members(parameters))
