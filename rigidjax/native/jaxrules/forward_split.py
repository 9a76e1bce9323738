"""Calls for values and tangents that are split in two where the tangents are transposed.

A jaxpr for tangents computes the values on its way, so that forward mode needs no second call for
them. Reverse mode evaluates the values first and transposes the part that is linear in the
tangents. JAX separates both by partial evaluation, where values are known and tangents are not.
This module needs no LLVM, so that importing it is cheap.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.core import ShapedArray
from jax.extend.core import Primitive, Var
from jax.interpreters import partial_eval


def register_partial_eval_split(
    primitive: Primitive,
    sizes: Callable[..., tuple[int, int]],
    values: Callable[..., Callable],
    tangents: Callable[..., Callable],
) -> None:
    """Register partial-evaluation rules that split a primitive into values and tangents.

    The first results of the primitive must not depend on its last arguments.

    **Arguments:** functions of the parameters of an equation:

    - `sizes`: the number of the first arguments and the number of the first results.
    - `values`: a function of the first arguments that returns the first results.
    - `tangents`: a function of all arguments that returns the other results.
    """

    def partial_eval_rule(trace, *tracers, **params):
        primals = [t.pval.get_known() for t in tracers[: sizes(**params)[0]]]
        if any(x is None for x in primals) or all(t.is_known() for t in tracers):
            return trace.default_process_primitive(primitive, tracers, params)
        known = values(**params)(*primals)
        linear, linear_params = _as_call(tangents(**params), [t.aval for t in tracers])
        return [*known, *trace.default_process_primitive(linear, tracers, linear_params)]

    def partial_eval_jaxpr_rule(saveable, unknown, instantiated, equation):
        """Make the values known; the unknown equation recomputes them instead of saving them."""
        args, out = equation.invars, equation.outvars
        first, count = sizes(**equation.params)
        known = None
        if not any(unknown[:first]):
            call, params = _as_call(values(**equation.params), [x.aval for x in args[:first]])
            known = equation.replace(
                invars=args[:first], outvars=out[:count], primitive=call, params=params
            )
        marks = [known is None] * count + [True] * (len(out) - count)
        pairs = zip(args, instantiated, strict=True)
        residuals = [x for x, is_available in pairs if isinstance(x, Var) and not is_available]
        return known, equation, marks, [True] * len(out), residuals

    partial_eval.custom_partial_eval_rules[primitive] = partial_eval_rule
    partial_eval.partial_eval_jaxpr_custom_rules[primitive] = partial_eval_jaxpr_rule


def _as_call(
    function: Callable[..., Any], avals: Sequence[ShapedArray]
) -> tuple[Primitive, dict[str, Any]]:
    """Return primitive and parameters of a single equation that evaluates a function."""
    shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in avals]
    for form in function, jax.jit(function):
        jaxpr = jax.make_jaxpr(form)(*shapes).jaxpr
        first, *others = jaxpr.eqns
        if not others and list(first.invars) == list(jaxpr.invars):
            if list(first.outvars) == list(jaxpr.outvars):
                return first.primitive, first.params
    raise AssertionError("a function under `jax.jit` is traced to one equation")
