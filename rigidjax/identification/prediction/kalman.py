r"""Extended Kalman filter and smoother of one run.

Residuals $e$ are predicted minus measured values in units of the noise, so that the noise of every
channel has variance one and a masked channel has zero residual and derivative. Channels are
processed one after the other, which needs no factorisation of a matrix.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import Scalar
from ...formulations import Relative
from .motion import SampledMotion


class Gains(eqx.Module):
    r"""Gains of a filter: `correction` $K$ (T, n, C) of the local coordinates, and `whitening`
    $S^{-1/2}$ (T, C, C) of the innovations, both for residuals in units of the noise."""

    correction: Float[Array, "T n C"]
    whitening: Float[Array, "T C C"]


class Update(NamedTuple):
    """Measurement update: gain (n, C), whitening (C, C), covariance (n, n), and logarithms of the
    variances of the innovations (C,), each given the channels before it."""

    correction: Array
    whitening: Array
    covariance: Array
    log_variances: Array


class FilteredRun(eqx.Module):
    r"""Filtered motion of a run, linearised along it.

    **Attributes:** `unknowns` (T, N) predicted, before the update; `covariance` (T, n, n) of their
    local coordinates; `innovations` (T, C), predicted minus measured, in units of the noise that
    is given; `readings` $H$ (T, C, n) likewise; `transition` $F$ (T, n, n) and `effect` $Q$
    (T, m, n, n), for unit intensities, of the interval after each sample;
    `gains`; `log_likelihood`, without the constant.
    """

    unknowns: Array
    covariance: Array
    innovations: Array
    readings: Array
    transition: Array
    effect: Array
    gains: Gains
    log_likelihood: Scalar


def update(P: Float[Array, "n n"], H: Float[Array, "C n"]) -> Update:
    r"""Return the update of a covariance by readings with noise of unit variance.

    **Source:** Anderson and Moore, Optimal Filtering (1979), Section 6.4, sequential processing.
    """
    count = len(H)
    # The change of the state is `X e` after the channels so far.
    X, rows, variances = jnp.zeros((P.shape[0], count), P.dtype), [], []
    unit = jnp.eye(count, dtype=P.dtype)
    for c in range(count):
        Ph = P @ H[c]
        s = H[c] @ Ph + 1
        row = unit[c] + H[c] @ X
        k = Ph / s
        X = X - k[:, None] * row
        # The symmetric form stays positive semidefinite.
        P = P - k[:, None] * Ph - Ph[:, None] * k + s * (k[:, None] * k)
        rows.append(row / jnp.sqrt(s))
        variances.append(s)
    return Update(-X, jnp.stack(rows), 0.5 * (P + P.T), jnp.log(jnp.stack(variances)))


def predict_covariance(
    P: Float[Array, "n n"],
    F: Float[Array, "n n"],
    Q: Float[Array, "m n n"],
    intensity: Float[Array, " m"],
) -> Float[Array, "n n"]:
    """Return the covariance after an interval; `intensity` of each channel."""
    P = F @ P @ F.T + jnp.tensordot(intensity**2, Q, 1)
    return 0.5 * (P + P.T)


class Samples(NamedTuple):
    """Samples of a run: times, times of the next samples (T,), values, and weights (T, C)."""

    ts: Array
    following: Array
    values: tuple[Array, ...]
    weights: Array

    @classmethod
    def of_run(cls, ts: Array, values: tuple[Array, ...], weights: tuple[Array, ...]) -> "Samples":
        """Return the samples with the weights of all sensors side by side."""
        following = jnp.concatenate([ts[1:], ts[-1:]])
        return cls(ts, following, values, jnp.concatenate(weights, axis=1))


def apply_weights(weights: Array, x: Array) -> Array:
    """Return `x` times the weights, zero where a weight is zero whatever `x` is."""
    return jnp.where(weights > 0, weights * jnp.where(weights > 0, x, 0.0), 0.0)


def filter_run(
    motion: SampledMotion,
    model: Relative,
    sensors: Any,
    y0: Array,
    samples: Samples,
    intensity: Float[Array, " m"],
) -> FilteredRun:
    """Filter a run from a known start `y0`.

    **Source:** Jazwinski, Stochastic Processes and Filtering Theory (1970), Section 8.3.
    """

    def step(carry, sample):
        y, P = carry
        t, following, values, w = sample
        e, H = motion.linearise_readings(model, sensors, t, y, values)
        e, H = apply_weights(w, e), apply_weights(w[:, None], H)
        done = update(P, H)
        nu = done.whitening @ e
        log_likelihood = -0.5 * (nu @ nu + jnp.sum(done.log_variances))
        corrected = motion.shift(model, t, y, -done.correction @ e)
        after, F, Q = motion.linearise_interval(model, corrected, t, following)
        P_after = predict_covariance(done.covariance, F, Q, intensity)
        gains = Gains(done.correction, done.whitening)
        return (after, P_after), FilteredRun(y, P, e, H, F, Q, gains, log_likelihood)

    P0 = jnp.zeros((motion.size, motion.size), y0.dtype)
    _, run = jax.lax.scan(step, (y0, P0), samples)
    return eqx.tree_at(lambda r: r.log_likelihood, run, jnp.sum(run.log_likelihood))


def smooth_run(run: FilteredRun) -> tuple[Float[Array, "T n"], Float[Array, "T n n"]]:
    r"""Return changes of the predicted states to the smoothed ones, and their covariances.

    The recursion runs backwards with $\lambda_t = H^T S^{-1} e + (1 - K H)^T F^T \lambda_{t+1}$ and
    its covariance; the smoothed state is the predicted one changed by $-P \lambda$. It equals the
    smoother of Rauch, Tung and Striebel and needs no inverse of a covariance, which is singular for
    a known start.

    **Source:** Bierman, Automatica 9 (1973) 503, modified Bryson-Frazier recursion.
    """

    def step(carry, sample):
        lam, Lam = carry
        P, e, H, F, W, K = sample
        n = len(P)
        lam, Lam = F.T @ lam, F.T @ Lam @ F
        A = jnp.eye(n, dtype=P.dtype) - K @ H
        WH = W @ H
        lam = WH.T @ (W @ e) + A.T @ lam
        Lam = WH.T @ WH + A.T @ Lam @ A
        return (lam, Lam), (-P @ lam, P - P @ Lam @ P)

    n = run.covariance.shape[-1]
    zero = jnp.zeros(n, run.covariance.dtype)
    samples = (
        run.covariance, run.innovations, run.readings, run.transition,
        run.gains.whitening, run.gains.correction,
    )  # fmt: skip
    _, smoothed = jax.lax.scan(step, (zero, jnp.zeros((n, n), zero.dtype)), samples, reverse=True)
    return smoothed
