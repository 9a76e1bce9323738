"""Writing files so that they are there whole or not at all."""

import contextlib
import contextvars
import os
import pathlib
from collections.abc import Iterator

from .. import interrupts

_Moves = list[tuple[pathlib.Path, pathlib.Path]]

# Files that are written but not yet in their places, inside of `together`.
_waiting: contextvars.ContextVar[_Moves | None] = contextvars.ContextVar("waiting", default=None)


def check_target(path: str | os.PathLike[str], force: bool = False) -> pathlib.Path:
    """The path of a file that may be written; to be called before any work is done for it.

    **Raises:** `FileExistsError` unless `force`; `OSError` for a folder, for a folder that does not
    exist or in which no file can be made.
    """
    target = pathlib.Path(path)
    _refuse(target, force)
    _remove(_create(target))
    return target


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], force: bool = False) -> Iterator[pathlib.Path]:
    """A temporary file beside `path`, moved there at the end, or removed if anything fails.

    **Arguments:** `path`; `force`, replace an existing file.
    **Raises:** as `check_target`.
    """
    target = pathlib.Path(path)
    _refuse(target, force)
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
    """Write a text file in UTF-8, whole or not at all.

    **Returns:** the path.
    **Raises:** as `check_target`.
    """
    with replacing(path, force) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return pathlib.Path(path)


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Files written inside by `replacing` come to their places at the end, or none of them.

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


def _refuse(target: pathlib.Path, force: bool) -> None:
    if target.is_dir():
        raise IsADirectoryError(f"Cannot write {target}: it is a folder. Name a file.")
    if target.exists() and not force:
        raise FileExistsError(f"{target} exists. Choose another name, or force overwriting it.")


def _create(target: pathlib.Path) -> pathlib.Path:
    # The ending stays last: figures are written in the format that it names.
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
