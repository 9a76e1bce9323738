"""One computation written in two ways: for kernels, and for XLA.

A kernel goes through loops of small steps at the speed of the processor; XLA pays for every turn
and every array, and has few operations on large arrays instead. Needs no LLVM, so that other parts
of the package can use it.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import mlir

# Whether the program is a kernel: known when it is emitted or lowered.
in_kernel_p = Primitive("in_kernel")
in_kernel_p.def_impl(lambda: np.False_)
in_kernel_p.def_abstract_eval(lambda: ShapedArray((), np.bool_))
mlir.register_lowering(
    in_kernel_p, mlir.lower_fun(lambda: jax.numpy.zeros((), bool), multiple_results=False)
)


def alternatives(in_kernels: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """The result of one of two functions that give the same, to round-off.

    **Arguments:** `in_kernels`, the one that native kernels are made of; `otherwise`, XLA's.
    """
    return jax.lax.cond(in_kernel_p.bind(), in_kernels, otherwise)
