"""A body in free rotation far from steady rotation."""

from ..bodies import FixedPointBody
from .free_motion import free_motion
from .problem import Problem, spherical_state


def free_body() -> Problem:
    r"""Build a freely rotating body: $J = (6, 8, 3)$ kg m^2, $\Omega = (10, 20, 20)$ rad/s; 1 s.

    **Source:** Betsch-Siebert, section 5.1, which measures the error at t = 1.
    """
    return Problem(
        "free_body",
        "Free rigid body",
        FixedPointBody((6.0, 8.0, 3.0)),
        spherical_state((1.0, 0.0, 0.0, 0.0), (10.0, 20.0, 20.0)),
        1.0,
        "Betsch, Siebert (2009), section 5.1",
        free_motion,
    )
