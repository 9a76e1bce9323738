"""Registry of primitives that are implemented in JAX code, which is traced and emitted instead.

This module does not import LLVM, so that other parts of the package can register expansions.
"""

from collections.abc import Callable
from typing import Any

import jax
from jaxtyping import Array, PyTree

Expansion = Callable[..., PyTree]
EXPANSIONS: dict[str, Expansion] = {}


def expansion(*names: str) -> Callable[[Expansion], Expansion]:
    """Register JAX code for primitives: `(*arrays, **params) -> array or arrays`."""

    def register(function: Expansion) -> Expansion:
        for name in names:
            EXPANSIONS[name] = function
        return function

    return register


@expansion("call_hi_primitive")
def _expand_hi_primitive(*arrays: Array, _prim: Any) -> list[Array]:
    """Expand a primitive that JAX 0.12 implements in JAX, such as that of `jnp.searchsorted`."""
    return jax.tree.leaves(_prim.expand(*jax.tree.unflatten(_prim.in_tree, arrays)))
