"""Time integrators for diffrax."""

from .after_step import Projected as Projected, Recharted as Recharted
from .unrolled import Unrolled as Unrolled, unrolled as unrolled
