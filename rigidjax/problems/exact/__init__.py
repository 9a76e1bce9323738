"""Solutions in closed form."""

from .free_body import free_body as free_body
from .steady_precession import (
    SteadyPrecession as SteadyPrecession,
    betsch_siebert_top as betsch_siebert_top,
)
from .symmetric_top import TopMotion as TopMotion, symmetric_top as symmetric_top
