"""Charts that change before a minimal parametrization becomes singular (Geradin-Rixen 5.4)."""

import functools
import itertools
from functools import singledispatch
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

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

    def __getitem__(self, index: Any) -> "Charted":
        """Return entries along the leading axes, as of an array: `sol.ys[-1]` is the last one."""
        return Charted(self.values[index], self.reference[index])


Unknowns: TypeAlias = Float[Array, " N"] | Charted


def split_chart(y: Unknowns) -> tuple[Float[Array, " N"], Float[Array, "L 4"] | None]:
    """Return the values of unknowns and the references (`None` in the fixed chart)."""
    if isinstance(y, Charted):
        return y.values, y.reference
    return y, None


def join_chart(values: Float[Array, " N"], y: Unknowns) -> Unknowns:
    """Return `values` in the chart of `y`."""
    return Charted(values, y.reference) if isinstance(y, Charted) else values


def constant_chart(rate: Float[Array, " N"], y: Unknowns) -> Unknowns:
    """Return rates of the unknowns `y`; the reference of a chart does not change."""
    return Charted(rate, jnp.zeros_like(y.reference)) if isinstance(y, Charted) else rate


@functools.cache
def _icosians() -> np.ndarray:
    """Return the 60 rotations of an icosahedron as unit quaternions, one of each pair +-g, (60, 4).

    No rotation is farther than 44.48 degrees from one of them.
    """
    golden = 0.5 * (1 + np.sqrt(5.0))
    even = [o for o in itertools.permutations(range(4)) if np.linalg.det(np.eye(4)[list(o)]) > 0]
    signs = list(itertools.product((1.0, -1.0), repeat=4))
    candidates = [np.eye(4)[i] for i in range(4)]
    candidates += [0.5 * np.array(sign) for sign in signs]
    base = 0.5 * np.array([golden, 1.0, 1.0 / golden, 0.0])
    candidates += [(base * sign)[list(order)] for order in even for sign in signs]
    chosen: list[np.ndarray] = []
    for g in candidates:
        if all(abs(g @ other) < 0.999 for other in chosen):
            chosen.append(g)
    return np.array(chosen)


def move_chart(rotation: AbstractRotation, p: Float[Array, "4"]) -> Float[Array, "4"]:
    """Return a reference in which the rotation `p` has coordinates far from every singularity.

    It is one of 60, not the farthest of all: all rotations near `p` have the same reference. A run
    that is repeated for its derivatives with steps that differ by round-off ends in the same chart,
    and derivatives do not flow through the reference.
    """
    center = rotation.to_quaternion(rotation.center()).astype(p.dtype)
    references = jnp.asarray(_icosians(), p.dtype)
    cosines = sum(references[:, i] * p[i] for i in range(4))
    return multiply(references[jnp.argmax(jnp.abs(cosines))], conjugate(center))


def chart_limit(rotation: AbstractRotation) -> Float[Array, ""]:
    """Return the distance to a singularity at which a chart moves: half that at its centre, rad."""
    return 0.5 * rotation.singularity(rotation.center())


@singledispatch
def needs_no_reference(rotation: AbstractRotation, p: Float[Array, "4"]) -> Bool[Array, ""]:
    """Return whether the coordinates of the rotation `p` itself are far from every singularity.

    Coordinates that are not finite are not. A parametrization that does not represent every
    rotation registers its own answer.
    """
    a = rotation.from_quaternion(jax.lax.stop_gradient(p))
    return jnp.all(jnp.isfinite(a)) & (rotation.singularity(a) > chart_limit(rotation))


@needs_no_reference.register
def _linear_needs_no_reference(rotation: LinearParameters, p: Float[Array, "4"]):
    # There are no coordinates beyond pi/2. The distance is pi/2 - phi, and cos(phi) = 2 p0^2 - 1.
    return 2.0 * p[0] * p[0] - 1.0 > jnp.sin(chart_limit(rotation))
