r"""Finite rotations of a step from the mean angular velocity $W$ of the step.

Every scheme turns the body about $W$ by an angle $\varphi$ that is close to $h |W|$; which angle is
what the schemes differ in. The half of the rotation leads to the frame of the mid-point, in which
the balance of angular momentum is written.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...rotations import guarded
from ...rotations.so3 import dot, exp_quaternion


class RotationIncrement(NamedTuple):
    r"""A rotation about $W$.

    `half`, quaternion (4,) of half of the rotation, not of unit length; `square` of its length;
    `chord`, $\gamma = 2 \sin(\varphi/2) / (h |W|)$: a constant vector in space moves by the chord
    $\gamma\,h\,W \times$ in the frame of the mid-point.
    """

    half: Float[Array, "4"]
    square: Float[Array, ""]
    chord: Float[Array, ""]

    @property
    def whole(self) -> Float[Array, "4"]:
        """Unit quaternion of the whole rotation."""
        p0, p1, p2, p3 = jnp.unstack(self.half)
        scale = 2.0 * p0 / self.square
        return jnp.stack([scale * p0 - 1.0, scale * p1, scale * p2, scale * p3])


# From h W, shape (3,), rad, to the rotation.
Map = Callable[[Float[Array, "3"]], RotationIncrement]


def mapped(maps: Sequence[Map], psi: Float[Array, "L 3"]) -> RotationIncrement:
    """Rotations of all bodies, stacked, each by its own map."""
    first, *others = dict.fromkeys(maps)
    found = jax.vmap(first)(psi)
    for one in others:
        mine = np.array([rule is one for rule in maps])
        found = jax.tree.map(
            lambda new, old, mine=mine: jnp.where(
                np.expand_dims(mine, tuple(range(1, new.ndim))), new, old
            ),
            jax.vmap(one)(psi),
            found,
        )
    return found


def conformal(psi: Float[Array, "3"]) -> RotationIncrement:
    r"""$\tan(\varphi/4) = |\psi|/4$, any angle below 2 pi: $\psi$ is a conformal rotation vector.

    That is $q_{n+1} - q_n = \frac h2\,q_{n+1/2} \circ W$ with the mean quaternion $q_{n+1/2}$,
    Betsch-Siebert (51) on the unit sphere.
    """
    u = 0.25 * psi
    square = 1.0 + dot(u, u)
    return RotationIncrement(
        jnp.stack([jnp.ones_like(u[0]), u[0], u[1], u[2]]), square, 1.0 / square
    )


def cayley(psi: Float[Array, "3"]) -> RotationIncrement:
    r"""$\tan(\varphi/2) = |\psi|/2$: $\psi$ are Rodrigues parameters, any angle below pi.

    That is $R_{n+1} - R_n = h\,R_{n+1/2} \tilde W$ with the mean matrix $R_{n+1/2}$.
    """
    e = 0.5 * psi
    length = jnp.sqrt(1.0 + dot(e, e))
    half = jnp.stack([1.0 + length, e[0], e[1], e[2]])
    return RotationIncrement(half, 2.0 * length * (1.0 + length), 1.0 / length)


def exponential(psi: Float[Array, "3"]) -> RotationIncrement:
    r"""$\varphi = |\psi|$: $\psi$ is a rotation vector."""
    half = exp_quaternion(0.5 * psi)
    return RotationIncrement(half, jnp.ones_like(psi[0]), guarded.sine_ratio(0.25 * dot(psi, psi)))


def sine(psi: Float[Array, "3"]) -> RotationIncrement:
    r"""$\sin(\varphi/2) = |\psi|/2$: $\psi/2$ is the vector part of Euler parameters, below pi.

    That is $\tilde W = \frac1h R_{n+1/2}^T (R_{n+1} - R_n)$ with the half rotation $R_{n+1/2}$.

    **Source:** Geradin-Rixen (311), (317), (323).
    """
    e = 0.5 * psi
    c = jnp.sqrt(1.0 - dot(e, e))
    return RotationIncrement(
        jnp.stack([1.0 + c, e[0], e[1], e[2]]), 2.0 * (1.0 + c), jnp.ones_like(c)
    )


def rotated(
    increment: RotationIncrement, v: Float[Array, "3"], back: bool = False
) -> Float[Array, "3"]:
    """`v` rotated by the half rotation, or back by it, in scalar components, shape (3,)."""
    p0, p1, p2, p3 = jnp.unstack(increment.half)
    scale = 2.0 / increment.square
    if back:
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
