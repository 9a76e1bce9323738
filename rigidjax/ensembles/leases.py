"""Leases on the shards of a store: files that a worker touches while it is alive."""

import os
import pathlib
import socket
import threading
import uuid

# Seconds between two heartbeats of a worker, and until its lease expires without a heartbeat.
HEARTBEAT, STALE = 2.0, 30.0


class Lease:
    """Claim of a live worker to a shard: a file whose time it renews every few seconds."""

    def __init__(self, path: pathlib.Path):
        self._path, self._ended = path, threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    @classmethod
    def acquire(cls, path: pathlib.Path) -> "Lease | None":
        """Return the lease, or `None` while another live worker holds it."""
        try:
            # By the clock of the file system, because clocks of hosts differ.
            age = _now(path.parent) - path.stat().st_mtime
        except FileNotFoundError:
            age = None
        if age is not None:
            if age < STALE and not _is_dead(path):
                return None
            try:
                # If several workers find the lease expired, the rename succeeds for one.
                os.rename(path, path.with_name(f".{path.name}.{uuid.uuid4().hex}"))
            except FileNotFoundError:
                return None
        try:
            handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            return None
        with os.fdopen(handle, "w") as file:
            file.write(process_name())
        return cls(path)

    def __enter__(self) -> "Lease":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._path.unlink(missing_ok=True)

    def _beat(self) -> None:
        while not self._ended.wait(HEARTBEAT):
            if not self._path.exists():
                return
            os.utime(self._path)


def _now(folder: pathlib.Path) -> float:
    """Return the current time of the file system."""
    probe = folder / f".now.{uuid.uuid4().hex}"
    probe.touch()
    try:
        return probe.stat().st_mtime
    finally:
        probe.unlink()


def process_name() -> str:
    """Return host and process number of this process as text."""
    return f"{socket.gethostname()}:{os.getpid()}"


def _is_dead(lease: pathlib.Path) -> bool:
    """Return whether the process that wrote a lease ended, if it ran on this host."""
    try:
        host, _, process = lease.read_text().rpartition(":")
    except FileNotFoundError:
        return False
    if host != socket.gethostname() or not process:
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
