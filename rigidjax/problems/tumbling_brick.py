"""A brick that tumbles without drag."""

import math

from ..bodies import FixedPointBody
from .free_motion import free_motion
from .problem import Problem, spherical_state

SLUG_FOOT_SQUARED = 4.4482216152605 * 0.3048
"""One slug ft^2 in kg m^2: a slug is lbf s^2/ft."""


def tumbling_brick() -> Problem:
    """Build check case 2 of NASA's six-degree-of-freedom simulations: a tumbling brick; 30 s.

    The brick has the moments 0.0018942, 0.0062110, 0.0071947 slug ft^2, starts with 10, 20, 30
    deg/s, and has no drag. Only its rotation is modelled, which the fall does not affect.

    **Source:** NASA/TM-2015-218675, check case 2.
    """
    inertia = [SLUG_FOOT_SQUARED * j for j in (0.0018942, 0.0062110, 0.0071947)]
    return Problem(
        "tumbling_brick",
        "Tumbling brick without drag",
        FixedPointBody(inertia),
        spherical_state((1.0, 0.0, 0.0, 0.0), [math.radians(rate) for rate in (10.0, 20.0, 30.0)]),
        30.0,
        "NASA/TM-2015-218675, check case 2",
        free_motion,
    )
