r"""The root of the log-det divergence, of numbers and of matrices, with its derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..native.ops import sequential_vmap_on_cpu

# Below this size the exponential without its first terms is summed as a series.
_SMALL = 0.5
# Eigenvalues closer than this, relative to the larger one: divided differences by quadrature.
_CLOSE = 0.1
_NODES, _WEIGHTS = (0.5 * x for x in np.polynomial.legendre.leggauss(6))


def root_of_divergence(s):
    r"""$h(\log s) = \mathrm{sign}(s - 1)\sqrt{s - \log s - 1}$, element by element."""
    x = jnp.log(s)
    return x * jnp.sqrt(0.5 * _second_remainder(x))


def _second_remainder(x):
    """$2 (e^x - 1 - x)/x^2$, positive."""
    small = jnp.abs(x) < _SMALL
    away = jnp.where(small, 1.0, x)
    series = jnp.zeros_like(x)
    for k in range(16, 2, -1):
        series = (series + 1) * x / k
    return jnp.where(small, 1 + series, 2 * (jnp.expm1(away) - away) / (away * away))


_eigh = sequential_vmap_on_cpu(lambda S: tuple(jnp.linalg.eigh(S)))


@jax.custom_jvp
def root_of_matrix(S: Float[Array, "3 3"]) -> Float[Array, "3 3"]:
    """`root_of_divergence` as a function of a symmetric, positive definite matrix."""
    s, V = _eigh(S)
    return (V * root_of_divergence(s)[None]) @ V.T


@root_of_matrix.defjvp
def _root_of_matrix_jvp(primals, tangents):
    (S,), (dS,) = primals, tangents
    s, V = _eigh(S)
    turned = V.T @ dS @ V
    dH = V @ (_divided_differences(s) * turned) @ V.T
    return (V * root_of_divergence(s)[None]) @ V.T, dH


def _divided_differences(s):
    """Divided differences of `root_of_divergence` between all values, also where these are equal.

    For close values the mean of the derivative between them: no difference cancels.
    """
    a, b = s[:, None], s[None, :]
    gap = b - a
    close = jnp.abs(gap) < _CLOSE * jnp.maximum(a, b)
    nodes = jnp.asarray(_NODES + 0.5, s.dtype)
    between = a[..., None] + jnp.where(close, gap, 0.0)[..., None] * nodes[None, None]
    slopes = jax.jvp(root_of_divergence, (between,), (jnp.ones_like(between),))[1]
    f = root_of_divergence(s)
    apart = (f[None, :] - f[:, None]) / jnp.where(close, 1.0, gap)
    return jnp.where(close, slopes @ jnp.asarray(_WEIGHTS, s.dtype), apart)
