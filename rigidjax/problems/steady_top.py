"""A heavy symmetric top that precesses without nutation."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..bodies import AxialGravityPotential, FixedPointBody
from ..mechanics import System
from ..state import State
from .exact.steady_precession import betsch_siebert_top
from .problem import Problem, spherical_state, spherical_states


def steady_top() -> Problem:
    r"""Steady precession of a cone on its tip: inclination pi/3, precession 10 rad/s, 1 s.

    Height 0.1 m, radius 0.05 m, density 2700 kg/m^3; the spin follows from the condition of steady
    precession.

    **Source:** Betsch-Siebert, section 5.2 (the error is measured there at t = 1).
    """
    top = betsch_siebert_top()
    return Problem(
        "steady_top",
        "Symmetric top in steady precession",
        FixedPointBody(top.inertia, AxialGravityPotential(top.weight_moment)),
        spherical_state(top.orientation(0.0), top.angular_velocity(0.0)),
        1.0,
        "Betsch, Siebert (2009), section 5.2",
        _solution,
    )


def _solution(system: System | FixedPointBody, state0: State, ts: Float[Array, " T"]) -> State:
    """The steady precession itself: it belongs to the data of the paper."""
    del system, state0
    top = betsch_siebert_top()
    ts = jnp.asarray(ts)
    return spherical_states(top.orientation(ts), top.angular_velocity(ts))
