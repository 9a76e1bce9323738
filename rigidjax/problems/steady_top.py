"""A heavy symmetric top that precesses without nutation."""

import math

from ..bodies import AxialGravityPotential, FixedPointBody
from .problem import Problem, spherical_state
from .symmetric_top import top_motion


def steady_top() -> Problem:
    r"""Build a cone on its tip in steady precession: inclination pi/3, rate 10 rad/s; 1 s.

    The cone has height 0.1 m, radius 0.05 m and density 2700 kg/m^3. A symmetric top precesses
    steadily at $\omega_p$ if its spin is
    $\omega_s = M g L/(I_3 \omega_p) + (I_1 - I_3)/I_3\ \omega_p \cos\theta$.

    **Source:** Betsch-Siebert, section 5.2, which measures the error at t = 1.
    """
    height, radius, density, gravity, inclination, rate = 0.1, 0.05, 2700.0, 9.81, math.pi / 3, 10.0
    mass = density * math.pi * radius**2 * height / 3
    distance = 0.75 * height
    across = 3 * mass / 80 * (4 * radius**2 + height**2) + mass * distance**2
    along = 3 * mass / 10 * radius**2
    weight = mass * gravity * distance
    spin = weight / (along * rate) + (across - along) / along * rate * math.cos(inclination)
    return Problem(
        "steady_top",
        "Symmetric top in steady precession",
        FixedPointBody((across, across, along), AxialGravityPotential(weight)),
        spherical_state(
            (math.cos(inclination / 2), math.sin(inclination / 2), 0.0, 0.0),
            (0.0, rate * math.sin(inclination), rate * math.cos(inclination) + spin),
        ),
        1.0,
        "Betsch, Siebert (2009), section 5.2",
        top_motion,
    )
