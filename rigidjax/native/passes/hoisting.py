"""What a loop computes anew in every turn though no turn changes it.

LLVM moves plain arithmetic out of loops, but no function with branches, and nothing that follows
from one: the misalignment of a gyroscope would be two sines for each of its samples.
"""

import functools

from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var

from .analysis import sub_jaxprs

# Functions that are worth it.
_COSTLY = frozenset(
    "acos acosh asin asinh atan atan2 atanh cbrt cholesky cos cosh digamma erf erf_inv erfc exp "
    "exp2 expm1 householder_product lgamma log log1p logistic lu pow qr sin sinh tan tanh "
    "triangular_solve".split()
)
# Entries of a result up to which it waits in registers for the loop.
_FEW = 16


@functools.lru_cache(maxsize=512)
def find_invariant_equations(jaxpr: Jaxpr, fixed: tuple[bool, ...]) -> tuple[JaxprEqn, ...]:
    """Equations of a loop's body that can be solved before it, costly ones and what they need.

    **Arguments:** `jaxpr` of the body; `fixed`, for each of its arguments whether it is the same in
    all turns.
    """
    same: set[Var] = {var for var, f in zip(jaxpr.invars, fixed, strict=True) if f}
    same.update(jaxpr.constvars)
    makers: dict[Var, JaxprEqn] = {}
    wanted: dict[int, JaxprEqn] = {}
    for equation in jaxpr.eqns:
        read = [atom for atom in equation.invars if not isinstance(atom, Literal)]
        small = all(getattr(var.aval, "size", _FEW + 1) <= _FEW for var in equation.outvars)
        if not small or equation.effects or not same.issuperset(read):
            continue
        same.update(equation.outvars)
        makers.update((var, equation) for var in equation.outvars)
        if _is_costly(equation):
            waiting = [equation]
            while waiting:
                one = waiting.pop()
                if id(one) not in wanted:
                    wanted[id(one)] = one
                    waiting += [makers[a] for a in one.invars if isinstance(a, Var) and a in makers]
    return tuple(equation for equation in jaxpr.eqns if id(equation) in wanted)


def _is_costly(equation) -> bool:
    """Whether an equation is worth it; a loop inside may have no turn, or no end."""
    if equation.primitive.name in ("while", "scan"):
        return False
    inner = sub_jaxprs(equation)
    return equation.primitive.name in _COSTLY or any(
        _is_costly(one) for jaxpr in inner for one in jaxpr.eqns
    )


def extract_jaxpr(body: ClosedJaxpr, equations: tuple[JaxprEqn, ...]) -> ClosedJaxpr:
    """These equations of a body, as a program of the body's arguments with all their results."""
    out = [var for equation in equations for var in equation.outvars]
    info = body.jaxpr.debug_info._replace(result_paths=("",) * len(out))
    return ClosedJaxpr(
        body.jaxpr.replace(eqns=list(equations), outvars=out, debug_info=info), body.consts
    )
