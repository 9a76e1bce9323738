"""Charts that move on before a minimal parametrization becomes singular (Geradin-Rixen 5.4)."""

from functools import singledispatch
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..forces.base import to_space
from ..rotations.base import AbstractRotation
from ..rotations.linear import LinearParameters
from ..rotations.so3 import conjugate, multiply


class Charted(eqx.Module):
    r"""Unknowns in moving charts: the rotation of body $i$ is $R(Q_i)\,R(a_i)$.

    `values` are the unknowns proper, shape (num_unknowns,); `reference` the unit quaternions
    $Q_i$, shape (L, 4), constant between changes of chart.
    """

    values: Float[Array, " N"]
    reference: Float[Array, "L 4"]


Unknowns: TypeAlias = Float[Array, " N"] | Charted


def split_chart(y: Unknowns) -> tuple[Float[Array, " N"], Float[Array, "L 4"] | None]:
    """Unknowns proper and references (`None` for unknowns in the fixed chart)."""
    if isinstance(y, Charted):
        return y.values, y.reference
    return y, None


def join_chart(values: Float[Array, " N"], y: Unknowns) -> Unknowns:
    """`values` in the same chart as `y`."""
    return Charted(values, y.reference) if isinstance(y, Charted) else values


def constant_chart(rate: Float[Array, " N"], y: Unknowns) -> Unknowns:
    """Rates of the unknowns `y`; the reference of a chart does not change."""
    return Charted(rate, jnp.zeros_like(y.reference)) if isinstance(y, Charted) else rate


def move_chart(rotation: AbstractRotation, p: Float[Array, "4"]) -> Float[Array, "4"]:
    """Reference in which the rotation `p` has the coordinates farthest from every singularity."""
    center = rotation.to_quaternion(rotation.center()).astype(p.dtype)
    return multiply(p, conjugate(center))


def chart_limit(rotation: AbstractRotation) -> Float[Array, ""]:
    """Distance to a singularity below which a chart moves: half of that at its centre, rad."""
    return 0.5 * rotation.singularity(rotation.center())


@singledispatch
def needs_no_reference(rotation: AbstractRotation, p: Float[Array, "4"]) -> Bool[Array, ""]:
    """Whether the coordinates of the rotation `p` itself are far from every singularity.

    Not finite coordinates are not. A parametrization that does not represent every rotation
    registers its own answer.
    """
    a = rotation.from_quaternion(jax.lax.stop_gradient(p))
    return jnp.all(jnp.isfinite(a)) & (rotation.singularity(a) > chart_limit(rotation))


@needs_no_reference.register
def _linear_needs_no_reference(rotation: LinearParameters, p):
    # There are no coordinates beyond pi/2. The distance is pi/2 - phi, and cos(phi) = 2 p0^2 - 1.
    return 2.0 * p[0] * p[0] - 1.0 > jnp.sin(chart_limit(rotation))


def relative_quaternion(
    p: Float[Array, "4"], reference: Float[Array, "L 4"] | None, i: int
) -> Float[Array, "4"]:
    """Rotation of body `i` as seen from the reference of its chart."""
    return p if reference is None else multiply(conjugate(reference[i]), p)


def in_space(reference: Float[Array, "3 3"], R: Float[Array, "3 3"]) -> Float[Array, "3 3"]:
    """Product of two rotation matrices, written out (batched 3x3 products are slow)."""
    return jnp.stack([to_space(reference, R[:, j]) for j in range(3)], axis=1)
