"""Problems of free rotation: a body without a moment."""

import math

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from ..bodies import FixedPointBody
from ..mechanics import System
from ..rotations import EulerAngles
from ..state import State
from .exact.free_body import free_body as exact_motion
from .problem import Problem, spherical_state, spherical_states


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


def tennis_racket(disturbance: ArrayLike = 0.1) -> Problem:
    r"""Build Lang's Example B: free rotation about the axis of the middle moment; 4 s.

    $I = (41.6, 11.6, 50)$ kg m^2, $\Omega_1 = 50$ rad/s, $\Omega_2 = \Omega_3$ = `disturbance`. The
    initial Euler angles ZXZ are (pi/3, pi/4, pi/2), away from their singularity.

    **Arguments:** `disturbance`, rad/s; the paper uses 0.1 and 1e-5 in its comparison, and 1e-3 in
    Figure 12.
    **Source:** Lang, section 7, Example B and Figures 12, 15.
    """
    d = jnp.asarray(disturbance, float)
    zxz = jnp.array([math.pi / 3, math.pi / 4, math.pi / 2])
    state0 = spherical_state(
        EulerAngles("ZXZ").to_quaternion(zxz), jnp.stack([jnp.full_like(d, 50.0), d, d])
    )
    return Problem(
        "tennis_racket",
        "Tennis racket, spun about its middle axis",
        FixedPointBody((41.6, 11.6, 50.0)),
        state0,
        4.0,
        "Lang (null-space coordinates), section 7, Example B",
        free_motion,
    )


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


def free_motion(system: System | FixedPointBody, state0: State, ts: Float[Array, " T"]) -> State:
    """Compute the free rotation of a `FixedPointBody` in Jacobi elliptic functions.

    **Arguments:** as `Problem.solution`.
    """
    assert isinstance(system, FixedPointBody) and system.is_free
    return spherical_states(
        *exact_motion(system.inertia, state0.orientation[0], state0.angular_velocity[0], ts)
    )
