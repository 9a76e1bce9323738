"""One computation written in two ways: for kernels, and for XLA.

A kernel goes through loops of small steps at the speed of the processor; XLA pays for every turn
and every array, and has few operations on large arrays instead. Needs no LLVM, so that other parts
of the package can use it.
"""

from collections.abc import Callable
from typing import TypeVar

import jax

T = TypeVar("T")
# What kernels are called among the platforms that a program has branches for.
KERNEL = "native kernel"


def alternatives(in_kernels: Callable[[], T], otherwise: Callable[[], T]) -> T:
    """The result of one of two functions that give the same, to round-off.

    **Arguments:** `in_kernels`, the one that native kernels are made of; `otherwise`, XLA's, which
    compiles no other.
    """
    return jax.lax.platform_dependent(**{KERNEL: in_kernels}, default=otherwise)


def kernel_branch(platforms: tuple[tuple[str, ...] | None, ...]) -> int | None:
    """Which of the branches for several platforms a kernel takes: its own, or that for the CPU.

    **Returns:** its index, or `None` if there is none.
    """
    for name in (KERNEL, "cpu"):
        for k, names in enumerate(platforms):
            if name in (names or ()):
                return k
    return platforms.index(None) if None in platforms else None
