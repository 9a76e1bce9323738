"""The instantaneous screw of a twist, and the rate of its axis."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from rigidjax.rotations import so3


class InstantaneousScrew(eqx.Module):
    r"""The velocity field of a rigid body as a rotation about a line and a sliding along it.

    All vectors are in space components.

    **Arguments:**

    - `axis`: unit vector $f$ of the instantaneous axis, shape (3,);
    - `point`: the point $x_M$ of the axis that is closest to the origin, shape (3,), m;
    - `angular_speed`: $|\omega|$, rad/s;
    - `sliding`: velocity $u = f \cdot v$ along the axis, m/s.

    **Source:** Geradin-Rixen, Section 3.3.
    """

    axis: Float[Array, "3"]
    point: Float[Array, "3"]
    angular_speed: Float[Array, ""]
    sliding: Float[Array, ""]

    @property
    def pitch(self) -> Float[Array, ""]:
        r"""Translation $p = 2\pi u/|\omega|$ per revolution, m: Geradin-Rixen (120)."""
        return 2.0 * jnp.pi * self.sliding / self.angular_speed

    @property
    def angular_velocity(self) -> Float[Array, "3"]:
        r"""Angular velocity $\omega = |\omega|\,f$, shape (3,), rad/s."""
        return self.angular_speed * self.axis

    def velocity(self, x: Float[Array, "3"]) -> Float[Array, "3"]:
        r"""Return the velocity $u f + \omega \times (x - x_M)$ at $x$: Geradin-Rixen (121)."""
        return self.sliding * self.axis + so3.cross(self.angular_velocity, x - self.point)


def instantaneous_screw(
    position: Float[Array, "3"], velocity: Float[Array, "3"], omega: Float[Array, "3"]
) -> InstantaneousScrew:
    r"""Return the screw of a twist, given at any point of the body; undefined without rotation.

    **Source:** Geradin-Rixen (113), (119). In (118) the term with the velocity has the wrong sign.
    """
    angular_speed = jnp.sqrt(so3.dot(omega, omega))
    axis = omega / angular_speed
    offset = so3.cross(axis, velocity) / angular_speed
    point = position - so3.dot(axis, position) * axis + offset
    return InstantaneousScrew(axis, point, angular_speed, so3.dot(axis, velocity))


def axis_rate(omega: Float[Array, "3"], omega_dot: Float[Array, "3"]) -> Float[Array, "3"]:
    r"""Return the rate $\dot f = (1 - f f^T)\,\dot\omega/|\omega|$ of the axis.

    **Source:** Geradin-Rixen (138).
    """
    across = omega_dot - so3.dot(omega, omega_dot) / so3.dot(omega, omega) * omega
    return across / jnp.sqrt(so3.dot(omega, omega))
