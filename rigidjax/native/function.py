"""`rj.native.jit`: a small JAX function as a native kernel."""

import functools
from collections.abc import Callable

import equinox as eqx
import jax
from jax.extend.core import ClosedJaxpr
from jaxtyping import Array, PyTree

from ..garbage import nothing_collected
from ..meshes import program_of
from .analysis import why_not
from .primitive import native_call


class _Native:
    """A function whose calls are kernels; see `jit`."""

    def __init__(self, function: Callable[..., PyTree]):
        self._function = function
        functools.update_wrapper(self, function)
        self._traced: dict[tuple, tuple] = {}

    def __call__(self, *args: PyTree) -> PyTree:
        leaves, closed, whole = self._trace(args)
        missing = why_not(closed)
        if missing:
            raise NotImplementedError(
                f"`rj.native.jit` has no rule for {', '.join(missing)}. Use `jax.jit`."
            )
        return whole(native_call(closed, leaves))

    def why_not(self, *args: PyTree) -> list[str]:
        """What keeps the function from being a kernel for these arguments; empty if nothing."""
        return why_not(self._trace(args)[1])

    def _trace(self, args) -> tuple[list[Array], ClosedJaxpr, Callable[[list[Array]], PyTree]]:
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
            self._traced[key] = program(self._function, leaves, structure, static)
        return leaves, *self._traced[key]


@nothing_collected()
def program(function, leaves, structure, static, is_array: Callable = eqx.is_array_like):
    """The program of a function, and what makes its results of those of the program."""
    rest: PyTree = None

    def flat(*leaves):
        nonlocal rest
        out = function(*eqx.combine(jax.tree.unflatten(structure, leaves), static))
        arrays, rest = eqx.partition(out, is_array)
        return arrays

    shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in leaves]
    closed, out = program_of(flat, *shapes, return_shape=True)
    tree = jax.tree.structure(out)
    return closed, lambda results: eqx.combine(jax.tree.unflatten(tree, results), rest)


def pruned(closed: ClosedJaxpr, results: list[int]) -> ClosedJaxpr:
    """The program with these results alone."""
    jaxpr = closed.jaxpr
    info = jaxpr.debug_info._replace(result_paths=("",) * len(results))
    outvars = [jaxpr.outvars[k] for k in results]
    return ClosedJaxpr(jaxpr.replace(outvars=outvars, debug_info=info), closed.consts)


def jit(function: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """A JAX function as a native kernel."""
    return _Native(function)
