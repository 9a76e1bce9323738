"""Arrays that are dynamically indexed: read or written at indices that are known at run time only.

These arrays belong in memory from the start. Registers cannot be indexed, so that each dynamic
access to an array in registers would first copy it to memory.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from jax.extend.core import Jaxpr, JaxprEqn, Literal, Var

from .analysis import emitted_jaxprs, is_unrolled, scan_counts

# Largest number of elements of a dynamically indexed array that is held in registers all the same.
MAX_INDEXED_REGISTERS = 8
# Primitives whose result has the elements of their operand.
_SAME_MEMORY = frozenset("copy reshape squeeze expand_dims stop_gradient".split())
_UPDATES = frozenset(
    "dynamic_update_slice scatter scatter-update scatter-add scatter_add scatter-mul scatter_mul "
    "scatter-max scatter_max scatter-min scatter_min scatter-sub scatter_sub".split()
)


class DynamicIndices(NamedTuple):
    """Result of the analysis of a jaxpr.

    **Attributes:** `arguments`, which arguments are dynamically indexed; `unknown`, which results
    depend on values that are known at run time only; `variables`, all variables that do.
    """

    arguments: tuple[bool, ...]
    unknown: tuple[bool, ...]
    variables: frozenset[Var] = frozenset()


@functools.lru_cache(maxsize=4096)
def find_dynamic_indices(
    jaxpr: Jaxpr, unknown: tuple[bool, ...], dynamic_iterations: bool = True
) -> DynamicIndices:
    """Find the dynamically indexed arrays of a jaxpr.

    **Arguments:** `unknown`, which arguments are known at run time only; `dynamic_iterations`,
    whether the iteration index of a scan is known at run time only.
    """
    unknown_vars = {var for var, u in zip(jaxpr.invars, unknown, strict=True) if u}
    indexed, alias_of = set(), {}

    def is_unknown(atom):
        return not isinstance(atom, Literal) and atom in unknown_vars

    for equation in jaxpr.eqns:
        name, args = equation.primitive.name, equation.invars
        marks, results = (False,) * len(args), None
        if name in ("dynamic_slice", "gather") or name in _UPDATES:
            first = 2 if name == "dynamic_update_slice" else 1
            indices = args[first:] if name.startswith("dynamic") else args[1:2]
            marks = (any(map(is_unknown, indices)), *marks[1:])
        else:
            marks, results = _mark_sub_jaxprs(
                equation, tuple(map(is_unknown, args)), dynamic_iterations
            )
        indexed |= {a for a, m in zip(args, marks, strict=True) if m and not isinstance(a, Literal)}
        if name in _SAME_MEMORY or name in _UPDATES:
            alias_of[equation.outvars[0]] = args[0]
        if results is None:
            results = (any(map(is_unknown, args)),) * len(equation.outvars)
        unknown_vars |= {var for var, u in zip(equation.outvars, results, strict=True) if u}
    for var in list(indexed):
        while var in alias_of and not isinstance(alias_of[var], Literal):
            var = alias_of[var]
            indexed.add(var)
    arguments = tuple(var in indexed for var in jaxpr.invars)
    results = tuple(map(is_unknown, jaxpr.outvars))
    return DynamicIndices(arguments, results, frozenset(unknown_vars))


def loop_fixed_point(
    iterate: Callable[[tuple[bool, ...]], tuple[bool, ...]], carried: tuple[bool, ...]
) -> tuple[bool, ...]:
    """Return the marks of carried variables after any number of iterations of a loop.

    **Arguments:** `iterate(marks)`, the marks after one iteration; `carried`, the initial marks.
    """
    while True:
        following = tuple(a or b for a, b in zip(carried, iterate(carried), strict=True))
        if following == carried:
            return carried
        carried = following


def _mark_sub_jaxprs(
    equation: JaxprEqn, unknown: tuple[bool, ...], dynamic_iterations: bool
) -> tuple[tuple[bool, ...], tuple[bool, ...] | None]:
    """Return which arguments are dynamically indexed in sub-jaxprs, and which results are unknown.

    The second item is `None` for an equation without sub-jaxprs.
    """
    name, p = equation.primitive.name, equation.params
    if name == "while":
        return _mark_while(p, unknown, dynamic_iterations)
    if name == "scan":
        return _mark_scan(p, unknown, dynamic_iterations)
    jaxprs = emitted_jaxprs(equation)
    if name == "cond":
        branches = [find_dynamic_indices(b, unknown[1:], dynamic_iterations) for b in jaxprs]
        marks = (False, *(any(m) for m in zip(*(b.arguments for b in branches), strict=True)))
        results = (any(u) for u in zip(*(b.unknown for b in branches), strict=True))
        return marks, tuple(u or unknown[0] for u in results)
    if len(jaxprs) != 1 or len(jaxprs[0].invars) != len(unknown):
        return (False,) * len(unknown), None
    inner = find_dynamic_indices(jaxprs[0], unknown, dynamic_iterations)
    return inner.arguments, inner.unknown


def _mark_while(
    p: dict[str, Any], unknown: tuple[bool, ...], dynamic_iterations: bool
) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
    num_cond, num_body = p["cond_nconsts"], p["body_nconsts"]
    cond_consts, body_consts = unknown[:num_cond], unknown[num_cond : num_cond + num_body]
    condition, body = p["cond_jaxpr"].jaxpr, p["body_jaxpr"].jaxpr

    def iterate(carried):
        test = find_dynamic_indices(condition, cond_consts + carried, dynamic_iterations)
        new = find_dynamic_indices(body, body_consts + carried, dynamic_iterations)
        # If the condition is unknown, every carried variable that changes is unknown as well.
        pairs = zip(new.unknown, body.invars[num_body:], body.outvars, strict=True)
        return tuple(u or (test.unknown[0] and x is not y) for u, x, y in pairs)

    carried = loop_fixed_point(iterate, unknown[num_cond + num_body :])
    test = find_dynamic_indices(condition, cond_consts + carried, dynamic_iterations)
    new = find_dynamic_indices(body, body_consts + carried, dynamic_iterations)
    carry_marks = zip(test.arguments[num_cond:], new.arguments[num_body:], strict=True)
    marks = (
        *test.arguments[:num_cond],
        *new.arguments[:num_body],
        *(a or b for a, b in carry_marks),
    )
    return marks, carried


def _mark_scan(
    p: dict[str, Any], unknown: tuple[bool, ...], dynamic_iterations: bool
) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
    first, count = scan_counts(p)
    consts, carried, xs = unknown[:first], unknown[first : first + count], unknown[first + count :]
    body, is_loop = p["jaxpr"].jaxpr, dynamic_iterations and not is_unrolled(p)

    def iterate(carried):
        return find_dynamic_indices(body, consts + carried + xs, dynamic_iterations).unknown[:count]

    carried = tuple(u or is_loop for u in carried)
    carried = loop_fixed_point(iterate, carried)
    new = find_dynamic_indices(body, consts + carried + xs, dynamic_iterations)
    marks = (*new.arguments[: first + count], *(False for _ in xs))
    return marks, (*carried, *new.unknown[count:])
