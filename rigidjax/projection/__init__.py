"""Projection onto the constraints: against drift, and for consistent initial values."""

from .base import AbstractProjection as AbstractProjection
from .consistent import consistent_state as consistent_state
from .explicit import Explicit as Explicit
from .jointed_state import jointed_state as jointed_state
from .mass_metric import MassMetric as MassMetric
