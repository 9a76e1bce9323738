"""Names of a package that are imported at first use."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def deferred_names(
    package: str, homes: Mapping[str, str | None]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package.

    **Arguments:** `package`, its name; `homes`, the module inside the package that defines each
    name, `None` for a name that is itself a module.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from .native import gc_paused

        home = homes[name]
        with gc_paused():
            module = import_module(f".{home or name}", package)
        return module if home is None else getattr(module, name)

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return get, names
