"""Programs without calls: what is called stands in the place of the call, and is done once."""

from collections.abc import Callable

from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, JaxprEqn, Literal, Var
from jax.typing import ArrayLike

from ..jaxrules.variants import kernel_branch
from ..lowering.registry import RULES
from .analysis import (
    expand,
    has_batched_condition,
    is_complex_expansion,
    is_expanded,
    scan_counts,
    stays_constant,
    sub_jaxprs,
)
from .cse import constant_key, eliminate_common_subexpressions
from .outlining import called_jaxpr, shared_call_p

# Calls of programs that take the place of the call.
CALLS = {
    "jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr",
    "eval_jaxpr": "call_jaxpr",  # of JAX 0.12
    "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr", "custom_vmap_call": "call",
    "remat": "jaxpr", "remat2": "jaxpr", "checkpoint": "jaxpr",
}  # fmt: skip


class InlinedJaxpr:
    """A program whose calls are replaced by what they call.

    **Attributes:** `equations`; `constants`, values by their variables; `results`; `known`,
    variables whose numbers are known when the kernel is emitted (places of a gather, say).
    """

    def __init__(
        self,
        closed: ClosedJaxpr,
        known: set[Var],
        rewritten: Callable[..., ClosedJaxpr],
        shared: frozenset[int] = frozenset(),
    ):
        self.rewritten, self.shared = rewritten, shared
        self.equations: list[JaxprEqn] = []
        self.constants: dict[Var, ArrayLike] = {}
        self.variables: dict[tuple, Var] = {}
        self.known = set(known)
        arguments = closed.jaxpr.invars
        results = self._run(closed.jaxpr, closed.consts, arguments)
        self.equations, self.results = eliminate_common_subexpressions(self.equations, results)

    def _run(self, jaxpr, consts, args):
        env = dict(zip(jaxpr.invars, args, strict=True))
        for var, value in zip(jaxpr.constvars, consts, strict=True):
            env[var] = self._of_constant(var, value)
            if stays_constant(var.aval):
                self.known.add(env[var])

        def read(atom):
            return atom if isinstance(atom, Literal) else env[atom]

        for equation in jaxpr.eqns:
            args = [read(atom) for atom in equation.invars]
            if _is_identity(equation):
                env.update(zip(equation.outvars, args, strict=True))
                continue
            called_jaxpr = self._called(equation, args)
            if called_jaxpr is not None:
                inner, args = called_jaxpr
                consts = inner.consts if isinstance(inner, ClosedJaxpr) else []
                inner = inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner
                out = self._run(inner, consts, args)
            else:
                out = [Var(var.aval) for var in equation.outvars]
                self.equations.append(self._kept(equation, args, out))
                known = all(isinstance(v.aval, ShapedArray) and stays_constant(v.aval) for v in out)
                if known and all(map(self._is_known, args)):
                    self.known.update(out)
            env.update(zip(equation.outvars, out, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _of_constant(self, var, value):
        """The variable of a constant, one for all equal ones."""
        own = self.variables.setdefault((var.aval, constant_key(value)), Var(var.aval))
        self.constants[own] = value
        return own

    def _kept(self, equation, args, out):
        """An equation that stays one, for these arguments and results."""
        equation = equation.replace(invars=args, outvars=out)
        if not sub_jaxprs(equation):
            return equation
        shared = called_jaxpr(equation)
        if shared is None:
            return equation.replace(params=self._params(equation, args))
        # Known real numbers are handed over as others are, for one function in all places.
        whole = (self._is_known(x) and x.aval.dtype.kind in "iub" for x in args)
        params = {"jaxpr": _rewrite_param(shared, whole, self.rewritten)}
        return equation.replace(primitive=shared_call_p, params=params)

    def _params(self, equation, args):
        """Parameters of an equation, the programs in it rewritten."""
        known, p = [self._is_known(x) for x in args], equation.params
        if equation.primitive.name == "while":
            first, last = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
            of = {"cond_jaxpr": known[:first], "body_jaxpr": known[first:last]}
        else:
            shared = scan_counts(p)[0] if equation.primitive.name == "scan" else None
            of = {"jaxpr": known[:shared], "branches": known[1:]}
        return {k: _rewrite_param(v, of.get(k, ()), self.rewritten) for k, v in p.items()}

    def _is_known(self, atom):
        return isinstance(atom, Literal) or atom in self.known

    def _called(self, equation, args):
        """The program in the place of an equation, and its arguments."""
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


def _is_identity(equation):
    """Whether an equation gives back its only argument."""
    name = equation.primitive.name
    if name == "convert_element_type":
        return equation.invars[0].aval.dtype == equation.outvars[0].aval.dtype
    return name in ("stop_gradient", "copy", "copy_p")


def _rewrite_param(param, known, rewritten):
    """A parameter of an equation, programs in it rewritten; `known`, which arguments are."""
    if isinstance(param, ClosedJaxpr):
        known = (k for k, is_known in enumerate(known) if is_known)
        return rewritten(param, frozenset(known))
    if type(param) is tuple and any(isinstance(one, ClosedJaxpr) for one in param):
        return tuple(_rewrite_param(one, known, rewritten) for one in param)
    return param
