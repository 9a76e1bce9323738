"""Two implementations of one function: the kernel variant and the XLA variant.

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


def variants(*, kernel: Callable[[], T], xla: Callable[[], T]) -> T:
    """Return the result of one of two functions that compute equal values up to round-off.

    **Arguments:** `kernel`, the function that native kernels contain; `xla`, the function that XLA
    compiles. Only one of both is compiled.
    """
    return jax.lax.platform_dependent(**{KERNEL_PLATFORM: kernel}, default=xla)


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
