"""The square root of the log-det divergence, for scalars and matrices, with derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..native.ops import sequential_vmap_on_cpu

# Below this absolute value $e^x - 1 - x$ is summed as a series, to avoid cancellation.
_SMALL = 0.5
# Divided differences of eigenvalues closer than this, relative to the larger one, use quadrature.
_CLOSE = 0.1
_NODES, _WEIGHTS = (0.5 * x for x in np.polynomial.legendre.leggauss(6))


def sqrt_divergence(s: Float[Array, "*s"]) -> Float[Array, "*s"]:
    r"""Return $h(\log s) = \mathrm{sign}(s - 1)\sqrt{s - \log s - 1}$, element by element."""
    x = jnp.log(s)
    return x * jnp.sqrt(0.5 * _scaled_remainder(x))


def _scaled_remainder(x: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """Return $2 (e^x - 1 - x)/x^2$, positive."""
    small = jnp.abs(x) < _SMALL
    away = jnp.where(small, 1.0, x)
    series = jnp.zeros_like(x)
    for k in range(16, 2, -1):
        series = (series + 1) * x / k
    return jnp.where(small, 1 + series, 2 * (jnp.expm1(away) - away) / (away * away))


_eigh = sequential_vmap_on_cpu(lambda S: tuple(jnp.linalg.eigh(S)))


@jax.custom_jvp
def sqrt_divergence_of_matrix(S: Float[Array, "3 3"]) -> Float[Array, "3 3"]:
    """Return `sqrt_divergence` of a symmetric, positive definite matrix."""
    s, V = _eigh(S)
    return (V * sqrt_divergence(s)[None]) @ V.T


@sqrt_divergence_of_matrix.defjvp
def _sqrt_divergence_of_matrix_jvp(
    primals: tuple[Float[Array, "3 3"]], tangents: tuple[Float[Array, "3 3"]]
) -> tuple[Float[Array, "3 3"], Float[Array, "3 3"]]:
    (S,), (dS,) = primals, tangents
    s, V = _eigh(S)
    rotated = V.T @ dS @ V
    dH = V @ (_divided_differences(s) * rotated) @ V.T
    return (V * sqrt_divergence(s)[None]) @ V.T, dH


def _divided_differences(s: Float[Array, " n"]) -> Float[Array, "n n"]:
    """Return divided differences of `sqrt_divergence` between all pairs of values.

    For close or equal values the mean of the derivative between them avoids cancellation.
    """
    a, b = s[:, None], s[None, :]
    gap = b - a
    close = jnp.abs(gap) < _CLOSE * jnp.maximum(a, b)
    nodes = jnp.asarray(_NODES + 0.5, s.dtype)
    between = a[..., None] + jnp.where(close, gap, 0.0)[..., None] * nodes[None, None]
    slopes = jax.jvp(sqrt_divergence, (between,), (jnp.ones_like(between),))[1]
    f = sqrt_divergence(s)
    apart = (f[None, :] - f[:, None]) / jnp.where(close, 1.0, gap)
    return jnp.where(close, slopes @ jnp.asarray(_WEIGHTS, s.dtype), apart)
