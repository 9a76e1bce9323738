"""Outlining: jaxprs that are called several times are emitted once, as an LLVM function.

A vector field, for example, is called at the start, in each stage and after a step. One function
replaces the copies that inlining would make.
"""

import collections
import math

from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Primitive

from .analysis import ArrayAtom, cost, emitted_jaxprs

# Smallest number of equations for which outlining is worthwhile. In shorter jaxprs LLVM optimises
# across the inlined copies, and values in registers need not be saved around calls.
LONG_JAXPR = 10_000
# Smallest cost of a jaxpr that becomes a function, and its smallest ratio to the number of scalars
# that are passed: arguments and results go through memory. The limits were found by compile and run
# times of `Radau5` on a four-bar linkage and of gradients of a double pendulum and a slider-crank:
# smaller functions make these gradients slower, and the compilation no faster.
_SMALLEST_COST, _COST_PER_SCALAR = 2000, 10

# A call of an outlined jaxpr. It exists in rewritten jaxprs only.
shared_call_p = Primitive("shared_call")
shared_call_p.multiple_results = True


def find_jaxprs_to_outline(closed: ClosedJaxpr) -> frozenset[int]:
    """Return identities of the jaxprs that become functions; none if the jaxpr is short."""
    if _count_equations(closed.jaxpr) < LONG_JAXPR:
        return frozenset()
    # Calls inside a jaxpr that is itself called several times count once.
    calls: dict[int, int] = collections.Counter()
    jaxprs: dict[int, ClosedJaxpr] = {}

    def count(jaxpr):
        for equation in jaxpr.eqns:
            inner = called_jaxpr(equation)
            if inner is not None:
                jaxprs[id(inner)] = inner
                calls[id(inner)] += 1
                if calls[id(inner)] > 1:
                    continue
            for emitted in emitted_jaxprs(equation):
                count(emitted)

    count(closed.jaxpr)
    return frozenset(k for k, n in calls.items() if n > 1 and _is_worth_a_call(jaxprs[k].jaxpr))


def _count_equations(jaxpr: Jaxpr) -> int:
    """Count the equations of a jaxpr and of its sub-jaxprs."""
    inner = (emitted for equation in jaxpr.eqns for emitted in emitted_jaxprs(equation))
    return len(jaxpr.eqns) + sum(map(_count_equations, inner))


def called_jaxpr(equation: JaxprEqn) -> ClosedJaxpr | None:
    """Return the jaxpr that an equation of `jax.jit` calls; `None` for another equation."""
    return equation.params["jaxpr"] if equation.primitive.name in ("jit", "pjit") else None


def _is_worth_a_call(jaxpr: Jaxpr) -> bool:
    atoms: list[ArrayAtom] = [*jaxpr.invars, *jaxpr.outvars]
    passed = sum(math.prod(atom.aval.shape) for atom in atoms)
    return cost(jaxpr) >= max(_SMALLEST_COST, _COST_PER_SCALAR * passed)
