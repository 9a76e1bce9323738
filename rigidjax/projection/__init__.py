"""Projections onto the constraints, against drift and for consistent initial values.

Start with `projection.py`.
May import `formulations` and lower layers.
"""

from .projection import (
    AbstractProjection as AbstractProjection,
    Explicit as Explicit,
    MassMetric as MassMetric,
)
