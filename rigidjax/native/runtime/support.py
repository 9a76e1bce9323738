"""Reasons why a jaxpr cannot be a kernel."""

from collections.abc import Iterator
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn

from ..lowering import rules  # noqa: F401  (fills the registry)
from ..passes.analysis import (
    ArrayEquation,
    expand,
    is_complex_expansion,
    is_expanded,
    source_location,
    sub_jaxprs,
)
from ..primitives.registry import RULES, NoRule

# Primitives without a rule for complex operands.
REAL_ONLY = frozenset(
    "acos argmax argmin asin atan atan2 bitcast_convert_type clamp cummax cummin eigh exp2 max min "
    "nextafter qr reduce_max reduce_min round scatter-max scatter-min sort svd cholesky".split()
)


def why_not(closed: ClosedJaxpr) -> list[str]:
    """Return the primitives and types that prevent a kernel, with their source locations."""
    arguments = (f"an argument of type {a.dtype}" for a in closed.in_avals if not _is_supported(a))
    return list(dict.fromkeys([*arguments, *_obstacles(closed.jaxpr)]))


def _obstacles(
    jaxpr: Jaxpr, expanding: tuple[tuple[str, bool], ...] = (), callers: tuple[JaxprEqn, ...] = ()
) -> Iterator[str]:
    """Yield obstacles; `expanding` are the primitives whose expansion contains the jaxpr."""
    for equation in jaxpr.eqns:
        name, stack = equation.primitive.name, (equation, *callers)
        dtype = _unsupported_dtype(equation)
        if _is_tangent_of_integers(equation):
            continue
        if dtype is not None:
            yield f"`{name}` of type {dtype} {_locate(stack)}".strip()
        elif name in RULES:
            for inner in sub_jaxprs(equation):
                yield from _obstacles(inner, expanding, stack)
        elif (
            is_expanded(equation.primitive)
            and (name, is_complex_expansion(equation)) not in expanding
        ):
            key = name, is_complex_expansion(equation)
            try:
                inner = expand(equation).jaxpr
            except NoRule as form:
                yield f"{form} {_locate(stack)}".strip()
            else:
                yield from _obstacles(inner, (*expanding, key), stack)
        else:
            yield f"`{name}` {_locate(stack)}".strip()


def _locate(stack: tuple[JaxprEqn, ...]) -> str:
    """Return the source location of an equation, or of its caller for JAX's own functions."""
    return next(filter(None, map(source_location, stack)), "")


def _unsupported_dtype(equation: ArrayEquation) -> Any:
    """Return a dtype without a rule among the operands and results, `None` if there is none."""
    kinds = "fiub" if equation.primitive.name in REAL_ONLY else "fiubc"
    for var in (*equation.invars, *equation.outvars):
        if hasattr(var.aval, "dtype") and not _is_supported(var.aval, kinds):
            return var.aval.dtype
    return None


def _is_tangent_of_integers(equation: JaxprEqn) -> bool:
    """Return whether an equation makes tangents of integers or Booleans, which are never read.

    JAX makes them for integer constants of functions with a custom derivative.
    """
    avals = [var.aval for var in equation.outvars]
    return bool(avals) and all(getattr(a, "dtype", None) == jax.dtypes.float0 for a in avals)


def _is_supported(aval: Any, kinds: str = "fiubc") -> bool:
    """Return whether the elements of an array are of these kinds."""
    # Random keys have no kind. Floating-point numbers of 16 bits are not supported.
    kind = getattr(aval.dtype, "kind", "key")
    return kind in kinds and not (kind == "f" and aval.dtype.itemsize < 4)
