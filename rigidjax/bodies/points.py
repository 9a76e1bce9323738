"""Velocity and acceleration of a point of a rigid body."""

from jaxtyping import Array, Float

from ..native.ops import cross


def point_velocity(
    velocity: Float[Array, "3"], omega: Float[Array, "3"], arm: Float[Array, "3"]
) -> Float[Array, "3"]:
    r"""Return the velocity $v_0 + \omega \times r$ of the point at `arm`, $r$, shape (3,), m/s.

    All vectors are in the same components.

    **Source:** Geradin-Rixen (109).
    """
    return velocity + cross(omega, arm)


def point_acceleration(
    acceleration: Float[Array, "3"],
    omega: Float[Array, "3"],
    omega_dot: Float[Array, "3"],
    arm: Float[Array, "3"],
) -> Float[Array, "3"]:
    r"""Return $a_0 + \dot\omega \times r + \omega \times (\omega \times r)$, m/s^2, shape (3,).

    That is the acceleration of the point at `arm`, $r$. All vectors are in the same components.

    **Source:** Geradin-Rixen (122), (123).
    """
    centripetal = cross(omega, cross(omega, arm))
    return acceleration + cross(omega_dot, arm) + centripetal
