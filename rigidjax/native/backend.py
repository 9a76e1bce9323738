"""Which backend a run takes, and why."""

from collections.abc import Callable

import equinox as eqx
import jax
from jax.core import Tracer
from jax.extend.core import ClosedJaxpr, Var, jaxpr_as_fun
from jaxtyping import PyTree

BACKENDS = ("auto", "native", "xla")
# Constraints of loops that are decomposed together, or rates if these are fewer, up to which
# kernels of explicit steps are faster: four four-bars in a row (9; 0.7 times as fast alone, 2.3
# times in a batch of 16), five (11; 0.5 and 1.3 times), six (13; 0.3 and 0.9 times). Loops that
# share no joint are decomposed one by one, and how large the system is does not matter: one loop of
# 30 bodies (6; 3.6 and, in a batch of 8, 31 times), a chain of 100 (none; 3.3 and 6 times).
LARGEST_DECOMPOSITION = 12
# Numbers outside of registers and of loops over stacks up to which kernels with matrices of all
# unknowns are faster: `Radau5` on a chain of 8 (128,000; 3.6 and 8 times), on Andrews' mechanism
# (68,000; 0.6 and 2.3 times), on a five-bar at index 2, stabilized (269,000; 0.7 and 3.6 times, the
# first run 2.3 times).
LARGE = 300_000


class Backend(eqx.Module):
    """A backend's name, `"native"` or `"xla"`; compares equal to it. A pytree without arrays.

    **Attributes:** `name`; `why_not`, what kept the run from being a native kernel, if anything.
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
    """The backend that was asked for.

    **Raises:** `ValueError` for a name that is none.
    """
    if backend not in BACKENDS:
        raise ValueError(f'`backend` must be "auto", "native" or "xla"; got {backend!r}.')
    return backend


def choose_backend(
    asked: str, closed: ClosedJaxpr, too_large: Callable[[ClosedJaxpr], list[str]] | None
) -> Backend:
    """The backend for a program; `too_large`, why no kernel is taken that is not asked for:
    `why_too_large_matrices` for explicit steps, `why_too_many_elements` for implicit ones.

    **Raises:** `ValueError` if `"native"` was asked for and cannot be.
    """
    if asked == "xla":
        return Backend("xla", ('`backend="xla"` was asked for',))
    from .passes.support import why_not
    from .runtime.cuda.launch import why_not_on_default_device

    reasons = why_not_on_default_device(closed) or why_not(closed)
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
    """Whether a program has more numbers outside of registers than kernels are fast with."""
    from .passes.analysis import count_outside_registers
    from .passes.loop_fusion import fuse_loops
    from .passes.outlining import find_jaxprs_to_outline

    size = count_outside_registers(fuse_loops(closed, shared=find_jaxprs_to_outline(closed)).jaxpr)
    if size <= LARGE:
        return []
    return [
        f"the system is large ({size} numbers outside of registers, {LARGE} are the most): XLA "
        "runs it faster"
    ]


def why_too_large_matrices(closed: ClosedJaxpr) -> list[str]:
    """Whether a program decomposes larger matrices of constraints than kernels are fast with."""
    from .passes.analysis import largest_decomposition

    size = largest_decomposition(closed.jaxpr)
    if size <= LARGEST_DECOMPOSITION:
        return []
    return [
        f"loops that share joints make a large matrix ({size} constraints or rates, "
        f"{LARGEST_DECOMPOSITION} are the most): XLA runs it faster"
    ]


def call_by_kernel(function: Callable[..., PyTree], *args: PyTree) -> PyTree:
    """`function(*args)` of pytrees, as a kernel if it can be one and is not too large.

    For what runs once beside a long run: compilation is fast. The function must not close over
    arrays. What it passes on as it is is left alone.
    """
    from .jaxrules.function import select_outputs
    from .jaxrules.primitive import native_call

    closed, leaves, whole = _traced(function, args)
    inner = closed.jaxpr
    given = dict(zip(inner.invars, leaves, strict=True))
    passed = [given.get(var) if isinstance(var, Var) else None for var in inner.outvars]
    if all(x is not None for x in passed):
        return whole(passed)
    made = [k for k, x in enumerate(passed) if x is None]
    closed = select_outputs(closed, made)
    if choose_backend("auto", closed, why_too_many_elements) == "native":
        results = iter(native_call(closed, leaves, strict=False, once=True))
    else:
        results = iter(jaxpr_as_fun(closed)(*leaves))
    return whole([next(results) if x is None else x for x in passed])


def call_as_single_kernel(
    possible: Callable[..., bool], function: Callable, *args: PyTree
) -> PyTree:
    """`function(*args)` of pytrees, as one kernel if `possible(results)` as they are traced.

    For what stands around a solve, so that XLA has nothing to compile: derivatives and batches are
    those of the solve inside. What closes over traced arrays is no kernel.
    """
    from .jaxrules.primitive import native_call

    closed, leaves, whole = _traced(function, args)
    closes = any(isinstance(const, Tracer) for const in closed.consts)
    if not closes and possible(whole(closed.jaxpr.outvars)):
        return whole(native_call(closed, leaves, strict=False, alone=True))
    return whole(jaxpr_as_fun(closed)(*leaves))


def _traced(function, args):
    """The program of a function, its arguments, and what makes its results of the program's."""
    from .jaxrules.function import trace_flat

    arrays, static = eqx.partition(args, eqx.is_array)
    leaves, structure = jax.tree.flatten(arrays)
    closed, whole = trace_flat(function, leaves, structure, static, eqx.is_array)
    return closed, leaves, whole
