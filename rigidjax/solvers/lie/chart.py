r"""Charts of the unknowns of a formulation as points of a product of Lie groups.

Every unit quaternion is an element of its group, $p = p_0 \exp(\psi)$; the other unknowns
(positions, velocities, angles of joints) form a vector space.
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import Vector, Vector3
from ...formulations import AbstractFormulation
from ...formulations.layout import Layout
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
from ...small_arrays import vmap_rows

_ROTATION = Quaternion()


class ChartIncrement(NamedTuple):
    """Coordinates in a chart, or their rates.

    **Attributes:** `shift`, of the positions, (L, 3) or (L, 0); `rotation`, rotation vectors,
    (L, 3), rad; `rest`, of the other unknowns, (V,).
    """

    shift: Float[Array, "L k"]
    rotation: Float[Array, "L 3"]
    rest: Float[Array, " V"]


class Chart(eqx.Module):
    r"""Exponential coordinates $u$ around a point, $y = y_0 \circ \exp(u)$.

    **Arguments:** `origin`, the unknowns $y_0$, (N,); `layout`; `rates`, `"body"` for
    $p = p_0\,\exp(\psi)$, `"space"` for $p = \exp(\psi)\,p_0$.
    """

    origin: Float[Array, " N"]
    layout: Layout = eqx.field(static=True)
    rates: Rates = eqx.field(static=True)

    @property
    def zero(self) -> ChartIncrement:
        """Coordinates of the origin."""
        positions, p = self.layout.poses(self.origin)
        rest = self.origin[self.layout.num_positions :]
        shift = jnp.zeros_like(positions[:, : self.layout.shift])
        return ChartIncrement(shift, jnp.zeros_like(p[:, 1:]), jnp.zeros_like(rest))

    def point(self, u: ChartIncrement) -> Float[Array, " N"]:
        """Return the unknowns with coordinates `u`."""
        return self.origin + self.change(u)

    def change(self, u: ChartIncrement) -> Float[Array, " N"]:
        r"""Return the change of the unknowns by `u` without cancellation, for $|\psi| < 2\pi$."""
        _, p = self.layout.poses(self.origin)
        return self.layout.join_all(
            u.shift, vmap_rows(self._quaternion_change, p, u.rotation), u.rest, u.rest[:0]
        )

    def compensated_point(self, u: ChartIncrement, low: Float[Array, " N"]) -> tuple[Array, Array]:
        """Return the unknowns with coordinates `u` and their rounding error.

        The rounding error `low` of the origin is compensated. Otherwise the rounding errors of the
        lengths of quaternions would add up over many steps.
        """
        return two_sum(self.origin, self.change(u) + low)

    def _quaternion_change(self, p: Float[Array, "4"], psi: Vector3) -> Array:
        r"""Return $p\,(\exp(\psi) - 1)$, for space rates $(\exp(\psi) - 1)\,p$."""
        x = dot(psi, psi)
        psi1, psi2, psi3 = jnp.unstack(psi)
        s = half_sine_series(x)
        e = jnp.stack([-x * half_versine_series(x), s * psi1, s * psi2, s * psi3])
        return multiply(p, e) if self.rates == "body" else multiply(e, p)

    def rotation_between(self, y: Float[Array, " N"]) -> Float[Array, "L 3"]:
        """Return the rotation vectors, below 2 pi, from the origin to the unknowns `y`."""
        _, p = self.layout.poses(self.origin)
        _, q = self.layout.poses(y)

        def rotation(p, q):
            p = conjugate(p)
            relative = multiply(p, q) if self.rates == "body" else multiply(q, p)
            psi = log_quaternion(relative)
            # Beyond pi the logarithm is the shorter rotation in the opposite direction.
            far = relative[0] < 0
            angle = safe_sqrt(dot(psi, psi))
            return jnp.where(
                far, psi - safe_divide(jnp.full_like(angle, 2 * jnp.pi), angle) * psi, psi
            )

        return vmap_rows(rotation, p, q)

    def coordinate_rate(
        self, u: ChartIncrement, velocity: ChartIncrement, truncated: int | None = None
    ) -> ChartIncrement:
        r"""Return the rates of the coordinates `u` for a velocity in the Lie algebra.

        `truncated` is the largest power of commutators in $\mathrm{dexp}^{-1}$, `None` for its
        closed form.
        """

        def rotation(psi, omega):
            x = dot(psi, psi)
            if truncated is None:
                e = dexp_inverse_series(x)
                half = 0.5 if self.rates == "body" else -0.5
                return axial_product(1.0 - e * x, half, e, psi, omega)
            return dexp_inv(psi, omega, self.rates, truncated)

        return velocity._replace(rotation=vmap_rows(rotation, u.rotation, velocity.rotation))

    def linear_change(self, y: Float[Array, " N"], u: ChartIncrement) -> Float[Array, " N"]:
        """Return the change of the unknowns `y` by a small increment, to first order."""
        _, p = self.layout.poses(y)
        p_dot = vmap_rows(lambda p, psi: _ROTATION.rate(p, psi, self.rates), p, u.rotation)
        return self.layout.join_all(u.shift, p_dot, u.rest, u.rest[:0])


def algebra_velocity(
    model: AbstractFormulation, y: Float[Array, " N"], rate: Vector, rates: Rates
) -> ChartIncrement:
    """Return the velocity in the Lie algebra for the rates of the unknowns."""
    layout = model.layout
    shift, p_dot = layout.poses(rate)
    _, p = layout.poses(y)
    rotation = vmap_rows(lambda p, p_dot: _ROTATION.angular_velocity(p, p_dot, rates), p, p_dot)
    return ChartIncrement(shift[:, : layout.shift], rotation, rate[layout.num_positions :])


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the rounded sum and its exact rounding error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)
