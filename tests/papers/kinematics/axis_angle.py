r"""Angular velocity and acceleration in terms of the axis $n$ and the angle $\phi$."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rigidjax.rotations import guarded, so3
from rigidjax.rotations.base import Rates, check_rates


def angular_velocity(
    n: Float[Array, "3"],
    phi: Float[Array, ""],
    n_dot: Float[Array, "3"],
    phi_dot: Float[Array, ""],
    rates: Rates = "body",
) -> Float[Array, "3"]:
    r"""Return the angular velocity $\Omega = M\,\dot n + n\,\dot\phi$, shape (3,), rad/s.

    Here $M = \sin\phi\,1 - (1-\cos\phi)\,\tilde n$.

    `rates="space"` returns $\omega = M^T\,\dot n + n\,\dot\phi$.

    **Arguments:** `n`, unit axis, shape (3,); `phi`, angle, rad; their rates, $n \cdot \dot n = 0$.

    **Source:** Geradin-Rixen (104), (105).
    """
    check_rates(rates)
    versine = 1.0 - jnp.cos(phi)
    factor = -versine if rates == "body" else versine
    return jnp.sin(phi) * n_dot + factor * so3.cross(n, n_dot) + phi_dot * n


def angular_acceleration(
    n: Float[Array, "3"],
    phi: Float[Array, ""],
    n_dot: Float[Array, "3"],
    phi_dot: Float[Array, ""],
    n_ddot: Float[Array, "3"],
    phi_ddot: Float[Array, ""],
    rates: Rates = "body",
) -> Float[Array, "3"]:
    r"""Return $\dot\Omega$ from the second derivatives of axis and angle, shape (3,), rad/s^2.

    `rates="space"` returns $\dot\omega$.

    **Source:** Geradin-Rixen (130).
    """
    _, omega_dot = jax.jvp(
        lambda n, phi, n_dot, phi_dot: angular_velocity(n, phi, n_dot, phi_dot, rates),
        (n, phi, n_dot, phi_dot),
        (n_dot, phi_dot, n_ddot, phi_ddot),
    )
    return omega_dot


def axis_angle_rates(
    n: Float[Array, "3"], phi: Float[Array, ""], omega: Float[Array, "3"], rates: Rates = "body"
) -> tuple[Float[Array, "3"], Float[Array, ""]]:
    r"""Return $\dot n = B\,\Omega$, (3,) 1/s, and $\dot\phi = n \cdot \Omega$, rad/s.

    Here $B = \frac12\tilde n + \frac12\cot\frac\phi2\,(1 - n n^T)$; `rates="space"` takes $B^T$.
    The axis is undefined at angle zero, where the term with the cotangent is omitted by convention.

    **Source:** Geradin-Rixen (91), (92), (97).
    """
    check_rates(rates)
    phi_dot = so3.dot(n, omega)
    cotangent = guarded.safe_divide(jnp.cos(0.5 * phi), jnp.sin(0.5 * phi))
    half = 0.5 if rates == "body" else -0.5
    n_dot = half * so3.cross(n, omega) + 0.5 * cotangent * (omega - phi_dot * n)
    return n_dot, phi_dot
