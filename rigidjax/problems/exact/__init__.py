"""Solutions in closed form, and reference end states to 25 digits."""

from .free_body import free_body as free_body
from .references import (
    REFERENCES as REFERENCES,
    EndState as EndState,
    SystemEndState as SystemEndState,
    Top as Top,
)
from .steady_precession import (
    SteadyPrecession as SteadyPrecession,
    betsch_siebert_top as betsch_siebert_top,
)
from .symmetric_top import TopMotion as TopMotion, symmetric_top as symmetric_top
