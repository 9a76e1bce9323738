"""Atomic writing of files: a file appears complete or not at all."""

import contextlib
import contextvars
import os
import pathlib
from collections.abc import Iterator

from .. import interrupts

_Moves = list[tuple[pathlib.Path, pathlib.Path]]

# Temporary files and targets of the current `together` block; `None` outside.
_waiting: contextvars.ContextVar[_Moves | None] = contextvars.ContextVar("waiting", default=None)


def check_target(path: str | os.PathLike[str], force: bool = False) -> pathlib.Path:
    """Check that a file can be written, before computing its content; return its path.

    **Errors:** `FileExistsError` for an existing file without `force`; `OSError` for the path of a
    folder, and if the file cannot be created.
    """
    target = pathlib.Path(path)
    _check_overwrite(target, force)
    _remove(_create(target))
    return target


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], force: bool = False) -> Iterator[pathlib.Path]:
    """Open a context with a temporary file beside `path`, moved there at the end.

    The temporary file is removed if anything fails.

    **Arguments:** `path`; `force`, replace an existing file.
    **Errors:** as for `check_target`.
    """
    target = pathlib.Path(path)
    _check_overwrite(target, force)
    waiting = _waiting.get()
    temporary = _create(target)
    try:
        yield temporary
        moves = [(temporary, target)]
        if waiting is None:
            _move(moves)
        else:
            waiting += moves
    except BaseException:
        _remove(temporary)
        raise


def write_text(path: str | os.PathLike[str], text: str, force: bool = False) -> pathlib.Path:
    """Write a text file in UTF-8, completely or not at all.

    **Returns:** the path.
    **Errors:** as for `check_target`.
    """
    with replacing(path, force) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return pathlib.Path(path)


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Open a context at whose end all files written by `replacing` appear, or none of them.

    All functions of the package that write files use `replacing`.
    """
    moves: _Moves = []
    token = _waiting.set(moves)
    try:
        yield
        _move(moves)
    finally:
        _waiting.reset(token)
        for temporary, _ in moves:
            _remove(temporary)


def _move(moves: _Moves) -> None:
    with interrupts.move_lock:
        for temporary, target in moves:
            os.replace(temporary, target)
            interrupts.temporary_files.discard(str(temporary))


def _check_overwrite(target: pathlib.Path, force: bool) -> None:
    if target.is_dir():
        raise IsADirectoryError(f"Cannot write {target}: it is a folder. Name a file.")
    if target.exists() and not force:
        raise FileExistsError(
            f"{target} exists. Choose another name, or pass `force=True` to replace it."
        )


def _create(target: pathlib.Path) -> pathlib.Path:
    # The suffix stays last, because it chooses the format of figures.
    temporary = target.with_name(f".{target.stem}.{os.getpid()}{target.suffix}")
    interrupts.temporary_files.add(str(temporary))
    try:
        temporary.touch(exist_ok=False)
    except OSError as error:
        interrupts.temporary_files.discard(str(temporary))
        raise type(error)(f"Cannot write {target}: {error.strerror or error}.") from error
    return temporary


def _remove(temporary: pathlib.Path) -> None:
    temporary.unlink(missing_ok=True)
    interrupts.temporary_files.discard(str(temporary))
