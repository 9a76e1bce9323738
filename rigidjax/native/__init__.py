"""Native kernels: programs of JAX as machine code, called inside any `jit`."""

from .jit import jit

__all__ = ["jit"]
