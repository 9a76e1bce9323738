"""Which arrays of a program are read or written at places that are known at run time only.

They belong in memory from the start: registers have no numbers, so that each such access of an
array in registers would put all of it in memory first.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

from jax.extend.core import Jaxpr, Literal, Var

from .analysis import emitted_jaxprs, is_unrolled, scan_counts

# Entries up to which such an array is held in registers all the same.
MAX_INDEXED_REGISTERS = 8
# Primitives that hand an array on, of the same numbers.
_SAME_MEMORY = frozenset("copy reshape squeeze expand_dims stop_gradient".split())
_UPDATES = frozenset(
    "dynamic_update_slice scatter scatter-update scatter-add scatter_add scatter-mul scatter_mul "
    "scatter-max scatter_max scatter-min scatter_min scatter-sub scatter_sub".split()
)


class DynamicIndices(NamedTuple):
    """Marks of a program.

    **Attributes:** `arguments`, which of them are read or written at such places; `unknown`, which
    results depend on what is known at run time only; `variables` of the program that do.
    """

    arguments: tuple[bool, ...]
    unknown: tuple[bool, ...]
    variables: frozenset[Var] = frozenset()


@functools.lru_cache(maxsize=4096)
def find_dynamic_indices(
    jaxpr: Jaxpr, unknown: tuple[bool, ...], turns: bool = True
) -> DynamicIndices:
    """What is indexed, for arguments of which some are known at run time only.

    **Arguments:** `turns`, whether the number of a turn of a scan is known at run time only.
    """
    not_known = {var for var, u in zip(jaxpr.invars, unknown, strict=True) if u}
    marked, before = set(), {}

    def depends(atom):
        return not isinstance(atom, Literal) and atom in not_known

    for equation in jaxpr.eqns:
        name, args = equation.primitive.name, equation.invars
        marks, results = (False,) * len(args), None
        if name in ("dynamic_slice", "gather") or name in _UPDATES:
            first = 2 if name == "dynamic_update_slice" else 1
            places = args[first:] if name.startswith("dynamic") else args[1:2]
            marks = (any(map(depends, places)), *marks[1:])
        else:
            marks, results = _mark_sub_jaxprs(equation, tuple(map(depends, args)), turns)
        marked |= {a for a, m in zip(args, marks, strict=True) if m and not isinstance(a, Literal)}
        if name in _SAME_MEMORY or name in _UPDATES:
            before[equation.outvars[0]] = args[0]
        if results is None:
            results = (any(map(depends, args)),) * len(equation.outvars)
        not_known |= {var for var, u in zip(equation.outvars, results, strict=True) if u}
    for var in list(marked):
        while var in before and not isinstance(before[var], Literal):
            var = before[var]
            marked.add(var)
    arguments = tuple(var in marked for var in jaxpr.invars)
    return DynamicIndices(arguments, tuple(map(depends, jaxpr.outvars)), frozenset(not_known))


def loop_fixed_point(
    after: Callable[[tuple[bool, ...]], tuple[bool, ...]], carried: tuple[bool, ...]
) -> tuple[bool, ...]:
    """Marks of the variables of a loop after all turns; `after(marks)`, those after one more."""
    while True:
        following = tuple(a or b for a, b in zip(carried, after(carried), strict=True))
        if following == carried:
            return carried
        carried = following


def _mark_sub_jaxprs(equation, unknown, turns):
    """Marks of the arguments of an equation with programs in it, and which results are unknown."""
    name, p = equation.primitive.name, equation.params
    if name == "while":
        return _mark_while(p, unknown, turns)
    if name == "scan":
        return _mark_scan(p, unknown, turns)
    programs = emitted_jaxprs(equation)
    if name == "cond":
        found = [find_dynamic_indices(one, unknown[1:], turns) for one in programs]
        marks = (False, *(any(m) for m in zip(*(f.arguments for f in found), strict=True)))
        results = (any(u) for u in zip(*(f.unknown for f in found), strict=True))
        return marks, tuple(u or unknown[0] for u in results)
    if len(programs) != 1 or len(programs[0].invars) != len(unknown):
        return (False,) * len(unknown), None
    found = find_dynamic_indices(programs[0], unknown, turns)
    return found.arguments, found.unknown


def _mark_while(p, unknown, turns):
    first, second = p["cond_nconsts"], p["body_nconsts"]
    of_condition, of_body = unknown[:first], unknown[first : first + second]
    condition, body = p["cond_jaxpr"].jaxpr, p["body_jaxpr"].jaxpr

    def after(carried):
        test = find_dynamic_indices(condition, of_condition + carried, turns)
        turn = find_dynamic_indices(body, of_body + carried, turns)
        # A loop that ends when something known at run time says so has such turns.
        pairs = zip(turn.unknown, body.invars[second:], body.outvars, strict=True)
        return tuple(u or (test.unknown[0] and x is not y) for u, x, y in pairs)

    carried = loop_fixed_point(after, unknown[first + second :])
    test = find_dynamic_indices(condition, of_condition + carried, turns)
    turn = find_dynamic_indices(body, of_body + carried, turns)
    of_carried = zip(test.arguments[first:], turn.arguments[second:], strict=True)
    marks = (*test.arguments[:first], *turn.arguments[:second], *(a or b for a, b in of_carried))
    return marks, carried


def _mark_scan(p, unknown, turns):
    first, count = scan_counts(p)
    consts, carried, xs = unknown[:first], unknown[first : first + count], unknown[first + count :]
    body, is_loop = p["jaxpr"].jaxpr, turns and not is_unrolled(p)
    carried = tuple(u or is_loop for u in carried)
    carried = loop_fixed_point(
        lambda c: find_dynamic_indices(body, consts + c + xs, turns).unknown[:count], carried
    )
    turn = find_dynamic_indices(body, consts + carried + xs, turns)
    marks = (*turn.arguments[: first + count], *(False for _ in xs))
    return marks, (*carried, *turn.unknown[count:])
