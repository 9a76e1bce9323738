"""Inlining of calls, followed by common-subexpression and dead-code elimination."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from jax.typing import ArrayLike

from ..primitives.registry import RULES
from ..primitives.variants import kernel_branch
from .analysis import (
    ArrayAtom,
    ArrayEquation,
    expand,
    has_batched_condition,
    is_complex_expansion,
    is_expanded,
    scan_counts,
    stays_constant,
    sub_jaxprs,
)
from .cse import Atom, constant_key, eliminate_common_subexpressions
from .outlining import called_jaxpr, shared_call_p

# Primitives that call a jaxpr, with the name of the parameter that holds it.
CALLS = {
    "jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr",
    "eval_jaxpr": "call_jaxpr",  # JAX 0.12
    "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr", "custom_vmap_call": "call",
    "remat": "jaxpr", "remat2": "jaxpr", "checkpoint": "jaxpr",
}  # fmt: skip


class InlinedJaxpr:
    """A jaxpr whose calls are replaced by the equations that they call.

    **Attributes:** `equations`; `constants`, values by variable; `results`; `known`, variables that
    are compile-time constants, such as the indices of a gather.
    """

    def __init__(
        self,
        closed: ClosedJaxpr,
        known: set[Var],
        rewrite: Callable[..., ClosedJaxpr],
        shared: frozenset[int] = frozenset(),
    ):
        """Inline the calls of a jaxpr.

        **Arguments:** `known`, arguments that are compile-time constants; `rewrite(jaxpr, known)`,
        the pass that is applied to sub-jaxprs; `shared`, identities of jaxprs that become functions
        instead of being inlined.
        """
        self.rewrite, self.shared = rewrite, shared
        self.equations: list[JaxprEqn] = []
        self.constants: dict[Var, ArrayLike] = {}
        self.variables: dict[tuple, Var] = {}
        self.known = set(known)
        arguments = closed.jaxpr.invars
        results = self._inline(closed.jaxpr, closed.consts, arguments)
        self.equations, self.results = eliminate_common_subexpressions(self.equations, results)

    def _inline(
        self, jaxpr: Jaxpr, consts: Sequence[ArrayLike], args: Sequence[Atom]
    ) -> list[Atom]:
        env: dict[Var, Atom] = dict(zip(jaxpr.invars, args, strict=True))
        for var, value in zip(jaxpr.constvars, consts, strict=True):
            constant = self._constant_variable(var, value)
            env[var] = constant
            if isinstance(var.aval, ShapedArray) and stays_constant(var.aval):
                self.known.add(constant)

        def read(atom):
            return atom if isinstance(atom, Literal) else env[atom]

        for equation in jaxpr.eqns:
            args = [read(atom) for atom in equation.invars]
            if _is_identity(equation):
                env.update(zip(equation.outvars, args, strict=True))
                continue
            inlined = self._jaxpr_to_inline(equation, args)
            if inlined is not None:
                inner, args = inlined
                consts = inner.consts if isinstance(inner, ClosedJaxpr) else []
                inner = inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner
                out = self._inline(inner, consts, args)
            else:
                out = [Var(var.aval) for var in equation.outvars]
                self.equations.append(self._copy_equation(equation, args, out))
                known = all(isinstance(v.aval, ShapedArray) and stays_constant(v.aval) for v in out)
                if known and all(map(self._is_known, args)):
                    self.known.update(out)
            env.update(zip(equation.outvars, out, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _constant_variable(self, var: Var, value: ArrayLike) -> Var:
        """Return the variable of a constant; equal constants share one."""
        shared = self.variables.setdefault((var.aval, constant_key(value)), Var(var.aval))
        self.constants[shared] = value
        return shared

    def _copy_equation(self, equation: JaxprEqn, args: list[ArrayAtom], out: list[Var]) -> JaxprEqn:
        """Return an equation with these arguments and results, its sub-jaxprs rewritten."""
        equation = equation.replace(invars=args, outvars=out)
        if not sub_jaxprs(equation):
            return equation
        shared = called_jaxpr(equation)
        if shared is None:
            return equation.replace(params=self._rewrite_params(equation, args))
        # Constant floating-point arguments are passed like others, so that all calls share one
        # function.
        known = (self._is_known(x) and x.aval.dtype.kind in "iub" for x in args)
        params = {"jaxpr": _rewrite_param(shared, known, self.rewrite)}
        return equation.replace(primitive=shared_call_p, params=params)

    def _rewrite_params(self, equation: JaxprEqn, args: Sequence[Atom]) -> dict[str, Any]:
        known, p = [self._is_known(x) for x in args], equation.params
        if equation.primitive.name == "while":
            first, last = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
            known_of = {"cond_jaxpr": known[:first], "body_jaxpr": known[first:last]}
        else:
            num_consts = scan_counts(p)[0] if equation.primitive.name == "scan" else None
            known_of = {"jaxpr": known[:num_consts], "branches": known[1:]}
        return {k: _rewrite_param(v, known_of.get(k, ()), self.rewrite) for k, v in p.items()}

    def _is_known(self, atom: Any) -> bool:
        return isinstance(atom, Literal) or atom in self.known

    def _jaxpr_to_inline(
        self, equation: JaxprEqn, args: list[Atom]
    ) -> tuple[Any, list[Atom]] | None:
        """Return the jaxpr that replaces an equation, and its arguments, or `None`."""
        name = equation.primitive.name
        if id(called_jaxpr(equation)) in self.shared and not all(map(self._is_known, args)):
            return None
        if name in CALLS:
            return equation.params[CALLS[name]], args
        branch = kernel_branch(equation.params.get("branches_platforms", ()))
        if branch is not None:
            return equation.params["branches"][branch], args[1:]
        if has_batched_condition(equation):
            return expand(equation), args
        if (
            name not in RULES
            and not is_complex_expansion(equation)
            and is_expanded(equation.primitive)
        ):
            return expand(equation), args
        return None


def _is_identity(equation: ArrayEquation) -> bool:
    """Return whether an equation returns its only argument unchanged."""
    name = equation.primitive.name
    if name == "convert_element_type":
        return equation.invars[0].aval.dtype == equation.outvars[0].aval.dtype
    return name in ("stop_gradient", "copy", "copy_p")


def _rewrite_param(param: Any, known: Iterable[bool], rewrite: Callable[..., ClosedJaxpr]) -> Any:
    """Return a parameter with its sub-jaxprs rewritten; `known` marks their constant arguments."""
    if isinstance(param, ClosedJaxpr):
        indices = (k for k, is_known in enumerate(known) if is_known)
        return rewrite(param, frozenset(indices))
    if type(param) is tuple and any(isinstance(item, ClosedJaxpr) for item in param):
        return tuple(_rewrite_param(item, known, rewrite) for item in param)
    return param
