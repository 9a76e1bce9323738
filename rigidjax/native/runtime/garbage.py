"""Pauses of Python's garbage collector while jaxprs are traced and emitted."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def gc_paused() -> Iterator[None]:
    """Disable the garbage collector inside the context.

    It would traverse the growing jaxpr again and again, for a sixth of the time to trace and emit
    the gradient of a run.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
