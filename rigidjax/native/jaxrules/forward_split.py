"""Values and tangents by one call, which falls apart into two where tangents are transposed.

A program of tangents computes the values on its way, so that forward mode needs no second call for
them. Reverse mode does: it evaluates the values, and transposes what is linear in the tangents.
JAX tells the two apart when it evaluates a program partially, values known and tangents not.
Needs no LLVM, so that other parts of the package can use it.
"""

from collections.abc import Callable
from typing import Any

import jax
from jax.extend.core import Primitive, Var
from jax.interpreters import partial_eval


def register_partial_eval_split(
    primitive: Primitive,
    sizes: Callable[..., tuple[int, int]],
    values: Callable[..., Callable],
    tangents: Callable[..., Callable],
) -> None:
    """Let calls of a primitive fall apart whose first results do not depend on its last arguments.

    **Arguments:** functions of the parameters of the call: `sizes`, the numbers of the first
    arguments and of the first results; `values`, a function of the first arguments that gives the
    first results; `tangents`, a function of all arguments that gives the others.
    """

    def partly_known(trace, *tracers, **params):
        primals = [t.pval.get_known() for t in tracers[: sizes(**params)[0]]]
        if any(x is None for x in primals) or all(t.is_known() for t in tracers):
            return trace.default_process_primitive(primitive, tracers, params)
        known = values(**params)(*primals)
        linear, own = _as_call(tangents(**params), [t.aval for t in tracers])
        return [*known, *trace.default_process_primitive(linear, tracers, own)]

    def kept(saveable, unknown, instantiated, equation):
        """Values are known and, as they are not kept, computed once more for the tangents."""
        args, out = equation.invars, equation.outvars
        first, count = sizes(**equation.params)
        known = None
        if not any(unknown[:first]):
            own, params = _as_call(values(**equation.params), [x.aval for x in args[:first]])
            known = equation.replace(
                invars=args[:first], outvars=out[:count], primitive=own, params=params
            )
        marks = [known is None] * count + [True] * (len(out) - count)
        pairs = zip(args, instantiated, strict=True)
        needed = [x for x, is_there in pairs if isinstance(x, Var) and not is_there]
        return known, equation, marks, [True] * len(out), needed

    partial_eval.custom_partial_eval_rules[primitive] = partly_known
    partial_eval.partial_eval_jaxpr_custom_rules[primitive] = kept


def _as_call(function, avals) -> tuple[Primitive, dict[str, Any]]:
    """Primitive and parameters of one equation that does what a function does."""
    shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in avals]
    for form in function, jax.jit(function):
        jaxpr = jax.make_jaxpr(form)(*shapes).jaxpr
        first, *others = jaxpr.eqns
        if not others and list(first.invars) == list(jaxpr.invars):
            if list(first.outvars) == list(jaxpr.outvars):
                return first.primitive, first.params
    raise AssertionError("a function under `jax.jit` is one equation")
