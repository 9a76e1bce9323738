"""Reasons why a jaxpr cannot be a kernel."""

from collections.abc import Iterator

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn

from ..lowering import rules  # noqa: F401  (fills the registry)
from ..lowering.registry import RULES, NoRule
from .analysis import expanded, inner_jaxprs, is_expanded, of_complex, place_of

# What complex numbers have no rule for.
REAL_ONLY = frozenset(
    "acos acosh argmax argmin asin asinh atan atan2 atanh bitcast_convert_type cbrt clamp cummax "
    "cummin eigh erf_inv exp2 max min nextafter qr reduce_max reduce_min round scatter-max "
    "scatter-min sort svd cholesky".split()
)


def why_not(closed: ClosedJaxpr) -> list[str]:
    """What keeps a program from being a kernel: primitives, types, and where they come from."""
    arguments = (f"an argument of type {a.dtype}" for a in closed.in_avals if not _is_number(a))
    return list(dict.fromkeys([*arguments, *_obstacles(closed.jaxpr)]))


def _obstacles(jaxpr: Jaxpr, within: tuple = (), callers: tuple = ()) -> Iterator[str]:
    for equation in jaxpr.eqns:
        name, called = equation.primitive.name, (equation, *callers)
        other = _other_type(equation)
        if _is_tangent_of_integers(equation):
            continue
        if other is not None:
            yield f"`{name}` of type {other} {_place(called)}".strip()
        elif name in RULES:
            for inner in inner_jaxprs(equation):
                yield from _obstacles(inner, within, called)
        elif is_expanded(equation.primitive) and (name, of_complex(equation)) not in within:
            try:
                inner = expanded(equation).jaxpr
            except NoRule as form:
                yield f"{form} {_place(called)}".strip()
            else:
                yield from _obstacles(inner, (*within, (name, of_complex(equation))), called)
        else:
            yield f"`{name}` {_place(called)}".strip()


def _place(called):
    """Where an equation comes from, or who called it: JAX's own functions do not know."""
    return next(filter(None, map(place_of, called)), "")


def _other_type(equation):
    """A type of numbers that there is no rule for, if the equation has one."""
    kinds = "fiub" if equation.primitive.name in REAL_ONLY else "fiubc"
    for var in (*equation.invars, *equation.outvars):
        if hasattr(var.aval, "dtype") and not _is_number(var.aval, kinds):
            return var.aval.dtype
    return None


def _is_tangent_of_integers(equation: JaxprEqn) -> bool:
    """Whether an equation makes the tangents of integers or Booleans, which nothing reads.

    JAX makes them for the integer constants of functions with a derivative of their own.
    """
    avals = [var.aval for var in equation.outvars]
    return bool(avals) and all(getattr(a, "dtype", None) == jax.dtypes.float0 for a in avals)


def _is_number(aval, kinds="fiubc"):
    """Whether an array has numbers of these kinds."""
    # Keys of random numbers have no kind; numbers of 16 bits are floating too.
    kind = getattr(aval.dtype, "kind", "key")
    return kind in kinds and not (kind == "f" and aval.dtype.itemsize < 4)
