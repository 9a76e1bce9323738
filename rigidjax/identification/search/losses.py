"""Losses of residuals: squares, and robust losses that limit the influence of outliers."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


class AbstractLoss(eqx.Module):
    r"""A loss $\rho(r)$ of a residual in units of the noise, with $\rho \approx r^2/2$ near zero.

    A fit minimises $\sum\rho(r)$ as a sum of squares of $\varphi(r) = \pm\sqrt{2\rho(r)}$.
    """

    @abc.abstractmethod
    def root(self, r: Float[Array, "*s"]) -> Float[Array, "*s"]:
        r"""Return $\varphi(r)$, odd, with unit slope at zero."""

    @abc.abstractmethod
    def influence(self, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r"""Return $\psi(r) = \rho'(r)$ and its derivative $\psi'(r)$."""

    def slope(self, r: Float[Array, "*s"]) -> Float[Array, "*s"]:
        r"""Return $\varphi'(r)$."""
        return jax.jvp(self.root, (r,), (jnp.ones_like(r),))[1]

    def variance(self, r: np.ndarray, num_parameters: int) -> float:
        r"""Return $\overline{\psi^2}/\overline{\psi'}^2$, the equivalent variance of a residual.

        The covariance of the estimates is this number times $(J^T J)^{-1}$.

        **Arguments:** `r`, the weighted residuals at the optimum, (N,); `num_parameters`.
        **Source:** Huber, Robust Statistics (1981), (7.6.5), without its correction factor.
        """
        psi, derivative = self.influence(r)
        freedom = max(r.size - num_parameters, 1)
        return float(np.sum(psi**2) / freedom / np.mean(derivative) ** 2)


class Squares(AbstractLoss):
    r"""$\rho = r^2/2$: least squares, the most precise for normally distributed noise."""

    def root(self, r: Float[Array, "*s"]) -> Float[Array, "*s"]:
        return r

    def influence(self, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return r, np.ones_like(r)


class Huber(AbstractLoss):
    r"""$\rho = r^2/2$ for $|r| \le k$, else $k|r| - k^2/2$: outliers have a constant influence.

    **Arguments:** `k`, in standard deviations of the noise; 1.345 keeps 95 % of the efficiency of
    least squares for normally distributed noise.
    **Errors:** `ValueError` unless `k` is positive.
    **Source:** Huber, Ann. Math. Statist. 35 (1964) 73.
    """

    k: float = eqx.field(static=True, default=1.345)

    def __check_init__(self):
        _check_positive(self.k, "Huber")

    def root(self, r: Float[Array, "*s"]) -> Float[Array, "*s"]:
        size = jnp.abs(r)
        far = size > self.k
        outside = jnp.sqrt(self.k * (2.0 * jnp.where(far, size, self.k) - self.k))
        return jnp.where(far, jnp.sign(r) * outside, r)

    def influence(self, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.clip(r, -self.k, self.k), (np.abs(r) <= self.k).astype(r.dtype)


class Cauchy(AbstractLoss):
    r"""$\rho = \frac{k^2}{2}\log(1 + r^2/k^2)$: distant outliers have almost no influence.

    The loss is not convex: start close to the optimum, or from a fit with `Huber()`.

    **Arguments:** `k`, in standard deviations of the noise; 2.385 keeps 95 % of the efficiency of
    least squares for normally distributed noise.
    **Errors:** `ValueError` unless `k` is positive.
    """

    k: float = eqx.field(static=True, default=2.385)

    def __check_init__(self):
        _check_positive(self.k, "Cauchy")

    def root(self, r: Float[Array, "*s"]) -> Float[Array, "*s"]:
        x = (r / self.k) ** 2
        near = x < 1e-4
        far = jnp.where(near, 1.0, x)
        ratio = jnp.where(near, 1.0 - x * (0.5 - x / 3.0), jnp.log1p(far) / far)
        return r * jnp.sqrt(ratio)

    def influence(self, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = (r / self.k) ** 2
        return r / (1.0 + x), (1.0 - x) / (1.0 + x) ** 2


def _check_positive(k: float, name: str) -> None:
    if not k > 0:
        raise ValueError(f"`{name}(k=...)` must be positive, in standard deviations; got {k!r}.")
