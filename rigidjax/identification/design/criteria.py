"""Scalar criteria of optimal experiment design."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float


def d_criterion(R: Float[Array, "k k"]) -> Float[Array, ""]:
    r"""Return $\frac{1}{2k} \log\det F$: minus the log of the mean radius of the ellipsoid."""
    return jnp.mean(jnp.log(jnp.abs(jnp.diag(R))))


def a_criterion(R: Float[Array, "k k"]) -> Float[Array, ""]:
    r"""Return $-\frac12 \log(\frac1k \mathrm{tr}\,F^{-1})$: minus the log rms deviation."""
    inverse = solve_triangular(R, jnp.eye(len(R), dtype=R.dtype))
    return -0.5 * jnp.log(jnp.sum(inverse**2) / len(R))


def e_criterion(R: Float[Array, "k k"]) -> Float[Array, ""]:
    r"""Return $\frac12 \log\lambda_{\min}(F)$: minus the log largest radius of the ellipsoid."""
    return jnp.log(jnp.linalg.svd(R, compute_uv=False)[-1])


# Each criterion is minus the logarithm of a relative standard deviation: larger is better, and an
# increase of one divides the standard deviation by e.
CRITERIA: dict[str, Callable[[Array], Array]] = {
    "D": d_criterion,
    "A": a_criterion,
    "E": e_criterion,
}


def information_factor(
    jacobian: Float[Array, "N p"], count: int, tolerance: Any
) -> tuple[Float[Array, "k k"], Bool[Array, ""]]:
    """Return the triangular $R$ with $R^T R$ the information on the last `count` parameters.

    The other parameters are unknown too: $R^T R$ is the Schur complement, the inverse of the block
    of the covariance, computed without forming the whole information matrix.

    **Returns:** $R$, and whether the information on all parameters is regular: no singular value of
    the Jacobian is below `tolerance` times the largest. Otherwise $R$ consists of errors of the
    derivatives, and its determinant has no meaning.
    """
    R = jnp.linalg.qr(jacobian, mode="r")
    values = jnp.linalg.svd(jax.lax.stop_gradient(R), compute_uv=False)
    return R[-count:, -count:], values[-1] > tolerance * values[0]
