r"""Formulas of a multistep method: differences on unequal steps, choice of order and step.

At equal steps the formula of order k is
$\sum_{j \le k} \nabla^j y_{n+1}/j - \kappa\,\gamma_k (y_{n+1} - y^{(0)}) = h\,\dot y_{n+1}$ with
$\gamma_k = \sum_{j \le k} 1/j$ and the prediction $y^{(0)}$. With $\kappa = 0$ it is the backward
differentiation formula. The values of $\kappa$ used here, by Klopfenstein and Shampine, reduce the
error constant, that of order 2 by half, and reduce the region of stability only slightly.

**Source:** Shampine-Reichelt, The MATLAB ODE suite, SIAM J. Sci. Comput. 18 (1997), Table 1.
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ....annotations import Count, Flag, Matrix, Norm, Scalar, Time, Vector
from ....small_arrays import inverse as inverse_of
from ...base.implicit import AbstractImplicitStep
from ...base.rate_elimination import Pairs
from ...base.terms import Index
from ..equations import AbstractEquations

MAX_ORDER = 5

# Values of kappa for order 0 (not used) to 5. The formulas of order 1 to 5 are A(alpha)-stable with
# alpha = 90, 90, 80, 66 and 51 degrees.
_KAPPA = np.array([0.0, -0.1850, -1 / 9, -0.0823, -0.0415, 0.0])
_GAMMA = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, MAX_ORDER + 1))])

# Leading coefficients: a correction of the unknowns changes the rate by this factor over h.
LEADING = (1.0 - _KAPPA) * _GAMMA
# Error constants: factors of h^(k+1) and the derivative of order k + 1 in the local error of order
# k; infinite for order 6, which does not exist.
ERROR = np.append(_KAPPA * _GAMMA + 1.0 / np.arange(1, MAX_ORDER + 2), np.inf)

ROWS = MAX_ORDER + 2
# Modified divided differences; sums of step lengths.
Differences = Float[Array, "7 n"]
Sums = Float[Array, "6"]


class DifferenceCoefficients(NamedTuple):
    r"""Coefficients of the formulas for a step of length h after unequal steps.

    **Attributes:** with index i from 0: `psi`, $\psi_i = t_{n+1} - t_{n-i}$, (6,); `alpha`,
    $h/\psi_i$; `beta`, factors that adapt the differences to the new step; `gamma`, weights of the
    differences in the predicted rate; `sigma`, weights of the differences in error estimates.
    """

    psi: Sums
    alpha: Float[Array, "7"]
    beta: Float[Array, "7"]
    gamma: Float[Array, "7"]
    sigma: Float[Array, "7"]


def difference_coefficients(psi: Sums, h: Scalar) -> DifferenceCoefficients:
    """Return the coefficients of a step of length `h` after steps with the sums `psi`, (6,).

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
    """Return the differences for the new step, (7, n), and predicted unknowns and rates, (n,).

    **Source:** Brenan-Campbell-Petzold (5.2.8).
    """
    used = (jnp.arange(ROWS) <= order)[:, None]
    phi = jnp.where(used, c.beta[:, None] * phi, phi)
    active = jnp.where(used, phi, 0.0)
    return phi, jnp.sum(active, axis=0), c.gamma @ active


def update_differences(phi: Differences, E: Vector, order: Count) -> Differences:
    """Return the differences at the end of a step.

    **Arguments:** `phi`, differences from `predict`; `E`, correction, (n,); `order` of the step.

    **Source:** Brenan-Campbell-Petzold 5.2.3.
    """
    i = jnp.arange(ROWS)[:, None]
    active = jnp.where(i <= order, phi, 0.0)
    sums = jnp.cumsum(active[::-1], axis=0)[::-1] + E[None]
    return jnp.where(i <= order, sums, jnp.where(i == order + 1, E[None], 0.0))


class Correction(AbstractImplicitStep):
    r"""Equations $F(t_{n+1}, y^{(0)} + E, \dot y^{(0)} + c_j E) = 0$ of the correction E, (n,).

    **Attributes:** `equations`; `t`, $t_{n+1}$; `y`, `rate`, predictions $y^{(0)}$ and
    $\dot y^{(0)}$; `cj`, the fixed leading coefficient over h.
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
    equations: AbstractEquations, t1: Time, h: Scalar, history: "DifferenceHistory", order: Count
) -> tuple[Correction, Differences, DifferenceCoefficients]:
    """Return the equations, differences and coefficients of a step of length `h` to `t1`."""
    c = difference_coefficients(history.psi, h)
    cj = jnp.asarray(LEADING, h.dtype)[order] / h
    phi, y, rate = predict(history.phi, c, order)
    return Correction(equations, t1, y, rate, cj), phi, c


def estimate_start_rate(
    equations: AbstractEquations, t0: Time, h: Scalar, y: Vector, index: Index
) -> Vector:
    r"""Return the rate $\dot y$ at the start, (n,).

    For an ordinary differential equation the rate is $f$. Otherwise a short linearly implicit Euler
    step gives the rates of all unknowns, also of algebraic ones. Unknowns of index 3 have an error
    of round-off over the square of this step, so that with an `index` above 1 the step has the
    length `h` of the first step.

    **Source:** Brenan-Campbell-Petzold 5.2.5 (the routine DDAINI iterates the same step).
    """
    if not equations.is_singular:
        return equations.start_rate(t0, y)
    short = 0.01 * h if index is None else h
    t = t0 + short.astype(jnp.result_type(t0))
    rate = jnp.zeros_like(y)
    _, M, K = equations.linearize(t, y, rate)
    solution = -inverse_of(M / short + K) @ equations.residual(t, y, rate) / short
    # A singular matrix is reported by the first step.
    return jnp.where(jnp.all(jnp.isfinite(solution)), solution, rate)


class DifferenceHistory(eqx.Module):
    """Differences `phi`, (7, n), and sums of step lengths `psi`, (6,), at the end of a step."""

    phi: Differences
    psi: Sums

    def with_last_value(self, y: Vector) -> "DifferenceHistory":
        """Return the history with the last unknowns replaced by `y`, such as projected ones.

        The last value has weight 1 in each of the modified differences.
        """
        return DifferenceHistory(self.phi + (y - self.phi[0])[None], self.psi)


def restart_history(
    equations: AbstractEquations, t0: Time, h: Scalar, y: Vector, index: Index
) -> DifferenceHistory:
    """Return differences of order 1 for a first step.

    **Arguments:** `equations`; `t0`, s; `h`, length of the step; `y`; `index` of the unknowns, see
    `differentiation_index`.
    """
    phi = jnp.zeros((ROWS, y.size), y.dtype)
    phi = phi.at[0].set(y).at[1].set(h * estimate_start_rate(equations, t0, h, y, index))
    return DifferenceHistory(phi, h * jnp.arange(1, ROWS, dtype=h.dtype))


# Ratio of the tolerance to the error that a step aims at; more steps are rejected with DASSL's 2.
_SAFETY = 4.0
# Smallest growth of a step. A smaller one does not pay for the new Jacobian that follows, and a
# larger one, such as DASSL's doubling, takes more steps.
_GROWTH = 1.5


class ErrorEstimates(NamedTuple):
    """Error estimates of a step of order k.

    **Attributes:** `size`, norm of the error of the step; for the choice of the order, `terms`,
    norms of the Taylor terms for order k - 1, k and k + 1, infinite for an order that is not
    available, and `estimates`, norms of the errors of steps of these orders.
    """

    size: Scalar
    terms: tuple[Scalar, Scalar, Scalar]
    estimates: tuple[Scalar, Scalar, Scalar]


def estimate_errors(
    phi: Differences, E: Vector, last: Flag, c: DifferenceCoefficients, order: Count, norm: Norm
) -> ErrorEstimates:
    """Return error estimates for the order k of the step and for the orders k - 1 and k + 1.

    **Arguments:** `phi`, differences for the step, (7, n); `E`, correction, (n,); `last`, whether
    the difference of order k + 1 comes from a step of equal length and order; `c`, coefficients of
    the step; `order`, k; `norm`.
    **Source:** Brenan-Campbell-Petzold 5.2.2, (5.2.15) to (5.2.19), with the error constants of
    `formulas`.
    """
    k = order
    leading, constant = jnp.asarray(LEADING, E.dtype), jnp.asarray(ERROR, E.dtype)
    alpha0 = jnp.sum(jnp.where(jnp.arange(ROWS) < k, c.alpha, 0.0))
    size = norm(E)
    current = (k + 1) * c.sigma[k] * size
    lower = k * c.sigma[k - 1] * norm(phi[k] + E)
    lowest = c.sigma[jnp.maximum(k - 2, 0)] * norm(phi[k] + phi[k - 1] + E)
    # From order 3 on, the terms of both lower orders must be small for the order to fall.
    term = jnp.where(k > 2, jnp.maximum(lower, (k - 1) * lowest), 2.0 * lower)
    term = jnp.where(k > 1, term, jnp.inf)
    higher = norm(E - phi[jnp.minimum(k + 1, ROWS - 1)])
    higher = jnp.where(last & (k < MAX_ORDER), higher, jnp.inf)
    return ErrorEstimates(
        jnp.abs(c.alpha[k] - leading[k] + alpha0) * size,
        (term, current, higher),
        (constant[k - 1] * lower, constant[k] * current, constant[k + 1] * higher),
    )


class StepChoice(NamedTuple):
    """The next order, the factor of the step, and whether the initial phase continues."""

    order: Count
    factor: Scalar
    rising: Flag


def choose_order_and_step(
    e: ErrorEstimates, order: Count, rising: Flag, max_order: int
) -> StepChoice:
    """Choose order and step after an accepted step.

    In the initial phase, while the order has never fallen, the order rises by one and the step
    doubles with every step.
    **Source:** Brenan-Campbell-Petzold 5.2.2 and the code DASSL.
    """
    k = order
    lower, current, higher = e.terms
    falls = lower <= current
    rising = rising & ~falls & (k < max_order)
    rises = ~falls & jnp.where(k > 1, higher < current, higher < 0.5 * current)
    falls = falls | ((k > 1) & (lower <= jnp.minimum(current, higher)))
    order = jnp.where(rising | (rises & ~falls), k + 1, jnp.where(falls, k - 1, k))
    order = jnp.clip(order, 1, max_order)
    estimate = jnp.where(order > k, e.estimates[2], e.estimates[1])
    estimate = jnp.where(order < k, e.estimates[0], estimate)
    factor = _target_factor(estimate, order)
    shorter = jnp.where(factor < 1.0, jnp.clip(factor, 0.5, 0.9), 1.0)
    factor = jnp.where(factor >= _GROWTH, jnp.minimum(factor, 2.0), shorter)
    return StepChoice(order, jnp.where(rising, 2.0, factor), rising)


def retry_factor(e: ErrorEstimates, order: Count) -> Scalar:
    """Return the factor of the step after a rejected step."""
    falls = e.terms[0] <= e.terms[1]
    estimate = jnp.where(falls, e.estimates[0], e.estimates[1])
    order = jnp.where(falls, order - 1, order)
    return jnp.clip(0.9 * _target_factor(estimate, order), 0.25, 0.9)


def _target_factor(estimate: Scalar, order: Count):
    """Return the factor of the step for an error below the tolerance by `_SAFETY`."""
    return (_SAFETY * estimate + 1e-4) ** (-1.0 / (order + 1).astype(estimate.dtype))
