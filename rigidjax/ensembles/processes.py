"""Worker processes of a sweep."""

import os
import pathlib
import re
import subprocess
import sys
import time
from collections.abc import Mapping

from .progress import ProgressReport
from .store import Store, StoreError

# Environment variables in which Slurm and MPI pass the number and count of processes.
_RANKS = (
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
)
# Largest number of restarts of killed processes, per worker.
_MAX_RESTARTS = 10


def read_rank(text: str | None, environment: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """Return number and count of workers: from a text such as "2/8", from Slurm or MPI, or (0, 1).

    **Raises:** `ValueError` for other texts.
    """
    if text is None:
        for number, count in _RANKS:
            if number in environment and count in environment:
                return int(environment[number]), int(environment[count])
        return 0, 1
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if not match or not int(match[1]) < int(match[2]):
        raise ValueError(
            f"A worker is named I/N with I from 0 to N - 1, such as 0/8; got {text!r}."
        )
    return int(match[1]), int(match[2])


def run_workers(arguments: list[str], out: pathlib.Path, count: int) -> None:
    """Start `count` workers of a sweep and wait for them; restart those that are killed.

    **Raises:** `StoreError` with the message of the first worker that failed.
    """
    processes = {k: _start_worker(arguments, k, count) for k in range(count)}
    restarts, reported = 0, 0
    store: Store | None = None
    report: ProgressReport | None = None
    try:
        while processes:
            time.sleep(0.2)
            if store is None and out.exists():
                store = Store(out)
                reported = store.num_done()
                report = ProgressReport(store.count, reported, True)
            if store is not None and report is not None and (now := store.num_done()) > reported:
                report.add(now - reported, 0)
                reported = now
            for k, process in list(processes.items()):
                code = process.poll()
                if code is None:
                    continue
                del processes[k]
                message = process.communicate()[1].strip().removeprefix("Error: ")
                if code < 0 and restarts < _MAX_RESTARTS * count:
                    restarts += 1
                    processes[k] = _start_worker(arguments, k, count)
                elif code != 0:
                    raise StoreError(message or f"Worker {k} ended with code {code}.")
    finally:
        for process in processes.values():
            process.terminate()
        for process in processes.values():
            process.communicate()
        if report is not None:
            report.__exit__()


def _start_worker(arguments: list[str], number: int, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "rigidjax", *arguments, "--worker", f"{number}/{count}"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
