"""`rj.native.jit`: a JAX function as a native kernel."""

import functools
import types
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
from jax.core import Tracer
from jax.extend.core import ClosedJaxpr
from jax.interpreters.partial_eval import dce_jaxpr_consts
from jaxtyping import Array, PyTree

from ..primitives.registry import NoRule
from ..runtime.garbage import gc_paused
from ..runtime.support import why_not
from .meshes import trace_without_mesh
from .primitive import native_call


class _NativeFunction:
    """A function whose calls are kernels; see `jit`."""

    def __init__(self, function: Callable[..., PyTree]):
        self._function = function
        functools.update_wrapper(self, function)
        self._traced: dict[tuple, tuple] = {}

    def __call__(self, *args: PyTree, **kwargs: PyTree) -> PyTree:
        leaves, closed, rebuild, missing = self._trace(args, kwargs)
        if missing:
            raise NoRule(f"`rj.native.jit` has no rule for {', '.join(missing)}. Use `jax.jit`.")
        return rebuild(native_call(closed, leaves))

    def why_not(self, *args: PyTree, **kwargs: PyTree) -> list[str]:
        """Return why the function cannot be a kernel for these arguments; empty if it can."""
        return self._trace(args, kwargs)[3]

    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., PyTree]:
        """Bind the function to an instance, if it is accessed as a method."""
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self):
        """Pickle the function alone: a copy traces again, as jaxprs belong to this process."""
        return _NativeFunction, (self._function,)

    def _trace(
        self, args: tuple[PyTree, ...], kwargs: dict[str, PyTree]
    ) -> tuple[list[Array], ClosedJaxpr, Callable, list[str]]:
        """Return the leaves, the jaxpr, a function that rebuilds the results, and its obstacles."""
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
        closed, rebuild = trace_flat(self._call_function, leaves, structure, static)
        if any(isinstance(const, Tracer) for const in closed.consts):
            # The traced values that the function closes over differ at the next call.
            closed_over = [*closed.consts, *leaves]
            closed = _constants_to_arguments(closed)
            return closed_over, closed, rebuild, why_not(closed)
        self._traced[key] = closed, rebuild, why_not(closed)
        return leaves, *self._traced[key]

    def _call_function(self, args: tuple[PyTree, ...], kwargs: dict[str, PyTree]) -> PyTree:
        return self._function(*args, **kwargs)


def _constants_to_arguments(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return the jaxpr with its constants as the first arguments."""
    jaxpr = closed.jaxpr
    info = jaxpr.debug_info._replace(arg_names=None)
    arguments = [*jaxpr.constvars, *jaxpr.invars]
    return ClosedJaxpr(jaxpr.replace(constvars=[], invars=arguments, debug_info=info), [])


@gc_paused()
def trace_flat(
    function: Callable[..., PyTree],
    leaves: list[Array],
    structure: Any,
    static: PyTree,
    is_array: Callable[[Any], bool] = eqx.is_array_like,
) -> tuple[ClosedJaxpr, Callable[[Any], PyTree]]:
    """Trace a function of pytrees to a jaxpr of its array leaves.

    **Arguments:** `leaves` and `structure`, the array part of the positional arguments; `static`,
    their other part; `is_array`, predicate of the leaves of results that are arrays.
    **Returns:** the jaxpr, and a function that rebuilds the results from those of the jaxpr.
    """
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


def prune(
    closed: ClosedJaxpr, results: list[int], leaves: list[Array]
) -> tuple[ClosedJaxpr, list[Array]]:
    """Return the jaxpr with the results of these indices alone, and the arguments it needs."""
    wanted = [k in results for k in range(len(closed.jaxpr.outvars))]
    jaxpr, used_consts, used = dce_jaxpr_consts(closed.jaxpr, wanted)
    consts = [x for x, is_used in zip(closed.consts, used_consts, strict=True) if is_used]
    return ClosedJaxpr(jaxpr, consts), [x for x, u in zip(leaves, used, strict=True) if u]


def jit(function: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """Return a JAX function as a native kernel, called inside any `jax.jit`."""
    return _NativeFunction(function)
