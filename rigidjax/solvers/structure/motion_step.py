"""The equations of one step from a motion to a motion."""

import abc
from typing import Any

from ..implicit import AbstractImplicitStep
from .motion import Motion


class AbstractMotionStep(AbstractImplicitStep):
    """Equations whose solution `Z` leads from the motion at the start of a step to that at its end.

    Everything that the solution depends on is a leaf.
    """

    @abc.abstractmethod
    def guess(self) -> Any:
        """Where Newton's method starts."""

    @abc.abstractmethod
    def sizes(self) -> Any:
        """What the unknowns are measured by, of their shape (or flattened).

        An unknown of this size moves a body through a radian or through the size of the system, so
        that the round-off of the pose is about `eps` of it.
        """

    @abc.abstractmethod
    def end(self, Z: Any) -> Motion:
        """The motion at the end."""
