r"""Angular velocity and acceleration in terms of the axis $n$ and the angle $\phi$."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rigidjax.rotations import so3
from rigidjax.rotations.base import Rates

Scalar = Float[Array, ""]
Vector = Float[Array, "3"]


def angular_velocity(
    n: Vector, phi: Scalar, n_dot: Vector, phi_dot: Scalar, rates: Rates = "body"
) -> Vector:
    r"""Return the angular velocity $\Omega = M\,\dot n + n\,\dot\phi$; $n \cdot \dot n = 0$.

    Here $M = \sin\phi\,1 - (1-\cos\phi)\,\tilde n$. `rates="space"` returns
    $\omega = M^T\,\dot n + n\,\dot\phi$.

    **Source:** Geradin-Rixen (104), (105).
    """
    versine = 1.0 - jnp.cos(phi)
    factor = -versine if rates == "body" else versine
    return jnp.sin(phi) * n_dot + factor * so3.cross(n, n_dot) + phi_dot * n


def angular_acceleration(
    n: Vector,
    phi: Scalar,
    n_dot: Vector,
    phi_dot: Scalar,
    n_ddot: Vector,
    phi_ddot: Scalar,
    rates: Rates = "body",
) -> Vector:
    r"""Return $\dot\Omega$, or $\dot\omega$, from the second derivatives of axis and angle.

    **Source:** Geradin-Rixen (130).
    """
    _, omega_dot = jax.jvp(
        lambda n, phi, n_dot, phi_dot: angular_velocity(n, phi, n_dot, phi_dot, rates),
        (n, phi, n_dot, phi_dot),
        (n_dot, phi_dot, n_ddot, phi_ddot),
    )
    return omega_dot


def axis_angle_rates(
    n: Vector, phi: Scalar, omega: Vector, rates: Rates = "body"
) -> tuple[Vector, Scalar]:
    r"""Return $\dot n = B\,\Omega$ and $\dot\phi = n \cdot \Omega$; undefined at angle zero.

    Here $B = \frac12\tilde n + \frac12\cot\frac\phi2\,(1 - n n^T)$; `rates="space"` takes $B^T$.

    **Source:** Geradin-Rixen (91), (92), (97).
    """
    phi_dot = so3.dot(n, omega)
    half = 0.5 if rates == "body" else -0.5
    n_dot = half * so3.cross(n, omega) + 0.5 * (omega - phi_dot * n) / jnp.tan(0.5 * phi)
    return n_dot, phi_dot
