"""Velocity and acceleration of a point of a rigid body."""

from ..annotations import Vector3
from ..native.ops import cross


def point_velocity(velocity: Vector3, omega: Vector3, arm: Vector3) -> Vector3:
    r"""Return the velocity $v_0 + \omega \times r$ of the point at `arm`, $r$, shape (3,), m/s.

    All vectors are in the same components.

    **Source:** Geradin-Rixen (109).
    """
    return velocity + cross(omega, arm)


def point_acceleration(
    acceleration: Vector3, omega: Vector3, omega_dot: Vector3, arm: Vector3
) -> Vector3:
    r"""Return $a_0 + \dot\omega \times r + \omega \times (\omega \times r)$, m/s^2, shape (3,).

    That is the acceleration of the point at `arm`, $r$. All vectors are in the same components.

    **Source:** Geradin-Rixen (122), (123).
    """
    centripetal = cross(omega, cross(omega, arm))
    return acceleration + cross(omega_dot, arm) + centripetal
