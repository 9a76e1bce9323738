"""Projections onto the constraints, against drift and for consistent initial values."""

from .projection import (
    AbstractProjection as AbstractProjection,
    Explicit as Explicit,
    MassMetric as MassMetric,
)
