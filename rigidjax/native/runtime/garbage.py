"""Pauses of Python's garbage collector while jaxprs are traced and emitted."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def gc_paused() -> Iterator[None]:
    """Disable the garbage collector inside the context.

    It would traverse the growing jaxpr again and again, for a sixth of the time to trace and emit
    the gradient of a run. Objects made in the context count as old afterwards: the collector does
    not search them at once.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            make_all_old()
            gc.enable()


def make_all_old() -> None:
    """Move every object to the oldest generation of the garbage collector without a search."""
    if not gc.get_freeze_count():  # Otherwise objects that other code froze would be unfrozen.
        gc.freeze()
        gc.unfreeze()
