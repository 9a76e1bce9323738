r"""Angular velocities in moving frames, and variations of angular velocities and accelerations.

The rotation of a body is $R = R_0 R_{rel}$ with the rotation $R_0$ of a reference frame. The
angular velocity $\Omega_0$ of $R_0$ is given in components of the reference frame, those of $R$
and $R_{rel}$, $\Omega$ and $\Omega_{rel}$, in body components. The infinitesimal rotation `theta`
is $\delta\tilde\Theta = R^T \delta R$, for space components $\delta\tilde\theta = \delta R\,R^T$.
"""

from jaxtyping import Array, Float

from rigidjax.rotations import so3
from rigidjax.rotations.base import Rates

Vector = Float[Array, "3"]
Matrix = Float[Array, "3 3"]


def absolute_angular_velocity(R_rel: Matrix, omega_0: Vector, omega_rel: Vector) -> Vector:
    r"""Return $\Omega = R_{rel}^T \Omega_0 + \Omega_{rel}$: Geradin-Rixen (158)."""
    return R_rel.T @ omega_0 + omega_rel


def angular_velocity_variation(
    omega: Vector, theta: Vector, theta_dot: Vector, rates: Rates = "body"
) -> Vector:
    r"""Return $\delta\Omega = \delta\dot\Theta + \Omega \times \delta\Theta$.

    `rates="space"` returns $\delta\omega = \delta\dot\theta - \omega \times \delta\theta$.

    **Source:** Geradin-Rixen (142), (150).
    """
    crossed = so3.cross(omega, theta)
    return theta_dot + crossed if rates == "body" else theta_dot - crossed


def crossed_velocity_variation(R: Matrix, theta_dot: Vector, rates: Rates = "body") -> Vector:
    r"""Return $\delta\Omega = R^T \delta\dot\theta$, or $\delta\omega = R\,\delta\dot\Theta$.

    The infinitesimal rotation has the *other* components. **Source:** Geradin-Rixen (153).
    """
    return R.T @ theta_dot if rates == "body" else R @ theta_dot


def angular_acceleration_variation(
    omega: Vector,
    omega_dot: Vector,
    theta: Vector,
    theta_dot: Vector,
    theta_ddot: Vector,
    rates: Rates = "body",
) -> Vector:
    r"""Return the variation of the angular acceleration.

    $\delta\dot\Omega = \delta\ddot\Theta + \Omega \times \delta\dot\Theta + \dot\Omega \times
    \delta\Theta$; with `rates="space"` the signs of the products are negative.

    **Source:** Geradin-Rixen (154).
    """
    crossed = so3.cross(omega_dot, theta)
    return angular_velocity_variation(omega, theta_dot, theta_ddot, rates) + (
        crossed if rates == "body" else -crossed
    )


def absolute_variation(R_rel: Matrix, theta_0: Vector, theta_rel: Vector) -> Vector:
    r"""Return $\delta\Theta = R_{rel}^T \delta\Theta_0 + \delta\Theta_{rel}$.

    **Source:** Geradin-Rixen (156), (157).
    """
    return R_rel.T @ theta_0 + theta_rel


def point_velocity(velocity: Vector, omega: Vector, arm: Vector) -> Vector:
    r"""Return the velocity $v_0 + \omega \times r$ of the point at `arm`: Geradin-Rixen (109)."""
    return velocity + so3.cross(omega, arm)
