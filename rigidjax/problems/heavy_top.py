"""A heavy, slightly unsymmetrical top: nutation and precession."""

import math

from ..bodies import AxialGravityPotential, FixedPointBody
from .problem import Problem, spherical_state

# Orientation and body rates at the end, rad/s, from `tools/exact`.
_ENDS = {
    "heavy_top": (
        (0.19824172410790208, -0.274502731340035, -0.525281240956793, 0.780658752086005),
        (-0.47728604748428627, -0.9037988852351023, 19.995931724092856),
    ),
    "heavy_top_fast": (
        (0.21323981326084843, 0.112615077797109, 0.4873019313529215, -0.8392755530771417),
        (-0.020114101991035412, -0.03259907843025784, 499.9999998380388),
    ),
}
_SOURCE = "Lang (null-space coordinates), section 7, Example A"


def heavy_top() -> Problem:
    r"""Build Lang's Example A: $I = (50, 42, 10)$ kg m^2, $mL = 11.09$ kg m, spin 20 rad/s; 10 s.

    The inertia is about the fixed point. The axis starts at pi/3 from the vertical.

    **Source:** Lang, section 7, Example A and Figures 11, 13, 14.
    """
    return _heavy_top("heavy_top", "Heavy unsymmetrical top", 20.0, 10.0, "")


def heavy_top_fast() -> Problem:
    """Build the top of `heavy_top` with a spin of 500 rad/s, Lang's test of energy conservation.

    The paper gives no end time; 1 s is 80 revolutions.

    **Source:** Lang, section 7, Figure 10.
    """
    return _heavy_top("heavy_top_fast", "Heavy unsymmetrical top, fast", 500.0, 1.0, ", Figure 10")


def _heavy_top(name: str, title: str, spin: float, t1: float, where: str) -> Problem:
    body = FixedPointBody((50.0, 42.0, 10.0), AxialGravityPotential(11.09 * 9.81))
    half = math.pi / 6
    state0 = spherical_state((math.cos(half), math.sin(half), 0.0, 0.0), (0.0, 0.0, spin))
    end_state = spherical_state(*_ENDS[name])
    return Problem(name, title, body, state0, t1, _SOURCE + where, end_state=end_state)
