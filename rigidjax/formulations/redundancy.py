r"""Redundant constraints of closed loops, in equations with multipliers.

Where rows of the gradient $G$ depend on each other, the multipliers are not unique, and constraints
with multipliers as unknowns are a singular system. With the orthogonal projector $P$ onto the range
of $G$ at the start, $P g + (1 - P) \lambda = 0$ takes the place of $g = 0$: both terms vanish by
themselves, as many constraints as there are independent ones, and a choice of the multipliers.
"""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..linalg import one_by_one
from ..system.inverses import pseudo_inverse

if TYPE_CHECKING:
    from .descriptor import Descriptor

# Singular values below this part of the largest one are zero: at the start a mechanism is assembled
# to round-off, and constraints less independent than that would not hold it.
_CUTOFF = 1e-8


def independent_constraints(descriptor: "Descriptor", t, y0) -> Float[Array, "m m"]:
    """The projector onto the independent constraints at the unknowns `y0`, without derivatives.

    The identity, exactly, if all of them are.
    """
    q, _, angles = descriptor.split(y0)
    return _projector(jax.lax.stop_gradient(descriptor.jacobian(t, q, angles)))


def _onto_range(G):
    U, s, _ = jnp.linalg.svd(G, full_matrices=False)
    keep = s > _CUTOFF * jnp.max(s, initial=0.0)
    P = (U * keep) @ U.T
    return jnp.where(jnp.sum(keep) == len(G), jnp.eye(len(G), dtype=G.dtype), P)


_projector = one_by_one(_onto_range)


def least_norm(G: Float[Array, "m n"], lam: Float[Array, " m"]) -> Float[Array, " m"]:
    r"""The multipliers of least norm among those with the same $G^T \lambda$."""
    return pseudo_inverse(G).T @ (G.T @ lam)
