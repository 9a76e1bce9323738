r"""The unknowns of a formulation as a point of a product of groups.

Every unit quaternion moves on its group, $p = p_0 \exp(\psi)$; everything else (positions,
velocities, angles of joints) is a vector space.
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import Vector
from ...formulations import AbstractFormulation
from ...formulations.layout import Layout
from ...native.ops import vmap_rows
from ...rotations.base import Rates
from ...rotations.guarded import (
    dexp_inverse_series,
    half_sine_series,
    half_versine_series,
    safe_divide,
    safe_sqrt,
)
from ...rotations.quaternion import Quaternion
from ...rotations.so3 import axial_product, conjugate, dexp_inv, dot, log_quaternion, multiply

_ROTATION = Quaternion()


class ChartIncrement(NamedTuple):
    """Coordinates in a chart, or their rates.

    **Attributes:** `shift`, of the positions, (L, 3) or (L, 0); `turn`, rotation vectors, (L, 3),
    rad; `rest`, of the other unknowns, (V,).
    """

    shift: Float[Array, "L k"]
    turn: Float[Array, "L 3"]
    rest: Float[Array, " V"]


class Chart(eqx.Module):
    r"""The point $y_0$ and its surroundings, $y = y_0 \circ \exp(u)$.

    **Arguments:** `origin`, the unknowns $y_0$, (N,); `layout`; `rates`, `"body"` for
    $p = p_0\,\exp(\psi)$, `"space"` for $p = \exp(\psi)\,p_0$.
    """

    origin: Float[Array, " N"]
    layout: Layout = eqx.field(static=True)
    rates: Rates = eqx.field(static=True)

    @property
    def zero(self) -> ChartIncrement:
        """The increment of the origin."""
        positions, p = self.layout.poses(self.origin)
        rest = self.origin[self.layout.num_positions :]
        shift = jnp.zeros_like(positions[:, : self.layout.shift])
        return ChartIncrement(shift, jnp.zeros_like(p[:, 1:]), jnp.zeros_like(rest))

    def point(self, u: ChartIncrement) -> Float[Array, " N"]:
        """The unknowns of an increment."""
        return self.origin + self.change(u)

    def change(self, u: ChartIncrement) -> Float[Array, " N"]:
        r"""What an increment adds to the unknowns, without cancellation; $|\psi| < 2\pi$."""
        _, p = self.layout.poses(self.origin)
        return self.layout.join_all(u.shift, vmap_rows(self._added, p, u.turn), u.rest, u.rest[:0])

    def end(self, u: ChartIncrement, low: Float[Array, " N"]) -> tuple[Array, Array]:
        """The unknowns of an increment, and what rounding took from them.

        `low` is what rounding took before. Without it the length of quaternions is off by 2e-14
        to 8e-14 after 1e5 steps.
        """
        return two_sum(self.origin, self.change(u) + low)

    def _added(self, p, psi):
        r"""$p\,(\exp(\psi) - 1)$, or $(\exp(\psi) - 1)\,p$."""
        x = dot(psi, psi)
        psi1, psi2, psi3 = jnp.unstack(psi)
        s = half_sine_series(x)
        e = jnp.stack([-x * half_versine_series(x), s * psi1, s * psi2, s * psi3])
        return multiply(p, e) if self.rates == "body" else multiply(e, p)

    def turn_between(self, y: Float[Array, " N"]) -> Float[Array, "L 3"]:
        """Rotation vectors below 2 pi from the origin to the unknowns `y`."""
        _, p = self.layout.poses(self.origin)
        _, q = self.layout.poses(y)

        def turn(p, q):
            p = conjugate(p)
            relative = multiply(p, q) if self.rates == "body" else multiply(q, p)
            psi = log_quaternion(relative)
            # Beyond pi the logarithm is the shorter way back.
            far = relative[0] < 0
            angle = safe_sqrt(dot(psi, psi))
            return jnp.where(
                far, psi - safe_divide(jnp.full_like(angle, 2 * jnp.pi), angle) * psi, psi
            )

        return vmap_rows(turn, p, q)

    def rate(
        self, u: ChartIncrement, velocity: ChartIncrement, truncated: int | None = None
    ) -> ChartIncrement:
        """Rates of the coordinates `u` at a velocity in the algebra."""

        def turn(psi, omega):
            x = dot(psi, psi)
            if truncated is None:
                e = dexp_inverse_series(x)
                half = 0.5 if self.rates == "body" else -0.5
                return axial_product(1.0 - e * x, half, e, psi, omega)
            return dexp_inv(psi, omega, self.rates, truncated)

        return velocity._replace(turn=vmap_rows(turn, u.turn, velocity.turn))

    def tangent(self, y: Float[Array, " N"], u: ChartIncrement) -> Float[Array, " N"]:
        """A small increment at `y` as a change of the unknowns."""
        _, p = self.layout.poses(y)
        p_dot = vmap_rows(lambda p, psi: _ROTATION.rate(p, psi, self.rates), p, u.turn)
        return self.layout.join_all(u.shift, p_dot, u.rest, u.rest[:0])


def velocity(model: AbstractFormulation, y: Float[Array, " N"], rate: Vector, rates: Rates):
    """The rates of unknowns as a velocity in the algebra."""
    layout = model.layout
    shift, p_dot = layout.poses(rate)
    _, p = layout.poses(y)
    turn = vmap_rows(lambda p, p_dot: _ROTATION.angular_velocity(p, p_dot, rates), p, p_dot)
    return ChartIncrement(shift[:, : layout.shift], turn, rate[layout.num_positions :])


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded sum and what rounding took from it, exactly."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)
