"""Which backend a run takes, and why."""

from collections.abc import Callable

import equinox as eqx
import jax
from jax.core import Tracer
from jax.extend.core import ClosedJaxpr, Var, jaxpr_as_fun
from jaxtyping import PyTree

NAMES = ("auto", "native", "xla")
# Numbers outside of registers and of loops over stacks up to which kernels are faster. With
# explicit steps that of a chain of 100 bodies is (5,900; 3.3 times alone, 6 times in a batch of
# 32), that of four four-bars in a row (2,400; 0.9 and 1.6 times), that of six in a batch alone
# (8,700; 0.5 and 1.2 times). Implicit steps, with their matrices of all unknowns: `Radau5` on a
# chain of 8 (128,000; 3.6 and 8 times), on Andrews' mechanism (68,000; 0.6 and 2.3 times).
LARGE, LARGE_IMPLICIT = 6_000, 150_000


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


def checked_name(backend: str) -> str:
    """The backend that was asked for.

    **Raises:** `ValueError` for a name that is none.
    """
    if backend not in NAMES:
        raise ValueError(f'`backend` must be "auto", "native" or "xla"; got {backend!r}.')
    return backend


def chosen(asked: str, program: ClosedJaxpr, most: int = LARGE) -> Backend:
    """The backend for a program; `most`, how large a kernel may be that is not asked for.

    **Raises:** `ValueError` if `"native"` was asked for and cannot be.
    """
    if asked == "xla":
        return Backend("xla", ('`backend="xla"` was asked for',))
    from .analysis import outside_registers, why_not
    from .launch import why_not_here
    from .stacks import with_loops

    reasons = why_not_here(program) or why_not(program)
    if not reasons and asked == "auto":
        size = outside_registers(with_loops(program).jaxpr)
        if size > most:
            reasons = [
                f"the system is large ({size} numbers outside of registers, {most} are the "
                "most): XLA runs it faster"
            ]
    if not reasons:
        return Backend("native")
    if asked == "native":
        raise ValueError(
            '`backend="native"` cannot run this as a kernel: ' + "; ".join(reasons) + ". "
            'Use `backend="auto"`, which leaves such runs to XLA.'
        )
    return Backend("xla", tuple(reasons))


def by_kernel(function: Callable[..., PyTree], *args: PyTree) -> PyTree:
    """`function(*args)` of pytrees, as a kernel if it can be one and is not too large.

    For what runs once beside a long run: compilation is fast. The function must not close over
    arrays. What it passes on as it is is left alone.
    """
    from .function import pruned
    from .primitive import native_call

    closed, leaves, whole = _traced(function, args)
    inner = closed.jaxpr
    given = dict(zip(inner.invars, leaves, strict=True))
    passed = [given.get(var) if isinstance(var, Var) else None for var in inner.outvars]
    if all(x is not None for x in passed):
        return whole(passed)
    made = [k for k, x in enumerate(passed) if x is None]
    closed = pruned(closed, made)
    if chosen("auto", closed, LARGE_IMPLICIT) == "native":
        results = iter(native_call(closed, leaves, strict=False, once=True))
    else:
        results = iter(jaxpr_as_fun(closed)(*leaves))
    return whole([next(results) if x is None else x for x in passed])


def as_kernel(possible: Callable[..., bool], function: Callable, *args: PyTree) -> PyTree:
    """`function(*args)` of pytrees, as one kernel if `possible(results)` as they are traced.

    For what stands around a solve, so that XLA has nothing to compile: derivatives and batches are
    those of the solve inside. What closes over traced arrays is no kernel.
    """
    from .primitive import native_call

    closed, leaves, whole = _traced(function, args)
    closes = any(isinstance(const, Tracer) for const in closed.consts)
    if not closes and possible(whole(closed.jaxpr.outvars)):
        return whole(native_call(closed, leaves, strict=False, alone=True))
    return whole(jaxpr_as_fun(closed)(*leaves))


def _traced(function, args):
    """The program of a function, its arguments, and what makes its results of the program's."""
    from .function import program

    arrays, static = eqx.partition(args, eqx.is_array)
    leaves, structure = jax.tree.flatten(arrays)
    closed, whole = program(function, leaves, structure, static, eqx.is_array)
    return closed, leaves, whole
