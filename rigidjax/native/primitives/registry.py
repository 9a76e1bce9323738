"""Registry of lowering rules by name of the primitive, which the modules in `rules` fill."""

from collections.abc import Callable
from typing import Any, Protocol

from jax.core import ShapedArray
from jax.extend.core import Primitive

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}


class Variable(Protocol):
    """A variable or literal of a jaxpr, with the type of abstract value that kernels support."""

    aval: ShapedArray


class Equation(Protocol):
    """The attributes of a `JaxprEqn` that lowering rules read."""

    primitive: Primitive
    params: dict[str, Any]
    invars: list[Variable]
    outvars: list[Variable]


class NoRule(NotImplementedError):
    """Raised for a jaxpr with a primitive, or a form of one, without a lowering rule."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a lowering rule: `(emitter, equation, *arrays) -> array or list of arrays`."""

    def register(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
        return function

    return register
