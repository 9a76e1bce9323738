"""Native kernels: programs of JAX as machine code, called inside any `jit`.

What needs LLVM is imported when it is first asked for.
"""

import importlib
from typing import TYPE_CHECKING, Any

from .backend import Backend as Backend

if TYPE_CHECKING:
    from .analysis import NoRule as NoRule, why_not as why_not
    from .function import jit as jit
    from .primitive import native_call as native_call

_WHERE = {
    "jit": "function",
    "native_call": "primitive",
    "why_not": "analysis",
    "NoRule": "analysis",
}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(importlib.import_module(f".{_WHERE[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
