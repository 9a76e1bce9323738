"""Machine code of kernels on disk, so that a later process need not compile them again.

A file holds a digest of its name and its code, then the code; its name is a digest of the LLVM IR,
LLVM's version, the processor and the optimisations. A file that is damaged, or has another file's
name, is replaced. Files appear whole or not at all; the least recently used ones are removed
when all of them together are too large.

Code from the folder is executed. Nothing is read from or written to a folder that belongs to
another user (but root), or in which others may replace files.
"""

import contextlib
import hashlib
import os
import pathlib
import stat
import tempfile
import time
import warnings
from typing import Any

import jax

# Megabytes of all files together.
LARGEST = 512
_SETTING = "RIGIDJAX_KERNEL_CACHE"
_OFF = ("0", "off", "false", "no", "")
_SUFFIX, _PARTIAL = ".kernel", ".partial"
# Seconds after which a partial file is that of a process that was killed.
_ABANDONED = 3600
_warned: set[str] = set()


def folder() -> pathlib.Path | None:
    """Where code is kept; `None` if it is not.

    What the variable `RIGIDJAX_KERNEL_CACHE` of the environment says, a folder or `off`; else in
    the folder of JAX's compilation cache; else in the user's cache. Where JAX's setting
    `jax_enable_compilation_cache` is off, nothing is kept unless the variable names a folder.
    """
    asked = os.environ.get(_SETTING)
    if asked is not None:
        return None if asked.strip().lower() in _OFF else pathlib.Path(asked).expanduser()
    settings: Any = jax.config
    if not settings.jax_enable_compilation_cache:
        return None
    of_jax = settings.jax_compilation_cache_dir
    if of_jax and "://" not in str(of_jax):
        return pathlib.Path(of_jax).expanduser() / "rigidjax-kernels"
    base = os.environ.get("XDG_CACHE_HOME")
    return pathlib.Path(base or pathlib.Path.home() / ".cache") / "rigidjax" / "kernels"


def digest(*parts: str) -> str:
    """A name for what these texts determine."""
    out = hashlib.sha256()
    for part in parts:
        out.update(f"{len(part)}:".encode() + part.encode())
    return out.hexdigest()[:40]


def read(name: str) -> bytes | None:
    """Return the code of that name, if the folder has a file of it that is whole."""
    place = folder()
    if place is None:
        return None
    path = place / (name + _SUFFIX)
    try:
        if not _is_trusted(place):
            return None
        with path.open("rb") as file:
            if _can_be_changed_by_others(os.fstat(file.fileno())):
                return None
            content = file.read()
    except OSError:
        return None  # There is none, or another process has just removed it.
    # A folder that is read-only is read all the same.
    with contextlib.suppress(OSError):
        os.utime(path)
    code = content[32:]
    return code if _checksum(name, code) == content[:32] else None


def write(name: str, code: bytes) -> None:
    """Keep code; warn where that is not possible."""
    place = folder()
    if place is None:
        return
    partial = None
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_trusted(place):
            return
        handle, partial = tempfile.mkstemp(dir=place, suffix=_PARTIAL)
        with os.fdopen(handle, "wb") as file:
            file.write(_checksum(name, code) + code)
        os.replace(partial, place / (name + _SUFFIX))
        _limit_size(place)
    except OSError as error:
        if partial is not None:
            pathlib.Path(partial).unlink(missing_ok=True)
        _warn_once(
            f"Native kernels cannot be kept in {place}: {error}. Name another folder in the "
            f"variable {_SETTING} of the environment, or set it to `off`."
        )


def _checksum(name: str, code: bytes) -> bytes:
    return hashlib.sha256(f"{len(name)}:{name}".encode() + code).digest()


def _is_trusted(place: pathlib.Path) -> bool:
    """Return whether only this user and root can replace files of a folder; warn if others can."""
    status = place.stat()
    # In a sticky folder nobody can replace another user's files, and each file's owner is checked.
    is_sticky = bool(status.st_mode & stat.S_ISVTX) and _belongs_to_user(status)
    if is_sticky or not _can_be_changed_by_others(status):
        return True
    _warn_once(
        f"Native kernels are neither read from nor kept in {place}: it belongs to another user, "
        f"or others can write to it, and code from it would be executed. Make it your own "
        f"(`chown`, `chmod go-w`), name another folder in the variable {_SETTING} of the "
        f"environment, or set it to `off`."
    )
    return False


def _can_be_changed_by_others(status: os.stat_result) -> bool:
    return not _belongs_to_user(status) or bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _belongs_to_user(status: os.stat_result) -> bool:
    """Return whether a file or folder belongs to this user or to root."""
    return status.st_uid in (os.geteuid(), 0)


def _warn_once(message: str) -> None:
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, stacklevel=3)


def _limit_size(place):
    """Remove the least recently used files while all are too large together, and abandoned ones."""
    for path in place.glob("*" + _PARTIAL):
        with contextlib.suppress(FileNotFoundError):  # removed by another process
            if path.stat().st_mtime < time.time() - _ABANDONED:
                path.unlink()
    files = []
    for path in place.glob("*" + _SUFFIX):
        try:
            found = path.stat()
        except FileNotFoundError:
            continue  # removed by another process
        files.append((found.st_mtime, found.st_size, path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= LARGEST * 1_000_000:
            return
        path.unlink(missing_ok=True)
        total -= size
