"""Steady precession of a heavy symmetric top, without nutation."""

import math

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...checks import ArrayInput, as_leaf, check_all, finite_rule, float_array, scalar_leaf
from .euler_zxz import quaternion_zxz


class SteadyPrecession(eqx.Module):
    r"""Steady precession, $R(t) = R_z(\omega_p t) R_x(\theta) R_z(\omega_s t)$.

    A symmetric top with $V = M g L\,R_{33}$ precesses steadily at $\omega_p$ if its spin is
    $\omega_s = M g L/(I_3 \omega_p) + (I_1 - I_3)/I_3\ \omega_p \cos\theta$.

    **Arguments:** `inertia` about the fixed point, $(I_1, I_1, I_3)$, kg m^2; `weight_moment`,
    $M g L$, N m; `distance` $L$ of the centre of mass, m; `inclination`, rad; `precession_rate`,
    rad/s.
    **Errors:** `ValueError` for wrong shapes, unequal $I_1$ and $I_2$, or no precession.
    **Source:** Betsch-Siebert 5.2.
    """

    inertia: Float[Array, "3"]
    weight_moment: Float[Array, ""]
    distance: Float[Array, ""]
    inclination: Float[Array, ""]
    precession_rate: Float[Array, ""]

    def __init__(
        self,
        inertia: ArrayInput,
        weight_moment: ArrayInput,
        distance: ArrayInput,
        inclination: ArrayInput,
        precession_rate: ArrayInput,
    ):
        name = "SteadyPrecession(inertia=...)"
        rules = [
            finite_rule(name),
            (lambda i: i > 0, f"`{name}` must be positive."),
            (
                lambda i: abs(i[0] - i[1]) <= 1e-12 * i[0],
                f"`{name}` must have equal first and second moments.",
            ),
        ]
        self.inertia = as_leaf(check_all(float_array(inertia, name, (3,)), rules))
        self.weight_moment = scalar_leaf(weight_moment, "SteadyPrecession(weight_moment=...)")
        self.distance = scalar_leaf(distance, "SteadyPrecession(distance=...)")
        self.inclination = scalar_leaf(inclination, "SteadyPrecession(inclination=...)")
        name = "SteadyPrecession(precession_rate=...)"
        rules = [finite_rule(name), (lambda x: x != 0, f"`{name}` must not be zero.")]
        self.precession_rate = as_leaf(check_all(float_array(precession_rate, name, ()), rules))

    @property
    def spin_rate(self) -> Float[Array, ""]:
        r"""Spin $\omega_s$ about the axis of symmetry, rad/s, relative to the precessing frame."""
        i1, i3 = self.inertia[0], self.inertia[2]
        rate = self.precession_rate
        return self.weight_moment / (i3 * rate) + (i1 - i3) / i3 * rate * jnp.cos(self.inclination)

    def orientation(self, t: ArrayInput) -> Float[Array, "*T 4"]:
        """Return the quaternion (..., 4), scalar first, body to space; `t`, s, of any shape."""
        t = as_leaf(float_array(t, "t"))
        theta = jnp.broadcast_to(self.inclination, t.shape)
        return quaternion_zxz(self.precession_rate * t, theta, self.spin_rate * t)

    def angular_velocity(self, t: ArrayInput) -> Float[Array, "*T 3"]:
        """Return the angular velocity (..., 3), body components, rad/s; `t`, s, of any shape."""
        t = as_leaf(float_array(t, "t"))
        across = self.precession_rate * jnp.sin(self.inclination)
        along = self.precession_rate * jnp.cos(self.inclination) + self.spin_rate
        angle = self.spin_rate * t
        return jnp.stack(
            [across * jnp.sin(angle), across * jnp.cos(angle), jnp.broadcast_to(along, t.shape)],
            axis=-1,
        )

    def center_of_mass(self, t: ArrayInput) -> Float[Array, "*T 3"]:
        """Return the centre of mass (..., 3) m, space components; `t`, s, of any shape."""
        t = as_leaf(float_array(t, "t"))
        angle = self.precession_rate * t
        radius = self.distance * jnp.sin(self.inclination)
        height = jnp.broadcast_to(self.distance * jnp.cos(self.inclination), t.shape)
        return jnp.stack([radius * jnp.sin(angle), -radius * jnp.cos(angle), height], axis=-1)


def betsch_siebert_top() -> SteadyPrecession:
    """Return the top of Betsch-Siebert 5.2: a cone of height 0.1 m and radius 0.05 m.

    Density 2700 kg/m^3, inclination pi/3, precession 10 rad/s, gravity 9.81 m/s^2.
    """
    height, radius, density, gravity = 0.1, 0.05, 2700.0, 9.81
    mass = density * math.pi * radius**2 * height / 3
    distance = 0.75 * height
    across = 3 * mass / 80 * (4 * radius**2 + height**2) + mass * distance**2
    along = 3 * mass / 10 * radius**2
    return SteadyPrecession(
        (across, across, along), mass * gravity * distance, distance, math.pi / 3, 10.0
    )
