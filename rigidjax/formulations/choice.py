"""Formulation of a system that a function is given without one."""

from typing import Any, TypeAlias

from ..bodies import FixedPointBody
from ..mechanics import System
from .base import AbstractFormulation
from .null_space import NullSpace
from .relative import Relative

ModelInput: TypeAlias = AbstractFormulation | System | FixedPointBody


def choose_formulation(model: Any, function: str) -> AbstractFormulation:
    """Return a model, or the formulation that suits a system; `TypeError` for another object."""
    if isinstance(model, AbstractFormulation):
        return model
    if not isinstance(model, System | FixedPointBody):
        raise TypeError(
            f"`{function}(model, ...)` takes a system or a formulation such as "
            f"`rj.NullSpace(system)`; got {type(model).__name__}."
        )
    is_tree = isinstance(model, System) and not model.has_loops
    return Relative(model) if is_tree else NullSpace(model)
