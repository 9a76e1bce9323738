"""The heavy symmetric top in steady precession, without nutation."""

import math

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from .euler_zxz import quaternion_zxz


class SteadyPrecession(eqx.Module):
    r"""Steady precession, $R(t) = R_z(\omega_p t) R_x(\theta) R_z(\omega_s t)$.

    Any top with $V = M g L\,R_{33}$ precesses steadily at the rate $\omega_p$ if it spins at
    $\omega_s = M g L/(I_3 \omega_p) + (I_1 - I_3)/I_3\ \omega_p \cos\theta$.

    **Arguments:** `inertia` about the fixed point, $(I_1, I_1, I_3)$, kg m^2; `weight_moment`,
    $M g L$, N m; `distance` $L$ of the centre of mass, m; `inclination`, rad; `precession_rate`,
    rad/s.
    **Source:** Betsch-Siebert 5.2.
    """

    inertia: Float[Array, "3"]
    weight_moment: Float[Array, ""]
    distance: Float[Array, ""]
    inclination: Float[Array, ""]
    precession_rate: Float[Array, ""]

    def __init__(
        self,
        inertia: ArrayLike,
        weight_moment: ArrayLike,
        distance: ArrayLike,
        inclination: ArrayLike,
        precession_rate: ArrayLike,
    ):
        self.inertia = jnp.asarray(inertia, float)
        self.weight_moment = jnp.asarray(weight_moment, float)
        self.distance = jnp.asarray(distance, float)
        self.inclination = jnp.asarray(inclination, float)
        self.precession_rate = jnp.asarray(precession_rate, float)

    @property
    def spin_rate(self) -> Float[Array, ""]:
        r"""Spin $\omega_s$ about the top's own axis, rad/s, seen from the precessing frame."""
        i1, i3 = self.inertia[0], self.inertia[2]
        rate = self.precession_rate
        return self.weight_moment / (i3 * rate) + (i1 - i3) / i3 * rate * jnp.cos(self.inclination)

    def orientation(self, t: ArrayLike) -> Float[Array, "*T 4"]:
        """Quaternion (..., 4), scalar first, body to space; `t`, s, of any shape."""
        t = jnp.asarray(t, float)
        theta = jnp.broadcast_to(self.inclination, t.shape)
        return quaternion_zxz(self.precession_rate * t, theta, self.spin_rate * t)

    def angular_velocity(self, t: ArrayLike) -> Float[Array, "*T 3"]:
        """Angular velocity (..., 3), body components, rad/s; `t`, s, of any shape."""
        t = jnp.asarray(t, float)
        across = self.precession_rate * jnp.sin(self.inclination)
        along = self.precession_rate * jnp.cos(self.inclination) + self.spin_rate
        angle = self.spin_rate * t
        return jnp.stack(
            [across * jnp.sin(angle), across * jnp.cos(angle), jnp.broadcast_to(along, t.shape)],
            axis=-1,
        )

    def center_of_mass(self, t: ArrayLike) -> Float[Array, "*T 3"]:
        """Position (..., 3) of the centre of mass, m, space components; `t`, s, of any shape."""
        t = jnp.asarray(t, float)
        angle = self.precession_rate * t
        radius = self.distance * jnp.sin(self.inclination)
        height = jnp.broadcast_to(self.distance * jnp.cos(self.inclination), t.shape)
        return jnp.stack([radius * jnp.sin(angle), -radius * jnp.cos(angle), height], axis=-1)


def betsch_siebert_top() -> SteadyPrecession:
    """The top of Betsch-Siebert 5.2: a cone of height 0.1 m and radius 0.05 m, 2700 kg/m^3.

    Inclination pi/3, precession 10 rad/s, g = 9.81 m/s^2.
    """
    height, radius, density, gravity = 0.1, 0.05, 2700.0, 9.81
    mass = density * math.pi * radius**2 * height / 3
    distance = 0.75 * height
    across = 3 * mass / 80 * (4 * radius**2 + height**2) + mass * distance**2
    along = 3 * mass / 10 * radius**2
    return SteadyPrecession(
        (across, across, along), mass * gravity * distance, distance, math.pi / 3, 10.0
    )
