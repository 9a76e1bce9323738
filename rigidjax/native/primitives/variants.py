"""Two implementations of one function: a sequential and a batched one.

A kernel runs loops of small steps at the speed of the processor. XLA has an overhead for every loop
iteration and every array, so that few operations on large arrays suit it better. This module needs
no LLVM, so that importing it is cheap.
"""

from collections.abc import Callable
from typing import TypeVar

import jax

T = TypeVar("T")
# Platform under which `jax.lax.platform_dependent` holds the kernel variant. XLA compiles for no
# such platform and discards the branch.
KERNEL_PLATFORM = "native kernel"


def variants(*, sequential: Callable[[], T], batched: Callable[[], T]) -> T:
    """Return the result of one of two functions that compute equal values up to round-off.

    **Arguments:** `sequential`, loops of small steps, which native kernels contain; `batched`, few
    operations on large arrays, which XLA compiles. Only one of both is compiled.
    """
    return jax.lax.platform_dependent(**{KERNEL_PLATFORM: sequential}, default=batched)


def kernel_branch(platforms: tuple[tuple[str, ...] | None, ...]) -> int | None:
    """Return the index of the platform-dependent branch that a kernel takes.

    The kernel variant has precedence over the branch for the CPU and over the default branch.

    **Returns:** the index, or `None` if no branch applies.
    """
    for name in (KERNEL_PLATFORM, "cpu"):
        for k, names in enumerate(platforms):
            if name in (names or ()):
                return k
    return platforms.index(None) if None in platforms else None
