"""Heavy tops: unsymmetrical ones, in steady precession, and with nutation."""

import math

from jaxtyping import Array, Float

from ..bodies import AxialGravityPotential, FixedPointBody
from ..mechanics import System
from ..state import State
from .exact.symmetric_top import symmetric_top as exact_motion
from .problem import Problem, spherical_state, spherical_states

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


_PRECESSION = {1: 0.0, 2: -10.0}


def symmetric_top(case: int = 1) -> Problem:
    r"""Build Geradin-Rixen's top: 5 kg, spin 50 rad/s, centre of mass 1.3 m from the tip; 5 s.

    The axis is inclined by pi/9. In case 1 the top is released without precession, in case 2 it
    precesses at -10 rad/s. No body can have the inertia $J = (0.8, 0.8, 1.8)$ kg m^2 about its
    centre of mass. The motion depends only on the inertia about the fixed point,
    $(9.25, 9.25, 1.8)$, which is physical. The end time is not from the paper: 5 s are half a
    precession and several nutations.

    **Arguments:** `case`, 1 or 2.
    **Raises:** `ValueError` for another case.
    **Source:** Geradin-Rixen, section 11.6.
    """
    if case not in _PRECESSION:
        raise ValueError(f"`symmetric_top(case=...)` must be 1 or 2; got {case!r}.")
    mass, distance, gravity, spin, theta = 5.0, 1.3, 9.81, 50.0, math.pi / 9
    across = 0.8 + mass * distance**2
    precession = _PRECESSION[case]
    return Problem(
        "symmetric_top",
        f"Symmetric top with nutation, case {case}",
        FixedPointBody((across, across, 1.8), AxialGravityPotential(mass * gravity * distance)),
        spherical_state(
            (math.cos(theta / 2), math.sin(theta / 2), 0.0, 0.0),
            (0.0, precession * math.sin(theta), spin + precession * math.cos(theta)),
        ),
        5.0,
        f"Géradin, Rixen (1995), section 11.6, case {case}",
        top_motion,
    )


def top_motion(system: System | FixedPointBody, state0: State, ts: Float[Array, " T"]) -> State:
    """Compute the motion of a symmetric top in elliptic functions."""
    assert isinstance(system, FixedPointBody)
    assert isinstance(system.potential, AxialGravityPotential)
    motion = exact_motion(
        system.inertia,
        system.potential.weight_moment,
        state0.orientation[0],
        state0.angular_velocity[0],
        ts,
    )
    return spherical_states(motion.orientation, motion.angular_velocity)
