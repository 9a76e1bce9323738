"""Priors: knowledge of parameters besides the data, as additional rows of least squares."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...bodies.inertia import euler_tensor, principal_euler_values
from ...checks import ArrayInput, float_array
from ...small_arrays import sequential_vmap_on_cpu
from ..transforms import AbstractTransform, InertiaTensor, PrincipalInertia

# Below this absolute value $e^x - 1 - x$ is summed as a series, to avoid cancellation.
_SMALL = 0.5
# Divided differences of eigenvalues closer than this, relative to the larger one, use quadrature.
_CLOSE = 0.1
_NODES, _WEIGHTS = (0.5 * x for x in np.polynomial.legendre.leggauss(6))


# Smallest principal Euler value of a prior, relative to the sum of all three, that counts as
# positive.
_FLAT = 1e-9


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


class AbstractPrior(eqx.Module):
    r"""Prior of one parameter: a term $\frac12 |\rho(\theta)|^2$ in the loss of a fit."""

    @abc.abstractmethod
    def check(self, name: str, transform: AbstractTransform) -> None:
        """Raise `ValueError` if the prior does not apply to parameters with this transformation."""

    @abc.abstractmethod
    def check_leaf(self, name: str, transform: AbstractTransform, shape: tuple[int, ...]) -> None:
        """Raise `ValueError` if the prior does not fit the shape of the leaf."""

    @abc.abstractmethod
    def rows(self, transform: AbstractTransform, leaf: Array) -> Float[Array, " k"]:
        r"""Return the residuals $\rho$, dimensionless; half their sum of squares is added."""

    @abc.abstractmethod
    def text(self) -> str:
        """Return the prior in words."""


class LogDetPrior(AbstractPrior):
    r"""Expected inertia, for example from a drawing, with a weight that is the same in all axes.

    Adds $w\,D(E\|E_0)$ to half the sum of squares, where $E$ and $E_0$ are the Euler tensors of the
    parameter and of the prior, and
    $$D(E\|E_0) = \mathrm{tr}(E_0^{-1}E) - \log\det(E_0^{-1}E) - 3$$
    is the Bregman divergence of $-\log\det$. It does not depend on axes and units, and grows
    without bound as a body becomes flat. Near $E_0$ it is half the sum of the squares of the
    relative changes of the principal Euler values of $E_0^{-1}E$: a relative standard deviation of
    $s$ corresponds to the weight $1/s^2$.

    With $L L^T = E_0$ and $S = L^{-1} E L^{-T}$ its residuals are $\sqrt{2w}\,h(\log S)$, where
    $h(x) = \mathrm{sign}(x)\sqrt{e^x - x - 1}$ is analytic. The derivative of the matrix function
    follows Daleckii and Krein and is also valid for equal eigenvalues.

    **Arguments:** `value`, the expected inertia, kg m^2, in the shape and axes of the parameter:
    (3,) for `PrincipalInertia`, (3, 3) for `InertiaTensor`; `weight`, $w$. With `per_run` it
    applies to every run.
    **Errors:** `ValueError` for another shape, a value without positive definite Euler tensor (a
    flat body, a rod), a weight that is not positive.
    **Source:** Lee, Wensing, Park, IEEE Trans. Robot. 36 (2020) 78, eq. (21), for the rotational
    part; Higham, Functions of Matrices (2008), theorem 3.11, corollary 3.12.
    """

    value: Float[Array, "3"] | Float[Array, "3 3"]
    weight: Float[Array, ""]

    def __init__(self, value: ArrayInput, weight: ArrayInput):
        value = np.asarray(float_array(value, "LogDetPrior(value=...)", (3,), (3, 3)))
        weight = np.asarray(float_array(weight, "LogDetPrior(weight=...)", ()))
        if not np.all(np.abs(value - value.T) <= 1e-6 * np.abs(value).max()):
            raise ValueError(
                f"`LogDetPrior(value=...)` must be finite, a tensor symmetric; got {value}."
            )
        moments = np.asarray(principal_euler_values(jnp.asarray(value)))
        if not moments.min() > _FLAT * moments.sum():
            raise ValueError(
                "`LogDetPrior(value=...)` must be the inertia of a body that is not flat; got the "
                f"principal Euler values {moments} kg m^2. Give it some thickness."
            )
        if not (np.isfinite(weight) and weight > 0):
            raise ValueError(
                f"`LogDetPrior(weight=...)` must be positive and finite; got {weight}."
            )
        self.value = jnp.asarray(0.5 * (value + value.T))
        self.weight = jnp.asarray(weight)

    def check(self, name: str, transform: AbstractTransform) -> None:
        if not isinstance(transform, InertiaTensor | PrincipalInertia):
            raise ValueError(
                f"`Parameter({name!r}, prior=LogDetPrior(...))` is for the transformations "
                f"`InertiaTensor` and `PrincipalInertia`; got {type(transform).__name__}. Use "
                "`GaussianPrior`."
            )

    def check_leaf(self, name: str, transform: AbstractTransform, shape: tuple[int, ...]) -> None:
        if self.value.shape != shape:
            raise ValueError(
                f"`LogDetPrior(value=...)` of {name!r} must have the shape of the parameter, "
                f"{shape}; got {self.value.shape}."
            )

    def rows(self, transform: AbstractTransform, leaf: Array) -> Float[Array, " k"]:
        """Return 3 residuals for moments, 6 for a tensor (off-diagonal ones weighted by sqrt 2)."""
        E, E0 = euler_tensor(leaf), euler_tensor(self.value.astype(leaf.dtype))
        root = jnp.sqrt(2 * self.weight.astype(leaf.dtype))
        if leaf.ndim == 1:
            return root * sqrt_divergence(E / E0)
        inverse = jnp.linalg.inv(jnp.linalg.cholesky(E0))
        H = sqrt_divergence_of_matrix(inverse @ E @ inverse.T)
        return root * jnp.concatenate([jnp.diag(H), np.sqrt(2) * H[np.triu_indices(3, 1)]])

    def text(self) -> str:
        return f"a log-det prior of weight {float(self.weight):.4g}"


class GaussianPrior(AbstractPrior):
    r"""Independent normal priors of the components, given by mean and standard deviation.

    The residuals are $(\theta_i - \mu_i)/\sigma_i$. For an `Orientation` they are the components of
    the rotation vector from the mean, in body axes, divided by $\sigma_i$.

    **Arguments:** `mean`, in the shape and unit of the parameter's leaf, or one number for all
    elements; `std`, $\sigma$, in the same unit, one number or one per component, `inf` for a
    component without prior. With `per_run` it applies to every run.
    **Errors:** `ValueError` for other shapes, a mean that is not finite, a standard deviation that
    is not positive.
    """

    mean: Float[Array, "..."]
    std: Float[Array, "..."]

    def __init__(self, mean: ArrayInput, std: ArrayInput):
        mean = np.asarray(float_array(mean, "GaussianPrior(mean=...)"))
        std = np.asarray(float_array(std, "GaussianPrior(std=...)"))
        if not np.all(np.isfinite(mean)):
            raise ValueError(f"`GaussianPrior(mean=...)` must be finite; got {mean}.")
        if not np.all(std > 0):
            raise ValueError(
                "`GaussianPrior(std=...)` must be positive, `inf` where nothing is known; got "
                f"{std}."
            )
        self.mean, self.std = jnp.asarray(mean), jnp.asarray(std)

    def check(self, name: str, transform: AbstractTransform) -> None:
        """Accept parameters of every kind."""

    def check_leaf(self, name: str, transform: AbstractTransform, shape: tuple[int, ...]) -> None:
        if self.mean.shape not in ((), shape):
            raise ValueError(
                f"`GaussianPrior(mean=...)` of {name!r} must be a number or have the shape of the "
                f"parameter, {shape}; got {self.mean.shape}."
            )
        count = len(transform.components(shape))
        if self.std.shape not in ((), (count,), shape) or self.std.size not in (1, count):
            raise ValueError(
                f"`GaussianPrior(std=...)` of {name!r} must be one number or {count}, one for each "
                f"component; got shape {self.std.shape}."
            )

    def rows(self, transform: AbstractTransform, leaf: Array) -> Float[Array, " k"]:
        mean = jnp.broadcast_to(self.mean, leaf.shape).astype(leaf.dtype)
        return transform.change(mean, leaf) / self.std.astype(leaf.dtype).reshape(-1)

    def text(self) -> str:
        return "a Gaussian prior"
