"""The registry of lowering rules; `rules` fills it."""

from collections.abc import Callable
from typing import Any

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}


class NoRule(NotImplementedError):
    """A jaxpr has a primitive, or a form of one, without a lowering rule."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule: `(emitter, equation, *arrays) -> array or list of arrays`."""

    def register(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
        return function

    return register
