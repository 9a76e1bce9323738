"""Charts that move on before a minimal parametrization becomes singular (Geradin-Rixen 5.4)."""

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
        """Entries along the leading axes, as of an array: `sol.ys[-1]` is the last one."""
        return Charted(self.values[index], self.reference[index])


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


@functools.cache
def _icosians() -> np.ndarray:
    """The 60 rotations of an icosahedron as unit quaternions, one of each pair +-g, (60, 4).

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
    """Reference in which the rotation `p` has coordinates far from every singularity.

    Not one in which they are the farthest, but one of 60: the reference is then the same for all
    nearby `p`. A run that is repeated for its derivatives with steps that differ by round-off ends
    in the same chart, and derivatives do not flow through the reference. (With references at `p`
    itself forward derivatives came out wrong by 1e-5 to 1e-3 at a tolerance of 1e-12.)
    """
    center = rotation.to_quaternion(rotation.center()).astype(p.dtype)
    references = jnp.asarray(_icosians(), p.dtype)
    cosines = sum(references[:, i] * p[i] for i in range(4))
    return multiply(references[jnp.argmax(jnp.abs(cosines))], conjugate(center))


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
