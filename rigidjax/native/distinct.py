"""A program without equations that compute what another one does, or what nobody reads.

JAX's derivatives have many of them: derivatives of second order compute a third of their numbers
twice, reductions to what is asked for leave a tenth without a reader.
"""

import math
from collections.abc import Sequence

import numpy as np
from jax.extend.core import JaxprEqn, Literal, Var

from .analysis import REGISTERS

Atom = Var | Literal


def distinct(
    equations: Sequence[JaxprEqn], results: Sequence[Atom]
) -> tuple[list[JaxprEqn], list[Atom]]:
    """Equations of which no two are the same and all are needed, and the results by them."""
    same: dict[Var, Var] = {}
    seen: dict[tuple, list[Var]] = {}
    kept = []

    def read(atom: Atom) -> Atom:
        return atom if isinstance(atom, Literal) else same.get(atom, atom)

    for equation in equations:
        equation = equation.replace(invars=[read(atom) for atom in equation.invars])
        key = _key(equation)
        if key is None:
            kept.append(equation)
        elif key in seen:
            same.update(zip(equation.outvars, seen[key], strict=True))
        else:
            seen[key] = equation.outvars
            kept.append(equation)
    ends = [read(atom) for atom in results]
    return _needed(kept, ends), ends


def _key(equation):
    """Equal for equations that compute the same; `None` for one that stays what it is."""
    if equation.effects:
        return None
    if all(isinstance(atom, Literal) for atom in equation.invars):
        # What starts as the same large array is changed in place, each time on its own.
        if any(math.prod(var.aval.shape) > REGISTERS for var in equation.outvars):
            return None
    atoms = tuple(
        (atom.aval, np.asarray(atom.val).tobytes()) if isinstance(atom, Literal) else atom
        for atom in equation.invars
    )
    key = equation.primitive, tuple(equation.params.items()), atoms
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _needed(equations, results):
    """The equations with effects, or with results that somebody reads."""
    read = {atom for atom in results if isinstance(atom, Var)}
    kept = []
    for equation in reversed(equations):
        if equation.effects or any(var in read for var in equation.outvars):
            kept.append(equation)
            read.update(atom for atom in equation.invars if isinstance(atom, Var))
    return kept[::-1]
