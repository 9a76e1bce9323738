"""The past of a multistep method: modified divided differences on unequal steps."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ....annotations import Count, Matrix, Scalar, Time, Vector
from ....native.ops import inverse as inverse_of
from ...implicit import AbstractImplicitStep
from ...rate_elimination import Pairs
from ...terms import Index
from ..equations import AbstractEquations
from .formulas import LEADING, MAX_ORDER

ROWS = MAX_ORDER + 2
# The past: modified divided differences, and sums of steps.
Differences = Float[Array, "7 n"]
Sums = Float[Array, "6"]


class DifferenceCoefficients(NamedTuple):
    r"""What the lengths of the last steps make of the formulas, for a step of length h.

    **Attributes:** with index i from 0: `psi`, $\psi_i = t_{n+1} - t_{n-i}$, (6,); `alpha` =
    $h/\psi$; `beta`, factors that the differences get for the new step; `gamma`, weights of the
    differences in the predicted rate; `sigma`, of their errors.
    """

    psi: Sums
    alpha: Float[Array, "7"]
    beta: Float[Array, "7"]
    gamma: Float[Array, "7"]
    sigma: Float[Array, "7"]


def difference_coefficients(psi: Sums, h: Scalar) -> DifferenceCoefficients:
    """Coefficients of a step of length `h` after steps with the sums `psi`, (6,).

    **Source:** Brenan-Campbell-Petzold 5.2.1 (5.2.5), (5.2.9).
    """
    old = jnp.concatenate([psi, psi[-1:] + h])
    new = jnp.concatenate([h[None], old[:-1] + h])
    alpha = h / new
    one, zero = jnp.ones_like(h), jnp.zeros_like(h)
    beta, gamma, sigma = [one], [zero], [one]
    for i in range(1, ROWS):
        beta.append(beta[-1] * new[i - 1] / old[i - 1])
        gamma.append(gamma[-1] + alpha[i - 1] / h)
        sigma.append(i * sigma[-1] * alpha[i])
    return DifferenceCoefficients(
        new[: ROWS - 1], alpha, jnp.stack(beta), jnp.stack(gamma), jnp.stack(sigma)
    )


def predict(
    phi: Differences, c: DifferenceCoefficients, order: Count
) -> tuple[Array, Array, Array]:
    """Differences for the new step, (7, n), and prediction of unknowns and rates, (n,).

    **Source:** Brenan-Campbell-Petzold (5.2.8).
    """
    used = (jnp.arange(ROWS) <= order)[:, None]
    phi = jnp.where(used, c.beta[:, None] * phi, phi)
    kept = jnp.where(used, phi, 0.0)
    return phi, jnp.sum(kept, axis=0), c.gamma @ kept


def update_differences(phi: Differences, E: Vector, order: Count) -> Differences:
    """Differences at the end of a step, from those for it and its correction `E`, (n,).

    **Source:** Brenan-Campbell-Petzold 5.2.3.
    """
    i = jnp.arange(ROWS)[:, None]
    kept = jnp.where(i <= order, phi, 0.0)
    sums = jnp.cumsum(kept[::-1], axis=0)[::-1] + E[None]
    return jnp.where(i <= order, sums, jnp.where(i == order + 1, E[None], 0.0))


class Correction(AbstractImplicitStep):
    r"""$F(t_{n+1}, y^{(0)} + E, \dot y^{(0)} + c_j E) = 0$, `Z` = E, (n,).

    **Attributes:** `equations`; `t`; `y`, `rate`: predictions; `cj`, the fixed leading coefficient
    over h.
    """

    equations: AbstractEquations
    t: Time
    y: Vector
    rate: Vector
    cj: Scalar

    @property
    def rates(self) -> Pairs:
        return self.equations.rates

    def residual(self, Z: Vector) -> Vector:
        return self.equations.residual(self.t, self.y + Z, self.rate + self.cj * Z)

    def jacobian(self, Z: Vector) -> Matrix:
        _, M, K = self.equations.linearize(self.t, self.y + Z, self.rate + self.cj * Z)
        return self.cj * M + K


def correction_equations(
    equations: AbstractEquations, t1: Time, h: Scalar, past: "DifferenceHistory", order: Count
) -> tuple[Correction, Differences, DifferenceCoefficients]:
    """The equations of a step of length `h` to `t1`, and differences and coefficients for it."""
    c = difference_coefficients(past.psi, h)
    cj = jnp.asarray(LEADING, h.dtype)[order] / h
    phi, y, rate = predict(past.phi, c, order)
    return Correction(equations, t1, y, rate, cj), phi, c


def estimate_start_rate(
    equations: AbstractEquations, t0: Time, h: Scalar, y: Vector, index: Index
) -> Vector:
    r"""Rate $\dot y$ at the start, (n,), by a short linearly implicit step of Euler's method.

    For an ordinary differential equation it is $f$. For others also the unknowns without a rate of
    their own get one. Those of index 3 are only known to round-off over the square of a step, so
    that with an `index` above 1 the step is as long as the first one.
    **Source:** Brenan-Campbell-Petzold 5.2.5 (the routine DDAINI iterates the same step).
    """
    if not equations.is_singular:
        return equations.start_rate(t0, y)
    short = 0.01 * h if index is None else h
    t = t0 + short.astype(jnp.result_type(t0))
    rate = jnp.zeros_like(y)
    _, M, K = equations.linearize(t, y, rate)
    found = -inverse_of(M / short + K) @ equations.residual(t, y, rate) / short
    # If the matrix is singular, the first step will say so.
    return jnp.where(jnp.all(jnp.isfinite(found)), found, rate)


class DifferenceHistory(eqx.Module):
    """Differences `phi`, (7, n), and sums of steps `psi`, (6,), at the end of a step."""

    phi: Differences
    psi: Sums

    def with_last_value(self, y: Vector) -> "DifferenceHistory":
        """The same with the last unknowns replaced by `y`, say projected ones.

        The last value has weight 1 in each of the modified differences.
        """
        return DifferenceHistory(self.phi + (y - self.phi[0])[None], self.psi)


def restart_history(
    equations: AbstractEquations, t0: Time, h: Scalar, y: Vector, index: Index
) -> DifferenceHistory:
    """Differences of order 1 for a step of length `h`; `index` of the unknowns, see `index_of`."""
    phi = jnp.zeros((ROWS, y.size), y.dtype)
    phi = phi.at[0].set(y).at[1].set(h * estimate_start_rate(equations, t0, h, y, index))
    return DifferenceHistory(phi, h * jnp.arange(1, ROWS, dtype=h.dtype))
