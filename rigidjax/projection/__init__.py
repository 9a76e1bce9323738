"""Projections onto the constraints, against drift and for consistent initial values."""

from .base import AbstractProjection as AbstractProjection
from .explicit import Explicit as Explicit
from .mass_metric import MassMetric as MassMetric
