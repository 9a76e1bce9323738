"""Programs that are called in several places of another one, and are emitted once.

A vector field is called at the start, in each stage, after a step; its code is a function of the
kernel, as a compiler would have it, in the place of as many copies.
"""

import collections
import math

from jax.extend.core import ClosedJaxpr, JaxprEqn, Primitive

from .analysis import cost, emitted_jaxprs

# Equations of a program from which on functions are worth while. Below, LLVM takes longer with them
# (`Dopri8` on a five-bar 0.5 s): it makes better code of such programs, and what is in registers
# has to be saved around each call (gradients of a double pendulum, 17,000 equations, take 2.5 times
# as long to run with them, and 0.85 of the time to compile).
LONG_JAXPR = 40_000
# Numbers that a program computes from which on it is a function, and how many for each number that
# is handed over: the call goes through memory.
_SMALLEST, _FOR_EACH = 500, 4

# A call of a program that is emitted once. Exists in rewritten programs only.
shared_call_p = Primitive("shared_call")
shared_call_p.multiple_results = True


def find_jaxprs_to_outline(closed: ClosedJaxpr) -> frozenset[int]:
    """Identities of the programs that are worth a function, none in a program that is not long."""
    if _count_equations(closed.jaxpr) < LONG_JAXPR:
        return frozenset()
    # Calls inside of what is called again count once.
    calls: dict[int, int] = collections.Counter()
    programs: dict[int, ClosedJaxpr] = {}

    def count(jaxpr):
        for equation in jaxpr.eqns:
            inner = called_jaxpr(equation)
            if inner is not None:
                programs[id(inner)] = inner
                calls[id(inner)] += 1
                if calls[id(inner)] > 1:
                    continue
            for one in emitted_jaxprs(equation):
                count(one)

    count(closed.jaxpr)
    return frozenset(k for k, n in calls.items() if n > 1 and _is_worth_a_call(programs[k].jaxpr))


def _count_equations(jaxpr):
    """Equations of a program and of those inside of it."""
    inside = (one for equation in jaxpr.eqns for one in emitted_jaxprs(equation))
    return len(jaxpr.eqns) + sum(map(_count_equations, inside))


def called_jaxpr(equation: JaxprEqn) -> ClosedJaxpr | None:
    """The program that an equation of `jax.jit` calls."""
    return equation.params["jaxpr"] if equation.primitive.name in ("jit", "pjit") else None


def _is_worth_a_call(jaxpr):
    handed = sum(math.prod(var.aval.shape) for var in (*jaxpr.invars, *jaxpr.outvars))
    return cost(jaxpr) >= max(_SMALLEST, _FOR_EACH * handed)
