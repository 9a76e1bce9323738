r"""Finite rotations of a step as functions of its mean angular velocity $W$.

Every scheme rotates the body about $W$ by an angle $\varphi$ close to $h |W|$, and the schemes
differ in this angle. Half of the rotation leads to the mid-point frame, in which the balance of
angular momentum is written.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...annotations import Scalar, Vector3
from ...rotations import guarded
from ...rotations.so3 import dot, exp_quaternion


class RotationIncrement(NamedTuple):
    r"""A rotation about $W$.

    **Attributes:** `half`, quaternion of half of the rotation, not of unit length; `half_squared`,
    its squared length; `chord`, $\gamma = 2 \sin(\varphi/2) / (h |W|)$, such that
    $F - F^T = \gamma\,h\,\tilde W$ with the half rotation $F$.
    """

    half: Float[Array, "4"]
    half_squared: Scalar
    chord: Scalar

    @property
    def quaternion(self) -> Float[Array, "4"]:
        """Unit quaternion of the rotation."""
        p0, p1, p2, p3 = jnp.unstack(self.half)
        scale = 2.0 * p0 / self.half_squared
        return jnp.stack([scale * p0 - 1.0, scale * p1, scale * p2, scale * p3])


# A map from h W, shape (3,), rad, to the rotation of the step.
Map = Callable[[Vector3], RotationIncrement]


def map_rotations(maps: Sequence[Map], psi: Float[Array, "L 3"]) -> RotationIncrement:
    """Return the rotations of all bodies, stacked, each by the map given for its body."""
    first, *others = dict.fromkeys(maps)
    rotations = jax.vmap(first)(psi)
    for other in others:
        uses_other = np.array([rule is other for rule in maps])
        rotations = jax.tree.map(
            lambda new, old, uses_other=uses_other: jnp.where(
                np.expand_dims(uses_other, tuple(range(1, new.ndim))), new, old
            ),
            jax.vmap(other)(psi),
            rotations,
        )
    return rotations


def conformal(psi: Vector3) -> RotationIncrement:
    r"""Return the rotation with conformal rotation vector $\psi$: $\tan(\varphi/4) = |\psi|/4$.

    The angle is below 2 pi. Equivalently, $q_{n+1} - q_n = \frac h2\,q_{n+1/2} \circ W$ with the
    mean quaternion $q_{n+1/2}$, Betsch-Siebert (51) on the unit sphere.
    """
    u = 0.25 * psi
    half_squared = 1.0 + dot(u, u)
    return RotationIncrement(
        jnp.stack([jnp.ones_like(u[0]), u[0], u[1], u[2]]), half_squared, 1.0 / half_squared
    )


def cayley(psi: Vector3) -> RotationIncrement:
    r"""Return the Cayley transform of $\psi$, Rodrigues parameters: $\tan(\varphi/2) = |\psi|/2$.

    The angle is below pi. Equivalently, $R_{n+1} - R_n = h\,R_{n+1/2} \tilde W$ with the mean
    matrix $R_{n+1/2}$.
    """
    e = 0.5 * psi
    length = jnp.sqrt(1.0 + dot(e, e))
    half = jnp.stack([1.0 + length, e[0], e[1], e[2]])
    return RotationIncrement(half, 2.0 * length * (1.0 + length), 1.0 / length)


def exponential(psi: Vector3) -> RotationIncrement:
    r"""Return the rotation with rotation vector $\psi$: $\varphi = |\psi|$."""
    half = exp_quaternion(0.5 * psi)
    return RotationIncrement(half, jnp.ones_like(psi[0]), guarded.sine_ratio(0.25 * dot(psi, psi)))


def sine(psi: Vector3) -> RotationIncrement:
    r"""Return the rotation whose Euler parameters have the vector part $\psi/2$.

    Then $\sin(\varphi/2) = |\psi|/2$, and the angle is below pi. Equivalently, $\tilde W = \frac1h
    R_{n+1/2}^T (R_{n+1} - R_n)$ with the half rotation $R_{n+1/2}$.

    **Source:** Geradin-Rixen (311), (317), (323).
    """
    e = 0.5 * psi
    c = jnp.sqrt(1.0 - dot(e, e))
    return RotationIncrement(
        jnp.stack([1.0 + c, e[0], e[1], e[2]]), 2.0 * (1.0 + c), jnp.ones_like(c)
    )


def rotate_by_half(increment: RotationIncrement, v: Vector3, inverse: bool = False) -> Vector3:
    """Rotate `v` by half of the rotation, or by its inverse if `inverse`."""
    p0, p1, p2, p3 = jnp.unstack(increment.half)
    scale = 2.0 / increment.half_squared
    if inverse:
        p0 = -p0
    v1, v2, v3 = jnp.unstack(v)
    # v + 2/|p|^2 (p0 p x v + p x (p x v))
    c1, c2, c3 = p2 * v3 - p3 * v2, p3 * v1 - p1 * v3, p1 * v2 - p2 * v1
    return jnp.stack(
        [
            v1 + scale * (p0 * c1 + p2 * c3 - p3 * c2),
            v2 + scale * (p0 * c2 + p3 * c1 - p1 * c3),
            v3 + scale * (p0 * c3 + p1 * c2 - p2 * c1),
        ]
    )
