"""The tennis racket, spun about its middle axis."""

import math

import jax.numpy as jnp
from jaxtyping import ArrayLike

from ..bodies import FixedPointBody
from ..rotations import EulerAngles
from .free_motion import free_motion
from .problem import Problem, spherical_state


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
