"""Machine code of kernels on disk, so that a later process need not compile them again.

A file holds the digest of its code, then the code; its name is a digest of the program's text, of
LLVM's version, of the processor and of the optimisations. A file that is damaged is written anew.
Files appear whole or not at all; those not used for longest go when all of them are too large.
"""

import hashlib
import os
import pathlib
import tempfile
import warnings
from typing import Any

import jax

# Megabytes of all files together.
LARGEST = 512
_SETTING = "RIGIDJAX_KERNEL_CACHE"
_OFF = ("0", "off", "false", "no", "")
_SUFFIX = ".kernel"


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
    """The code of that name, if there is any that is whole."""
    place = folder()
    if place is None:
        return None
    path = place / (name + _SUFFIX)
    try:
        found = path.read_bytes()
        os.utime(path)
    except OSError:
        return None  # There is none, or another process has just removed it.
    code = found[32:]
    return code if hashlib.sha256(code).digest() == found[:32] else None


def write(name: str, code: bytes) -> None:
    """Keep code; a warning where that is not possible."""
    place = folder()
    if place is None:
        return
    try:
        place.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(dir=place)
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(code).digest() + code)
        os.replace(partial, place / (name + _SUFFIX))
        _bound(place)
    except OSError as error:
        warnings.warn(
            f"Native kernels cannot be kept in {place}: {error}. Name another folder in the "
            f"variable {_SETTING} of the environment, or set it to `off`.",
            stacklevel=2,
        )


def _bound(place):
    """Remove the files that were not used for longest, as long as all are too large together."""
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
