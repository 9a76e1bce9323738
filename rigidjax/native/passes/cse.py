"""A program without equations that compute what another one does, or what nobody reads.

JAX's derivatives have many of them: derivatives of second order compute a third of their numbers
twice, reductions to what is asked for leave a tenth without a reader.
"""

import math
from collections.abc import Sequence

import numpy as np
from jax.core import Tracer
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from jax.typing import ArrayLike

from .analysis import REGISTERS, sub_jaxprs

Atom = Var | Literal


def eliminate_common_subexpressions(
    equations: Sequence[JaxprEqn], results: Sequence[Atom]
) -> tuple[list[JaxprEqn], list[Atom]]:
    """Equations of which no two are the same and all are needed, and the results by them."""
    same: dict[Var, Var] = {}
    # What starts as the same large array is changed in place, each time on its own.
    equal: dict[Var, Var] = {}
    seen: dict[object, list[JaxprEqn]] = {}
    programs = _JaxprNumbers()
    kept = []

    def read(atom: Atom) -> Atom:
        return atom if isinstance(atom, Literal) else same.get(atom, atom)

    def same_as(atom: Atom) -> Atom:
        return atom if isinstance(atom, Literal) else equal.get(atom, atom)

    for equation in equations:
        args = [read(atom) for atom in equation.invars]
        equation = equation.replace(invars=args)
        alike = seen.setdefault(
            _equation_key(equation, [_atom_key(same_as(atom)) for atom in args]), []
        )
        first = next((one for one in alike if programs.are_same(one, equation)), None)
        if first is None:
            alike.append(equation)
            kept.append(equation)
        elif _is_large_constant(equation):
            equal.update(zip(equation.outvars, first.outvars, strict=True))
            kept.append(equation)
        else:
            same.update(zip(equation.outvars, first.outvars, strict=True))
    ends = [read(atom) for atom in results]
    return _eliminate_dead_code(kept, ends), ends


def _equation_key(equation, args):
    """Equal for equations that compute the same, but for programs inside of them."""
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
    """Programs inside of equations by what they compute: derivatives and branches are traced anew
    each time, so that two of them are the same without being one object."""

    def __init__(self):
        self.numbers: dict[tuple, int] = {}
        # With the programs, so that addresses stay their own.
        self.known: dict[int, tuple[int, object]] = {}

    def are_same(self, one: JaxprEqn, other: JaxprEqn) -> bool:
        """Whether equations of the same key have the same programs inside of them."""
        if not sub_jaxprs(one):
            return True
        functions = self._function(one), self._function(other)
        try:
            return hash(functions[0]) == hash(functions[1]) and functions[0] == functions[1]
        except TypeError:
            return False

    def _function(self, equation):
        params = ((k, self._param(v)) for k, v in equation.params.items())
        return equation.primitive, tuple(params)

    def _param(self, value):
        if isinstance(value, ClosedJaxpr | Jaxpr):
            return self._number(value)
        return tuple(map(self._param, value)) if type(value) is tuple else value

    def _number(self, program):
        """Equal for programs that compute the same."""
        if id(program) not in self.known:
            key = self._structure(program)
            try:
                number = self.numbers.setdefault(key, len(self.numbers))
            except TypeError:
                number = -id(program)
            self.known[id(program)] = number, program
        return self.known[id(program)][0]

    def _structure(self, program):
        jaxpr = program.jaxpr if isinstance(program, ClosedJaxpr) else program
        consts = program.consts if isinstance(program, ClosedJaxpr) else []
        numbers: dict[Var, int] = {}

        def new(variables):
            for var in variables:
                numbers[var] = len(numbers)
            return tuple(var.aval for var in variables)

        def read(atom):
            return _atom_key(atom) if isinstance(atom, Literal) else numbers[atom]

        lines: list = [tuple(map(constant_key, consts)), new(jaxpr.constvars), new(jaxpr.invars)]
        for equation in jaxpr.eqns:
            args = tuple(map(read, equation.invars))
            effects = id(equation) if equation.effects else None
            lines.append((self._function(equation), args, effects, new(equation.outvars)))
        return *lines, tuple(map(read, jaxpr.outvars))


def _is_large_constant(equation):
    """Whether an equation makes a large array of one number."""
    if equation.primitive.name != "broadcast_in_dim":
        return False
    (number,), (out,) = equation.invars, equation.outvars
    return isinstance(number, Literal) and math.prod(out.aval.shape) > REGISTERS


def _atom_key(atom):
    return (atom.aval, constant_key(atom.val)) if isinstance(atom, Literal) else atom


def constant_key(value: ArrayLike) -> tuple | int:
    """Equal for equal constants, large ones if they are the same object."""
    if np.size(value) > REGISTERS or isinstance(value, Tracer):
        return id(value)
    return np.shape(value), np.asarray(value).dtype, np.asarray(value).tobytes()


def _eliminate_dead_code(equations, results):
    """The equations with effects, or with results that somebody reads."""
    read = {atom for atom in results if isinstance(atom, Var)}
    kept = []
    for equation in reversed(equations):
        if equation.effects or any(var in read for var in equation.outvars):
            kept.append(equation)
            read.update(atom for atom in equation.invars if isinstance(atom, Var))
    return kept[::-1]
