"""Writing a file so that it is there whole or not at all."""

import contextlib
import os
import pathlib
from collections.abc import Iterator


def check_target(path: str | os.PathLike[str], force: bool = False) -> pathlib.Path:
    """The path of a file that may be written; to be called before any work is done for it.

    **Raises:** `FileExistsError` unless `force`; `OSError` for a folder, for a folder that does not
    exist or in which no file can be made.
    """
    target = pathlib.Path(path)
    _refuse(target, force)
    _create(target).unlink()
    return target


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], force: bool = False) -> Iterator[pathlib.Path]:
    """A temporary file beside `path`, moved there at the end, or removed if anything fails.

    **Arguments:** `path`; `force`, replace an existing file.
    **Raises:** as `check_target`.
    """
    target = pathlib.Path(path)
    _refuse(target, force)
    temporary = _create(target)
    try:
        yield temporary
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _refuse(target: pathlib.Path, force: bool) -> None:
    if target.is_dir():
        raise IsADirectoryError(f"Cannot write {target}: it is a folder. Name a file.")
    if target.exists() and not force:
        raise FileExistsError(f"{target} exists. Choose another name, or force overwriting it.")


def _create(target: pathlib.Path) -> pathlib.Path:
    # The ending stays last: figures are written in the format that it names.
    temporary = target.with_name(f".{target.stem}.{os.getpid()}{target.suffix}")
    try:
        temporary.touch(exist_ok=False)
    except OSError as error:
        raise type(error)(f"Cannot write {target}: {error.strerror or error}.") from error
    return temporary
