"""Velocities and accelerations of a system."""

import equinox as eqx
from jaxtyping import Array, Float


class Twists(eqx.Module):
    """Velocities of the bodies.

    `linear`, of the centres of mass, (L, 3) m/s, space components; `angular`, (L, 3) rad/s, body
    components.
    """

    linear: Float[Array, "L 3"]
    angular: Float[Array, "L 3"]


class Motion(eqx.Module):
    r"""Consistent generalised velocities (f,), the twists of the bodies, and $\dot\nu$ (f,)."""

    rates: Float[Array, " f"]
    twists: Twists
    derivatives: Float[Array, " f"]
