"""Who works on which shard of a store, by files that are touched while a worker lives."""

import os
import pathlib
import socket
import threading
import uuid

# Seconds between signs of life of a worker, and after which another takes what it has claimed.
HEARTBEAT, STALE = 2.0, 30.0


class Lease:
    """A file that says that a worker lives and has a shard; it is touched every few seconds."""

    def __init__(self, path: pathlib.Path):
        self._path, self._ended = path, threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    @classmethod
    def taken(cls, path: pathlib.Path) -> "Lease | None":
        """The lease, or `None` while another worker that lives has it."""
        try:
            # By the clock of the file system: those of hosts differ.
            age = _now(path.parent) - path.stat().st_mtime
        except FileNotFoundError:
            age = None
        if age is not None:
            if age < STALE and not _is_dead(path):
                return None
            try:
                # Of several that find it stale one succeeds.
                os.rename(path, path.with_name(f".{path.name}.{uuid.uuid4().hex}"))
            except FileNotFoundError:
                return None
        try:
            handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            return None
        with os.fdopen(handle, "w") as file:
            file.write(me())
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
    """The time of the file system."""
    probe = folder / f".now.{uuid.uuid4().hex}"
    probe.touch()
    try:
        return probe.stat().st_mtime
    finally:
        probe.unlink()


def me() -> str:
    """This process, by its host and number."""
    return f"{socket.gethostname()}:{os.getpid()}"


def _is_dead(lease: pathlib.Path) -> bool:
    """Whether the process that wrote a lease is known to have ended: one of this host is."""
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
