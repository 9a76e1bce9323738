"""Python's garbage collector, which waits while programs are made."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def gc_paused() -> Iterator[None]:
    """The collector waits: it would go through a program that grows again and again.

    That takes a sixth of the time in which the gradient of a run is traced and emitted.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
