"""Primitives that kernels know as JAX code: traced, and emitted in their place.

Needs no LLVM, so that other parts of the package can register what they have.
"""

from collections.abc import Callable

import jax
from jaxtyping import PyTree

Expansion = Callable[..., PyTree]
EXPANSIONS: dict[str, Expansion] = {}


def expansion(*names: str) -> Callable[[Expansion], Expansion]:
    """Register JAX code in the place of primitives: `(*arrays, **params) -> array or arrays`."""

    def register(function: Expansion) -> Expansion:
        for name in names:
            EXPANSIONS[name] = function
        return function

    return register


@expansion("call_hi_primitive")
def _written_in_jax(*arrays, _prim):
    """What JAX 0.12 has written in JAX itself, such as `jnp.searchsorted`."""
    return jax.tree.leaves(_prim.expand(*jax.tree.unflatten(_prim.in_tree, arrays)))
