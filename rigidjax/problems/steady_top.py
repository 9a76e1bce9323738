"""A heavy symmetric top that precesses without nutation."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..bodies import AxialGravityPotential, FixedPointBody
from ..mechanics import System
from ..state import State
from .exact.steady_precession import betsch_siebert_top
from .problem import Problem, spherical_state, spherical_states


def steady_top() -> Problem:
    r"""Build a cone on its tip in steady precession: inclination pi/3, rate 10 rad/s; 1 s.

    The cone has height 0.1 m, radius 0.05 m and density 2700 kg/m^3; the spin follows from the
    condition of steady precession.

    **Source:** Betsch-Siebert, section 5.2, which measures the error at t = 1.
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
    """Compute the steady precession of the paper's top, whatever `system` and `state0`."""
    del system, state0
    top = betsch_siebert_top()
    ts = jnp.asarray(ts)
    return spherical_states(top.orientation(ts), top.angular_velocity(ts))
