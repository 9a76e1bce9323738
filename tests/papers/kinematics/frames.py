r"""Angular velocities and accelerations in moving frames, and their variations.

The rotation of a body is $R = R_0 R_{rel}$ with the rotation $R_0$ of a reference frame. The
angular velocity $\Omega_0$ of $R_0$ is given in components of the reference frame, those of $R$
and $R_{rel}$, $\Omega$ and $\Omega_{rel}$, in body components.
"""

from jaxtyping import Array, Float

from rigidjax.rotations import so3
from rigidjax.rotations.base import Rates, check_rates


def absolute_angular_velocity(
    R_rel: Float[Array, "3 3"], omega_0: Float[Array, "3"], omega_rel: Float[Array, "3"]
) -> Float[Array, "3"]:
    r"""Return $\Omega = R_{rel}^T \Omega_0 + \Omega_{rel}$, shape (3,), rad/s.

    **Source:** Geradin-Rixen (158).
    """
    return R_rel.T @ omega_0 + omega_rel


def relative_angular_velocity(
    R_rel: Float[Array, "3 3"], omega_0: Float[Array, "3"], omega: Float[Array, "3"]
) -> Float[Array, "3"]:
    r"""Return $\Omega_{rel} = \Omega - R_{rel}^T \Omega_0$, shape (3,), rad/s.

    **Source:** Geradin-Rixen (158).
    """
    return omega - R_rel.T @ omega_0


def absolute_angular_acceleration(
    R_rel: Float[Array, "3 3"],
    omega_0: Float[Array, "3"],
    omega_0_dot: Float[Array, "3"],
    omega_rel: Float[Array, "3"],
    omega_rel_dot: Float[Array, "3"],
) -> Float[Array, "3"]:
    r"""Return the angular acceleration $\dot\Omega$ of a motion relative to a moving frame.

    $\dot\Omega = R_{rel}^T \dot\Omega_0 - \Omega_{rel} \times R_{rel}^T \Omega_0
    + \dot\Omega_{rel}$, shape (3,), rad/s^2.

    **Source:** the time derivative of Geradin-Rixen (158).
    """
    crossed = so3.cross(omega_rel, R_rel.T @ omega_0)
    return R_rel.T @ omega_0_dot - crossed + omega_rel_dot


def relative_angular_acceleration(
    R_rel: Float[Array, "3 3"],
    omega_0: Float[Array, "3"],
    omega_0_dot: Float[Array, "3"],
    omega: Float[Array, "3"],
    omega_dot: Float[Array, "3"],
) -> Float[Array, "3"]:
    r"""Return $\dot\Omega_{rel}$ of the motion relative to the reference, shape (3,), rad/s^2.

    **Source:** the time derivative of Geradin-Rixen (158).
    """
    crossed = so3.cross(relative_angular_velocity(R_rel, omega_0, omega), R_rel.T @ omega_0)
    return omega_dot - R_rel.T @ omega_0_dot + crossed


def angular_velocity_variation(
    omega: Float[Array, "3"],
    theta: Float[Array, "3"],
    theta_dot: Float[Array, "3"],
    rates: Rates = "body",
) -> Float[Array, "3"]:
    r"""Return $\delta\Omega = \delta\dot\Theta + \Omega \times \delta\Theta$, shape (3,), rad/s.

    `rates="space"` returns $\delta\omega = \delta\dot\theta - \omega \times \delta\theta$.

    **Arguments:** `omega`, angular velocity; `theta`, the infinitesimal rotation with
    $\delta\tilde\Theta = R^T \delta R$ (`"space"`: $\delta R\,R^T$), rad; `theta_dot`, its rate.

    **Source:** Geradin-Rixen (142), (150).
    """
    check_rates(rates)
    crossed = so3.cross(omega, theta)
    return theta_dot + crossed if rates == "body" else theta_dot - crossed


def crossed_velocity_variation(
    R: Float[Array, "3 3"], theta_dot: Float[Array, "3"], rates: Rates = "body"
) -> Float[Array, "3"]:
    r"""Return $\delta\Omega = R^T \delta\dot\theta$, the variation by space components, rad/s.

    `rates="space"` returns $\delta\omega = R\,\delta\dot\Theta$. Unlike in
    `angular_velocity_variation` there is no further term.

    **Arguments:** `R`; `theta_dot`, rate of the infinitesimal rotation in the *other* components,
    $\delta R\,R^T$ for `"body"` and $R^T \delta R$ for `"space"`, rad/s.
    **Returns:** shape (3,).
    **Source:** Geradin-Rixen (153).
    """
    check_rates(rates)
    return R.T @ theta_dot if rates == "body" else R @ theta_dot


def angular_acceleration_variation(
    omega: Float[Array, "3"],
    omega_dot: Float[Array, "3"],
    theta: Float[Array, "3"],
    theta_dot: Float[Array, "3"],
    theta_ddot: Float[Array, "3"],
    rates: Rates = "body",
) -> Float[Array, "3"]:
    r"""Return the variation of the angular acceleration, shape (3,), rad/s^2.

    $\delta\dot\Omega = \delta\ddot\Theta + \Omega \times \delta\dot\Theta + \dot\Omega \times
    \delta\Theta$; with `rates="space"` the signs of the products are negative.

    **Arguments:** angular velocity and acceleration; the infinitesimal rotation as in
    `angular_velocity_variation`, and its first and second derivative.
    **Source:** Geradin-Rixen (154).
    """
    crossed = so3.cross(omega_dot, theta)
    return angular_velocity_variation(omega, theta_dot, theta_ddot, rates) + (
        crossed if rates == "body" else -crossed
    )


def absolute_variation(
    R_rel: Float[Array, "3 3"], theta_0: Float[Array, "3"], theta_rel: Float[Array, "3"]
) -> Float[Array, "3"]:
    r"""Return $\delta\Theta = R_{rel}^T \delta\Theta_0 + \delta\Theta_{rel}$, shape (3,), rad.

    As matrices, $\delta\tilde\Theta = R_{rel}^T \delta\tilde\Theta_0 R_{rel} +
    \delta\tilde\Theta_{rel}$.

    **Arguments:** `R_rel`; infinitesimal rotations $R_0^T \delta R_0$ and $R_{rel}^T \delta
    R_{rel}$.
    **Source:** Geradin-Rixen (156), (157).
    """
    return R_rel.T @ theta_0 + theta_rel


def point_velocity(
    velocity: Float[Array, "3"], omega: Float[Array, "3"], arm: Float[Array, "3"]
) -> Float[Array, "3"]:
    r"""Return the velocity $v_0 + \omega \times r$ of the point at `arm`, $r$, shape (3,), m/s.

    All vectors are in the same components.

    **Source:** Geradin-Rixen (109).
    """
    return velocity + so3.cross(omega, arm)
