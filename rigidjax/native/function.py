"""`rj.native.jit`: a small JAX function as a native kernel."""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax

from .emitter import why_not
from .primitive import native_call


class _Native:
    """A function whose calls are kernels; see `jit`."""

    def __init__(self, function: Callable[..., Any]):
        self._function = function
        functools.update_wrapper(self, function)
        self._traced: dict[Any, Any] = {}

    def __call__(self, *args: Any) -> Any:
        leaves, closed, tree = self._trace(args)
        missing = why_not(closed)
        if missing:
            raise NotImplementedError(
                f"`rj.native.jit` has no rule for {', '.join(missing)}. Use `jax.jit`."
            )
        return jax.tree.unflatten(tree, native_call(closed, leaves))

    def why_not(self, *args: Any) -> list[str]:
        """What keeps the function from being a kernel for these arguments; empty if nothing."""
        return why_not(self._trace(args)[1])

    def _trace(self, args) -> tuple[list[Any], Any, Any]:
        arrays, static = eqx.partition(args, eqx.is_array_like)
        leaves, structure = jax.tree.flatten(arrays)
        leaves = [jax.numpy.asarray(x) for x in leaves]
        key = (
            structure,
            tuple((x.shape, x.dtype) for x in leaves),
            tuple(jax.tree.leaves(static)),
            jax.tree.structure(static),
        )
        if key not in self._traced:

            def flat(*leaves):
                return self._function(*eqx.combine(jax.tree.unflatten(structure, leaves), static))

            shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in leaves]
            closed, out = jax.make_jaxpr(flat, return_shape=True)(*shapes)
            self._traced[key] = closed, jax.tree.structure(out)
        return leaves, *self._traced[key]


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """A JAX function as a native kernel."""
    return _Native(function)
