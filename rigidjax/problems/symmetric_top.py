"""A heavy symmetric top with nutation."""

import math

from jaxtyping import Array, Float

from ..bodies import AxialGravityPotential, FixedPointBody
from ..mechanics import System
from ..state import State
from .exact.symmetric_top import symmetric_top as exact_motion
from .problem import Problem, spherical_state, spherical_states

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
