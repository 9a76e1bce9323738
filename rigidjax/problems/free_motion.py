"""The closed form of free rotation, shared by the problems without a moment."""

from jaxtyping import Array, Float

from ..bodies import FixedPointBody
from ..mechanics import System
from ..state import State
from .exact.free_body import free_body
from .problem import spherical_states


def free_motion(system: System | FixedPointBody, state0: State, ts: Float[Array, " T"]) -> State:
    """Compute the free rotation of a `FixedPointBody` in Jacobi elliptic functions.

    **Arguments:** as `Problem.solution`.
    """
    assert isinstance(system, FixedPointBody) and system.is_free
    return spherical_states(
        *free_body(system.inertia, state0.orientation[0], state0.angular_velocity[0], ts)
    )
