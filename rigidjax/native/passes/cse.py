"""Common-subexpression elimination (CSE) and dead-code elimination (DCE) of jaxprs.

JAX's derivatives repeat equations and compute results that are not used: a third of the scalar
operations of second derivatives are repeated.
"""

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from jax.core import Tracer
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from jax.typing import ArrayLike

from .analysis import REGISTERS, ArrayEquation, sub_jaxprs

Atom = Var | Literal


def eliminate_common_subexpressions(
    equations: Sequence[JaxprEqn], results: Sequence[Atom]
) -> tuple[list[JaxprEqn], list[Atom]]:
    """Apply CSE and DCE; return the remaining equations and the remapped results."""
    replacement: dict[Var, Var] = {}
    # Large constant arrays of equal value are compared as equal but not merged, because each is
    # later updated in place.
    equal: dict[Var, Var] = {}
    seen: dict[object, list[JaxprEqn]] = {}
    numbers = _JaxprNumbers()
    remaining = []

    def read(atom: Atom) -> Atom:
        return atom if isinstance(atom, Literal) else replacement.get(atom, atom)

    def representative(atom: Atom) -> Atom:
        return atom if isinstance(atom, Literal) else equal.get(atom, atom)

    for equation in equations:
        args = [read(atom) for atom in equation.invars]
        equation = equation.replace(invars=args)
        key = _equation_key(equation, [_atom_key(representative(atom)) for atom in args])
        candidates = seen.setdefault(key, [])
        first = next((e for e in candidates if numbers.have_equal_jaxprs(e, equation)), None)
        if first is None:
            candidates.append(equation)
            remaining.append(equation)
        elif _is_large_constant(equation):
            equal.update(zip(equation.outvars, first.outvars, strict=True))
            remaining.append(equation)
        else:
            replacement.update(zip(equation.outvars, first.outvars, strict=True))
    new_results = [read(atom) for atom in results]
    return _eliminate_dead_code(remaining, new_results), new_results


def _equation_key(equation: JaxprEqn, args: Sequence[Hashable]) -> Hashable:
    """Return a key that is equal for equal equations, regardless of their sub-jaxprs."""
    if equation.effects:
        return id(equation)
    params = () if sub_jaxprs(equation) else tuple(equation.params.items())
    key = equation.primitive, params, tuple(args)
    try:
        hash(key)
    except TypeError:
        return id(equation)
    return key


class _JaxprNumbers:
    """Numbers of sub-jaxprs, equal for jaxprs that compute the same results.

    JAX traces derivatives and branches separately at every use, so that equal sub-jaxprs are
    different objects.
    """

    def __init__(self):
        self.number_of_structure: dict[tuple, int] = {}
        # The jaxprs are kept alive, because their addresses are the keys.
        self.number_of_id: dict[int, tuple[int, object]] = {}

    def have_equal_jaxprs(self, first: JaxprEqn, second: JaxprEqn) -> bool:
        """Return whether two equations with equal keys have equal sub-jaxprs."""
        if not sub_jaxprs(first):
            return True
        functions = self._function_key(first), self._function_key(second)
        try:
            return hash(functions[0]) == hash(functions[1]) and functions[0] == functions[1]
        except TypeError:
            return False

    def _function_key(self, equation: JaxprEqn) -> tuple:
        params = ((k, self._param_key(v)) for k, v in equation.params.items())
        return equation.primitive, tuple(params)

    def _param_key(self, value: Any) -> Any:
        if isinstance(value, ClosedJaxpr | Jaxpr):
            return self._number(value)
        return tuple(map(self._param_key, value)) if type(value) is tuple else value

    def _number(self, jaxpr: ClosedJaxpr | Jaxpr) -> int:
        if id(jaxpr) not in self.number_of_id:
            key = self._structure(jaxpr)
            try:
                number = self.number_of_structure.setdefault(key, len(self.number_of_structure))
            except TypeError:
                number = -id(jaxpr)
            self.number_of_id[id(jaxpr)] = number, jaxpr
        return self.number_of_id[id(jaxpr)][0]

    def _structure(self, closed: ClosedJaxpr | Jaxpr) -> tuple:
        jaxpr = closed.jaxpr if isinstance(closed, ClosedJaxpr) else closed
        consts = closed.consts if isinstance(closed, ClosedJaxpr) else []
        numbers: dict[Var, int] = {}

        def define(variables):
            for var in variables:
                numbers[var] = len(numbers)
            return tuple(var.aval for var in variables)

        def read(atom):
            return _atom_key(atom) if isinstance(atom, Literal) else numbers[atom]

        constants = tuple(map(constant_key, consts))
        lines: list = [constants, define(jaxpr.constvars), define(jaxpr.invars)]
        for equation in jaxpr.eqns:
            args = tuple(map(read, equation.invars))
            effects = id(equation) if equation.effects else None
            lines.append((self._function_key(equation), args, effects, define(equation.outvars)))
        return *lines, tuple(map(read, jaxpr.outvars))


def _is_large_constant(equation: ArrayEquation) -> bool:
    """Return whether an equation fills a large array with one literal."""
    if equation.primitive.name != "broadcast_in_dim":
        return False
    (scalar,), (out,) = equation.invars, equation.outvars
    return isinstance(scalar, Literal) and math.prod(out.aval.shape) > REGISTERS


def _atom_key(atom: Atom) -> Hashable:
    return (atom.aval, constant_key(atom.val)) if isinstance(atom, Literal) else atom


def constant_key(value: ArrayLike) -> tuple | int:
    """Return a key that is equal for equal constants; large ones are compared by identity."""
    if np.size(value) > REGISTERS or isinstance(value, Tracer):
        return id(value)
    return np.shape(value), np.asarray(value).dtype, np.asarray(value).tobytes()


def _eliminate_dead_code(equations: Sequence[JaxprEqn], results: Sequence[Atom]) -> list[JaxprEqn]:
    """Return the equations with effects or with results that are used."""
    used = {atom for atom in results if isinstance(atom, Var)}
    remaining = []
    for equation in reversed(equations):
        if equation.effects or any(var in used for var in equation.outvars):
            remaining.append(equation)
            used.update(atom for atom in equation.invars if isinstance(atom, Var))
    return remaining[::-1]
