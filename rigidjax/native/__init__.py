"""Native kernels: programs of JAX as machine code, called inside any `jit`.

What needs LLVM is imported when it is first asked for.
"""

import importlib
from typing import TYPE_CHECKING, Any

from .backend import Backend as Backend

if TYPE_CHECKING:
    from .jaxrules.function import jit as jit
    from .jaxrules.primitive import native_call as native_call
    from .lowering.registry import NoRule as NoRule
    from .passes.support import why_not as why_not
    from .runtime import disk as disk

_MODULES = {
    "jit": "jaxrules.function",
    "native_call": "jaxrules.primitive",
    "why_not": "passes.support",
    "NoRule": "lowering.registry",
    "disk": "runtime",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        module = importlib.import_module(f".{_MODULES[name]}", __name__)
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
