"""Workers of a sweep as processes of their own."""

import os
import pathlib
import re
import subprocess
import sys
import time
from collections.abc import Mapping

from .progress import Report
from .store import Store, StoreError

# Number and count of processes, as those who start them say in the environment.
_RANKS = (
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
)
# Processes that were killed are started again, so often in all for each worker.
_RESTARTS = 10


def rank(given: str | None, environment: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """Number and count of workers: as given ("2/8"), else by Slurm or MPI, else (0, 1).

    **Raises:** `ValueError` for other texts.
    """
    if given is None:
        for number, count in _RANKS:
            if number in environment and count in environment:
                return int(environment[number]), int(environment[count])
        return 0, 1
    found = re.fullmatch(r"(\d+)/(\d+)", given)
    if not found or not int(found[1]) < int(found[2]):
        raise ValueError(
            f"A worker is named I/N with I from 0 to N - 1, such as 0/8; got {given!r}."
        )
    return int(found[1]), int(found[2])


def watched(arguments: list[str], out: pathlib.Path, count: int) -> None:
    """Start `count` workers of a sweep and wait until they are done; the killed are replaced.

    **Raises:** `StoreError` with what the first worker said that ended with an error.
    """
    processes = {k: _started(arguments, k, count) for k in range(count)}
    restarts, seen = 0, 0
    store: Store | None = None
    report: Report | None = None
    try:
        while processes:
            time.sleep(0.2)
            if store is None and out.exists():
                store = Store(out)
                seen = store.num_done()
                report = Report(store.count, seen, True)
            if store is not None and report is not None and (now := store.num_done()) > seen:
                report.add(now - seen, 0)
                seen = now
            for k, process in list(processes.items()):
                code = process.poll()
                if code is None:
                    continue
                del processes[k]
                said = process.communicate()[1].strip().removeprefix("Error: ")
                if code < 0 and restarts < _RESTARTS * count:
                    restarts += 1
                    processes[k] = _started(arguments, k, count)
                elif code != 0:
                    raise StoreError(said or f"Worker {k} ended with code {code}.")
    finally:
        for process in processes.values():
            process.terminate()
        for process in processes.values():
            process.communicate()
        if report is not None:
            report.__exit__()


def _started(arguments: list[str], number: int, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "rigidjax", *arguments, "--worker", f"{number}/{count}"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
