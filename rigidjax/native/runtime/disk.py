"""Cache of machine code on disk, so that a later process need not compile kernels again.

A file holds a checksum of its name and code, followed by the code. Its name is a digest of the LLVM
IR, LLVM's version, the processor and the optimisations. A damaged or renamed file is replaced.
Files are written atomically. The least recently used ones are removed when the cache is too large.

Code from the folder is executed. Nothing is read from or written to a folder that belongs to a user
other than this one or root, or in which others may replace files.
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

# Largest size of all files together, in megabytes.
LARGEST = 512
_SETTING = "RIGIDJAX_KERNEL_CACHE"
_OFF = ("0", "off", "false", "no", "")
_SUFFIX, _PARTIAL = ".kernel", ".partial"
# Age in seconds after which the writer of a partial file is assumed to be dead.
_ABANDONED = 3600
_warned: set[str] = set()
# Bytes written since the size of the cache was checked; the first write checks it.
_unchecked: float = float("inf")


def folder() -> pathlib.Path | None:
    """Return the folder of the cache; `None` if the cache is off.

    The environment variable `RIGIDJAX_KERNEL_CACHE` has precedence and names a folder or is `off`.
    Otherwise the folder is inside JAX's compilation cache, or inside the user's cache if JAX has
    none or that of the command line, so that the command line and scripts share kernels. The cache
    is off if JAX's setting `jax_enable_compilation_cache` is off.
    """
    asked = os.environ.get(_SETTING)
    if asked is not None:
        return None if asked.strip().lower() in _OFF else pathlib.Path(asked).expanduser()
    settings: Any = jax.config
    if not settings.jax_enable_compilation_cache:
        return None
    jax_cache = settings.jax_compilation_cache_dir
    base = os.environ.get("XDG_CACHE_HOME")
    own = pathlib.Path(base or pathlib.Path.home() / ".cache") / "rigidjax"
    if jax_cache and "://" not in str(jax_cache) and pathlib.Path(jax_cache) != own / "jax":
        return pathlib.Path(jax_cache).expanduser() / "rigidjax-kernels"
    return own / "kernels"


def digest(*parts: str) -> str:
    """Return a digest of texts, for use as a file name."""
    out = hashlib.sha256()
    for part in parts:
        out.update(f"{len(part)}:".encode() + part.encode())
    return out.hexdigest()[:40]


def read(name: str) -> bytes | None:
    """Return the code with this name; `None` if the cache has no intact file of it."""
    directory = folder()
    if directory is None:
        return None
    path = directory / (name + _SUFFIX)
    try:
        if not _is_trusted(directory):
            return None
        with path.open("rb") as file:
            if _can_be_changed_by_others(os.fstat(file.fileno())):
                return None
            content = file.read()
    except OSError:
        return None  # The file does not exist, or another process has just removed it.
    # The time of use cannot be updated in a read-only folder, which is no reason not to read it.
    with contextlib.suppress(OSError):
        os.utime(path)
    code = content[32:]
    return code if _checksum(name, code) == content[:32] else None


def write(name: str, code: bytes) -> None:
    """Write code to the cache; warn if that is impossible."""
    global _unchecked
    directory = folder()
    if directory is None:
        return
    partial = None
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_trusted(directory):
            return
        handle, partial = tempfile.mkstemp(dir=directory, suffix=_PARTIAL)
        with os.fdopen(handle, "wb") as file:
            file.write(_checksum(name, code) + code)
        os.replace(partial, directory / (name + _SUFFIX))
        _unchecked += len(code)
        if _unchecked > LARGEST * 1_000_000 / 64:
            _limit_size(directory)
            _unchecked = 0
    except OSError as error:
        if partial is not None:
            pathlib.Path(partial).unlink(missing_ok=True)
        _warn_once(
            f"Native kernels cannot be kept in {directory}: {error}. Name another folder in the "
            f"environment variable {_SETTING}, or set it to `off`."
        )


def _checksum(name: str, code: bytes) -> bytes:
    return hashlib.sha256(f"{len(name)}:{name}".encode() + code).digest()


def _is_trusted(directory: pathlib.Path) -> bool:
    """Return whether only this user and root can replace files of a folder; warn if others can."""
    status = directory.stat()
    # In a sticky folder users cannot replace files of others, and the owner of a file is checked.
    is_sticky = bool(status.st_mode & stat.S_ISVTX) and _belongs_to_user(status)
    if is_sticky or not _can_be_changed_by_others(status):
        return True
    _warn_once(
        f"Native kernels are neither read from nor kept in {directory}: it belongs to another "
        f"user, or others can write to it, and code from it would be executed. Make it your own "
        f"(`chown`, `chmod go-w`), name another folder in the environment variable {_SETTING}, "
        f"or set it to `off`."
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


def _limit_size(directory: pathlib.Path) -> None:
    """Remove abandoned files, and the least recently used ones of a cache that is too large."""
    for path in directory.glob("*" + _PARTIAL):
        with contextlib.suppress(FileNotFoundError):  # removed by another process
            if path.stat().st_mtime < time.time() - _ABANDONED:
                path.unlink()
    files = []
    for path in directory.glob("*" + _SUFFIX):
        try:
            status = path.stat()
        except FileNotFoundError:
            continue  # removed by another process
        files.append((status.st_mtime, status.st_size, path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= LARGEST * 1_000_000:
            return
        path.unlink(missing_ok=True)
        total -= size
