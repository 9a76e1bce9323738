"""`rj.native.jit`: a small JAX function as a native kernel."""

import functools
import types
from collections.abc import Callable

import equinox as eqx
import jax
from jax.core import Tracer
from jax.extend.core import ClosedJaxpr
from jaxtyping import Array, PyTree

from ..passes.support import why_not
from ..runtime.garbage import gc_paused
from .meshes import trace_without_mesh
from .primitive import native_call


class _NativeFunction:
    """A function whose calls are kernels; see `jit`."""

    def __init__(self, function: Callable[..., PyTree]):
        self._function = function
        functools.update_wrapper(self, function)
        self._traced: dict[tuple, tuple] = {}

    def __call__(self, *args: PyTree, **kwargs: PyTree) -> PyTree:
        leaves, closed, whole = self._trace(args, kwargs)
        missing = why_not(closed)
        if missing:
            raise NotImplementedError(
                f"`rj.native.jit` has no rule for {', '.join(missing)}. Use `jax.jit`."
            )
        return whole(native_call(closed, leaves))

    def why_not(self, *args: PyTree, **kwargs: PyTree) -> list[str]:
        """What keeps the function from being a kernel for these arguments; empty if nothing."""
        return why_not(self._trace(args, kwargs)[1])

    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., PyTree]:
        """As a method the function gets the object first."""
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self):
        """Copies trace again: programs belong to this process."""
        return _NativeFunction, (self._function,)

    def _trace(self, args, kwargs) -> tuple[list[Array], ClosedJaxpr, Callable]:
        arrays, static = eqx.partition((args, kwargs), eqx.is_array_like)
        leaves, structure = jax.tree.flatten(arrays)
        leaves = [jax.numpy.asarray(x) for x in leaves]
        key = (
            structure,
            tuple(map(jax.typeof, leaves)),
            tuple(jax.tree.leaves(static)),
            jax.tree.structure(static),
        )
        if key in self._traced:
            return leaves, *self._traced[key]
        closed, whole = trace_flat(self._called, leaves, structure, static)
        if any(isinstance(const, Tracer) for const in closed.consts):
            # What the function closes over, and another time something else.
            return [*closed.consts, *leaves], _constants_to_arguments(closed), whole
        self._traced[key] = closed, whole
        return leaves, closed, whole

    def _called(self, args, kwargs):
        return self._function(*args, **kwargs)


def _constants_to_arguments(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with its constants as the first arguments."""
    jaxpr = closed.jaxpr
    info = jaxpr.debug_info._replace(arg_names=None)
    arguments = [*jaxpr.constvars, *jaxpr.invars]
    return ClosedJaxpr(jaxpr.replace(constvars=[], invars=arguments, debug_info=info), [])


@gc_paused()
def trace_flat(function, leaves, structure, static, is_array: Callable = eqx.is_array_like):
    """The program of a function, and what makes its results of those of the program."""
    rest: PyTree = None

    def flat(*leaves):
        nonlocal rest
        out = function(*eqx.combine(jax.tree.unflatten(structure, leaves), static))
        arrays, rest = eqx.partition(out, is_array)
        return arrays

    shapes = [
        jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=jax.typeof(x).weak_type) for x in leaves
    ]
    closed, out = trace_without_mesh(flat, *shapes, return_shape=True)
    tree = jax.tree.structure(out)
    return closed, lambda results: eqx.combine(jax.tree.unflatten(tree, results), rest)


def select_outputs(closed: ClosedJaxpr, results: list[int]) -> ClosedJaxpr:
    """The program with these results alone."""
    jaxpr = closed.jaxpr
    info = jaxpr.debug_info._replace(result_paths=("",) * len(results))
    outvars = [jaxpr.outvars[k] for k in results]
    return ClosedJaxpr(jaxpr.replace(outvars=outvars, debug_info=info), closed.consts)


def jit(function: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """A JAX function as a native kernel."""
    return _NativeFunction(function)
