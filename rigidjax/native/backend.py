"""Choice of the backend of a run, a native kernel or XLA, with the reasons."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
from jax.core import Tracer
from jax.extend.core import ClosedJaxpr, Var, jaxpr_as_fun
from jaxtyping import Array, PyTree

from .runtime.platforms import why_no_kernels

BACKENDS = ("auto", "native", "xla")
# Size of the largest matrix of loop constraints (constraints that share joints, or velocities if
# these are fewer) up to which kernels of explicit steps are faster than XLA, as measured on chains
# of four-bar linkages; see `docs/benchmarks/`. The number of bodies hardly matters.
LARGEST_DECOMPOSITION = 12
# Number of array elements outside registers and outside loops over stacks up to which kernels of
# implicit steps, which factorise matrices of all unknowns, are faster than XLA; see
# `docs/benchmarks/`.
LARGE = 300_000


class Backend(eqx.Module):
    """Name of a backend, `"native"` or `"xla"`; equal to this string. A pytree without arrays.

    **Attributes:** `name`, `"native"` or `"xla"`; `why_not`, the reasons why the run is not a
    native kernel, if any.
    """

    name: str = eqx.field(static=True)
    why_not: tuple[str, ...] = eqx.field(static=True, default=())

    def __eq__(self, other: object) -> bool:
        return self.name == (other.name if isinstance(other, Backend) else other)

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


def check_backend(backend: str) -> str:
    """Return the requested backend.

    **Raises:** `ValueError` for a name that is not in `BACKENDS`.
    """
    if backend not in BACKENDS:
        raise ValueError(f'`backend` must be "auto", "native" or "xla"; got {backend!r}.')
    return backend


def choose_backend(
    asked: str, closed: ClosedJaxpr, too_large: Callable[[ClosedJaxpr], list[str]] | None
) -> Backend:
    """Choose the backend that runs a jaxpr.

    **Arguments:**

    - `asked`: the requested backend, one of `BACKENDS`.
    - `closed`: the jaxpr.
    - `too_large`: function that returns why XLA is faster, which decides if `asked` is `"auto"`:
      `why_too_large_matrices` for explicit steps, `why_too_many_elements` for implicit ones.

    **Raises:** `ValueError` if `asked` is `"native"` and the jaxpr cannot be a kernel.
    """
    if asked == "xla":
        return Backend("xla", ('`backend="xla"` was asked for',))
    from .runtime.cuda.launch import why_not_on_default_device
    from .runtime.support import why_not

    reasons = why_no_kernels() or why_not_on_default_device(closed) or why_not(closed)
    if not reasons and asked == "auto" and too_large is not None:
        reasons = too_large(closed)
    if not reasons:
        return Backend("native")
    if asked == "native":
        raise ValueError(
            '`backend="native"` cannot run this as a kernel: ' + "; ".join(reasons) + ". "
            'Use `backend="auto"`, which leaves such runs to XLA.'
        )
    return Backend("xla", tuple(reasons))


def why_too_many_elements(closed: ClosedJaxpr) -> list[str]:
    """Return why XLA is faster if a jaxpr has many elements outside registers, else no reasons."""
    from .passes.analysis import count_outside_registers
    from .passes.loop_fusion import fuse_loops
    from .passes.outlining import find_jaxprs_to_outline

    size = count_outside_registers(fuse_loops(closed, shared=find_jaxprs_to_outline(closed)).jaxpr)
    if size <= LARGE:
        return []
    return [
        f"the system is large ({size} array elements outside registers; the limit is {LARGE}): XLA "
        "runs it faster"
    ]


def why_too_large_matrices(closed: ClosedJaxpr) -> list[str]:
    """Return why XLA is faster if a jaxpr decomposes large matrices, else no reasons."""
    from .passes.analysis import largest_decomposition

    size = largest_decomposition(closed.jaxpr)
    if size <= LARGEST_DECOMPOSITION:
        return []
    return [
        f"loops that share joints make a large matrix ({size} constraints or rates; the limit is "
        f"{LARGEST_DECOMPOSITION}): XLA runs it faster"
    ]


def call_by_kernel(function: Callable[..., PyTree], *args: PyTree) -> PyTree:
    """Return `function(*args)` of pytrees, by a kernel if it is possible and not too large.

    The kernel is compiled fast rather than well, because the function is evaluated once beside a
    long run. Arguments that are returned unchanged do not become results of the kernel. A function
    that closes over traced arrays is not made a kernel.
    """
    from .jaxrules.function import prune
    from .jaxrules.primitive import native_call

    closed, leaves, rebuild = _trace(function, args)
    jaxpr = closed.jaxpr
    inputs = dict(zip(jaxpr.invars, leaves, strict=True))
    forwarded = [inputs.get(var) if isinstance(var, Var) else None for var in jaxpr.outvars]
    if all(x is not None for x in forwarded):
        return rebuild(forwarded)
    computed = [k for k, x in enumerate(forwarded) if x is None]
    closed, leaves = prune(closed, computed, leaves)
    closes_over_tracers = any(isinstance(const, Tracer) for const in closed.consts)
    is_native = choose_backend("auto", closed, why_too_many_elements) == "native"
    if is_native and not closes_over_tracers:
        results = iter(native_call(closed, leaves, strict=False, run_once=True))
    else:
        results = iter(jaxpr_as_fun(closed)(*leaves))
    return rebuild([next(results) if x is None else x for x in forwarded])


def call_as_single_kernel(
    possible: Callable[..., bool], function: Callable, *args: PyTree
) -> PyTree:
    """Return `function(*args)` of pytrees, by one kernel if `possible(results)` is true.

    The code around a solve becomes part of the kernel of the solve, so that XLA has nothing to
    compile. Under differentiation and `jax.vmap` the call is replaced by the function itself, whose
    solve has its own rules. A function that closes over traced arrays is not made a kernel.

    **Arguments:** `possible`, predicate of the abstract results.
    """
    from .jaxrules.primitive import native_call

    closed, leaves, rebuild = _trace(function, args)
    closes_over_tracers = any(isinstance(const, Tracer) for const in closed.consts)
    if not closes_over_tracers and possible(rebuild(closed.jaxpr.outvars)):
        return rebuild(native_call(closed, leaves, strict=False, inline=True))
    return rebuild(jaxpr_as_fun(closed)(*leaves))


def call_as_kernel(
    asked: str,
    too_large: Callable[[ClosedJaxpr], list[str]] | None,
    function: Callable[..., PyTree],
    *args: PyTree,
    num_tangents: int = 0,
) -> PyTree:
    """Return `function(*args)` of pytrees, by one kernel where the backend is native.

    Derivatives and batches of the call are kernels too. A function that closes over traced arrays
    is not made a kernel.

    **Arguments:** `asked`, `too_large`, as of `choose_backend`; `num_tangents`, as of
    `native_call`.
    **Errors:** `ValueError` if `asked` is `"native"` and the function cannot be a kernel.
    """
    from .jaxrules.primitive import native_call

    closed, leaves, rebuild = _trace(function, args)
    closes_over_tracers = any(isinstance(const, Tracer) for const in closed.consts)
    if not closes_over_tracers and choose_backend(asked, closed, too_large) == "native":
        return rebuild(native_call(closed, leaves, strict=False, num_tangents=num_tangents))
    # Results that are literals of the jaxpr are Python numbers.
    pairs = zip(jaxpr_as_fun(closed)(*leaves), closed.out_avals, strict=True)
    return rebuild([jax.numpy.asarray(x, aval.dtype) for x, aval in pairs])


def _trace(
    function: Callable[..., PyTree], args: tuple[PyTree, ...]
) -> tuple[ClosedJaxpr, list[Array], Callable[[Any], PyTree]]:
    """Return the jaxpr of a function, its array arguments, and a function that rebuilds results."""
    from .jaxrules.function import trace_flat

    arrays, static = eqx.partition(args, eqx.is_array)
    leaves, structure = jax.tree.flatten(arrays)
    closed, rebuild = trace_flat(function, leaves, structure, static, eqx.is_array)
    return closed, leaves, rebuild
