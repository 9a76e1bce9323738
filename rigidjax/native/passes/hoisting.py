"""Loop-invariant code motion for functions that LLVM does not move out of loops.

LLVM hoists plain arithmetic, but no function with branches and nothing that depends on its result.
The rotation matrix of a misaligned gyroscope, for example, would cost two sines for each sample.
"""

import functools

from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var

from .analysis import sub_jaxprs

# Primitives that are expensive enough to be hoisted.
_COSTLY = frozenset(
    "acos acosh asin asinh atan atan2 atanh cbrt cholesky cos cosh digamma erf erf_inv erfc exp "
    "exp2 expm1 householder_product lgamma log log1p logistic lu pow qr sin sinh tan tanh "
    "triangular_solve".split()
)
# Largest number of elements of a result that occupies registers throughout the loop.
_FEW = 16


@functools.lru_cache(maxsize=512)
def find_invariant_equations(jaxpr: Jaxpr, invariant: tuple[bool, ...]) -> tuple[JaxprEqn, ...]:
    """Return the costly loop-invariant equations of a loop body, and those that they depend on.

    **Arguments:** `jaxpr` of the body; `invariant`, which of its arguments are loop-invariant.
    """
    invariant_vars: set[Var] = {v for v, f in zip(jaxpr.invars, invariant, strict=True) if f}
    invariant_vars.update(jaxpr.constvars)
    defining: dict[Var, JaxprEqn] = {}
    hoisted: dict[int, JaxprEqn] = {}
    for equation in jaxpr.eqns:
        operands = [atom for atom in equation.invars if not isinstance(atom, Literal)]
        is_small = all(getattr(var.aval, "size", _FEW + 1) <= _FEW for var in equation.outvars)
        if not is_small or equation.effects or not invariant_vars.issuperset(operands):
            continue
        invariant_vars.update(equation.outvars)
        defining.update((var, equation) for var in equation.outvars)
        if _is_costly(equation):
            waiting = [equation]
            while waiting:
                needed = waiting.pop()
                if id(needed) not in hoisted:
                    hoisted[id(needed)] = needed
                    operands = (a for a in needed.invars if isinstance(a, Var))
                    waiting += [defining[a] for a in operands if a in defining]
    return tuple(equation for equation in jaxpr.eqns if id(equation) in hoisted)


def _is_costly(equation: JaxprEqn) -> bool:
    """Return whether an equation is worth hoisting.

    Loops are not hoisted: an outer loop without iterations would execute them, and they may not
    terminate.
    """
    if equation.primitive.name in ("while", "scan"):
        return False
    inner = sub_jaxprs(equation)
    return equation.primitive.name in _COSTLY or any(
        _is_costly(inner_equation) for jaxpr in inner for inner_equation in jaxpr.eqns
    )


def extract_jaxpr(body: ClosedJaxpr, equations: tuple[JaxprEqn, ...]) -> ClosedJaxpr:
    """Return a jaxpr of these equations of a body, from its arguments to all their results."""
    out = [var for equation in equations for var in equation.outvars]
    info = body.jaxpr.debug_info._replace(result_paths=("",) * len(out))
    return ClosedJaxpr(
        body.jaxpr.replace(eqns=list(equations), outvars=out, debug_info=info), body.consts
    )
