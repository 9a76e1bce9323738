"""The instantaneous screw of a twist, and its rate."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rigidjax.rotations import guarded, so3


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
        r"""Translation $p = 2\pi u/|\omega|$ per revolution, m; infinite without rotation.

        **Source:** Geradin-Rixen (120).
        """
        turning = self.angular_speed > 0
        pitch = 2.0 * jnp.pi * self.sliding / jnp.where(turning, self.angular_speed, 1.0)
        return jnp.where(turning, pitch, jnp.copysign(jnp.inf, self.sliding))

    @property
    def moment(self) -> Float[Array, "3"]:
        r"""$x_M \times f$, m: with `axis` the Plücker coordinates of the line, shape (3,)."""
        return so3.cross(self.point, self.axis)

    @property
    def angular_velocity(self) -> Float[Array, "3"]:
        r"""Angular velocity $\omega = |\omega|\,f$, shape (3,), rad/s."""
        return self.angular_speed * self.axis

    def velocity(self, x: Float[Array, "3"]) -> Float[Array, "3"]:
        r"""Return the velocity $u f + \omega \times (x - x_M)$ of the point at $x$, (3,) m/s.

        **Source:** Geradin-Rixen (121).
        """
        return self.sliding * self.axis + so3.cross(self.angular_velocity, x - self.point)


def instantaneous_screw(
    position: Float[Array, "3"], velocity: Float[Array, "3"], omega: Float[Array, "3"]
) -> InstantaneousScrew:
    r"""Return the instantaneous screw of a body, space components.

    In pure translation the axis is the line through `position` along the velocity, and the sliding
    is the speed. At rest the axis is zero and the point is `position`. Derivatives are finite in
    these cases; derivatives of quantities that are discontinuous there are set to zero.

    **Arguments:** `position` of any point of the body, shape (3,), m; its `velocity`, shape (3,),
    m/s; `omega`, angular velocity, shape (3,), rad/s.

    **Source:** Geradin-Rixen (113), (119). In (118) the term with the velocity has the wrong sign.
    """
    square = so3.dot(omega, omega)
    turning = square > 0
    speed = guarded.safe_sqrt(so3.dot(velocity, velocity))
    angular_speed = guarded.safe_sqrt(square)
    axis = jnp.where(
        turning, guarded.safe_divide(omega, angular_speed), guarded.safe_divide(velocity, speed)
    )
    sliding = jnp.where(turning, so3.dot(axis, velocity), speed)
    offset = guarded.safe_divide(so3.cross(omega, velocity), square)
    point = position - so3.dot(axis, position) * axis + offset
    return InstantaneousScrew(axis, point, angular_speed, sliding)


def instantaneous_screw_rate(
    position: Float[Array, "3"],
    velocity: Float[Array, "3"],
    omega: Float[Array, "3"],
    acceleration: Float[Array, "3"],
    omega_dot: Float[Array, "3"],
) -> InstantaneousScrew:
    r"""Return the time derivatives of all parts of the instantaneous screw.

    The derivative of the axis agrees with `axis_rate`.

    **Arguments:** those of `instantaneous_screw`; `acceleration` of the point at `position`,
    shape (3,), m/s^2; `omega_dot`, shape (3,), rad/s^2.

    **Source:** Geradin-Rixen, Section 4.3, extended to general motion by differentiation.
    """
    _, rate = jax.jvp(
        instantaneous_screw, (position, velocity, omega), (velocity, acceleration, omega_dot)
    )
    return rate


def axis_rate(omega: Float[Array, "3"], omega_dot: Float[Array, "3"]) -> Float[Array, "3"]:
    r"""Return the rate $\dot f = (1 - f f^T)\,\dot\omega/|\omega|$ of the axis, shape (3,), 1/s.

    It is orthogonal to $f$, and zero by convention without rotation.

    **Arguments:** `omega`, rad/s, and `omega_dot`, rad/s^2, both in space components, shape (3,).

    **Source:** Geradin-Rixen (138).
    """
    square = so3.dot(omega, omega)
    across = omega_dot - guarded.safe_divide(so3.dot(omega, omega_dot), square) * omega
    return guarded.safe_divide(across, guarded.safe_sqrt(square))
