"""Velocities of the bodies of a system."""

import equinox as eqx
from jaxtyping import Array, Float


class Twists(eqx.Module):
    r"""Velocities of all centres of mass, (L, 3) m/s, space components, and angular velocities,
    (L, 3) rad/s, body components."""

    linear: Float[Array, "L 3"]
    angular: Float[Array, "L 3"]


class Motion(eqx.Module):
    r"""Consistent minimal velocities (f,), the twists of the bodies, and $\dot\nu$ (f,)."""

    rates: Float[Array, " f"]
    twists: Twists
    derivatives: Float[Array, " f"]
