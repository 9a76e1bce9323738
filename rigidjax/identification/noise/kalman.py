"""Kalman filters: their recursion, and whitening of dependent residuals by a noise model."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ...annotations import Matrix, Scalar
from .models import AbstractNoise


class Update(NamedTuple):
    """Measurement update: gain (n, C), whitening (C, C), covariance (n, n), and logarithms of the
    variances of the innovations (C,), each given the channels before it."""

    correction: Array
    whitening: Array
    covariance: Array
    log_variances: Array


def update(P: Matrix, H: Float[Array, "C n"], noise: Scalar | float = 1.0) -> Update:
    r"""Return the update of a covariance by readings with independent noise of this variance.

    Channels are processed one after the other, which needs no factorisation of a matrix.

    **Source:** Anderson and Moore, Optimal Filtering (1979), Section 6.4, sequential processing.
    """
    count = len(H)
    # After the channels so far, the state has changed by `X e` for the innovations `e`.
    X, rows, variances = jnp.zeros((P.shape[0], count), P.dtype), [], []
    unit = jnp.eye(count, dtype=P.dtype)
    for c in range(count):
        Ph = jnp.sum(P * H[c], axis=1)
        s = jnp.sum(H[c] * Ph) + noise
        row = unit[c] + jnp.sum(H[c][:, None] * X, axis=0)
        k = Ph / s
        X = X - k[:, None] * row
        # The symmetric form stays positive semidefinite.
        P = P - k[:, None] * Ph - Ph[:, None] * k + s * (k[:, None] * k)
        rows.append(row / jnp.sqrt(s))
        variances.append(s)
    return Update(-X, jnp.stack(rows), 0.5 * (P + P.T), jnp.log(jnp.stack(variances)))


def predict_covariance(P: Matrix, F: Matrix, Q: Matrix) -> Matrix:
    """Return the covariance after an interval with transition `F` that adds `Q`."""
    P = F @ P @ F.T + Q
    return 0.5 * (P + P.T)


class SampleGaps(eqx.Module):
    """Sampling pattern of one sensor, the input of its noise filter; batches have leading axes.

    **Attributes:** `gap` (T, C), since the previous sample of the channel, in s or in sampling
    intervals; `counts` (T, C), where there is a sample; `is_first` (T, C); `weight` (T, C), factor
    on the model's state in a weighted residual.
    """

    gap: Float[Array, "T C"]
    counts: Bool[Array, "T C"]
    is_first: Bool[Array, "T C"]
    weight: Float[Array, "T C"]


class Whitening(eqx.Module):
    r"""Linear filter that turns weighted residuals into their innovations, of unit variance.

    $\nu_t = s_t(e_t - w_t x_t)$ with $x_t = F_t z_{t-1}$ and $z_t = x_t + K_t(e_t - w_t x_t)$; in
    the difference $x_t$ stands for its first entry. The filter is linear in the residuals, so that
    rows of a Jacobian pass it like residuals.

    **Attributes:** `transition` F (T, C, n, n), `gain` K (T, C, n), `weight` w (T, C), `scale` s
    (T, C), zero for the first sample of a noise of unknown start; `counts` (T, C).
    **Source:** Särkkä, Svensson, *Bayesian Filtering and Smoothing* (2023), theorem 6.6.
    """

    transition: Float[Array, "T C n n"]
    gain: Float[Array, "T C n"]
    weight: Float[Array, "T C"]
    scale: Float[Array, "T C"]
    counts: Bool[Array, "T C"]

    def __call__(self, rows: Float[Array, "T C E"]) -> Float[Array, "T C E"]:
        """Return filtered rows; zero where there is no sample."""

        def update(state, inputs):
            step, row = inputs
            ahead = jnp.einsum("cij,cje->cie", step.transition, state)
            innovation = row - step.weight[:, None] * ahead[:, 0]
            new = ahead + step.gain[:, :, None] * innovation[:, None]
            counts = step.counts[:, None]
            return jnp.where(counts[..., None], new, state), jnp.where(
                counts, step.scale[:, None] * innovation, 0.0
            )

        state = jnp.zeros((*self.gain.shape[1:], rows.shape[-1]), rows.dtype)
        return jax.lax.scan(update, state, (self, rows))[1]


def make_whitening(model: AbstractNoise, gaps: SampleGaps) -> Whitening:
    """Return the filter of a noise model with given parameters, for the samples of one run.

    **Source:** as `Whitening`; an unknown first state: Durbin, Koopman, *Time Series Analysis by
    State Space Methods* (2012), section 5.2.
    """
    transitions = jax.vmap(jax.vmap(model.transition))(gaps.gap)
    process = jax.vmap(jax.vmap(model.process_covariance))(gaps.gap, transitions)
    white = jnp.ones_like(gaps.gap[0, 0]) if model.white_variance is None else model.white_variance
    first = model.first_covariance

    def advance(covariance, step):
        transition, process, gaps = step
        ahead = jnp.where(gaps.is_first, first, predict_covariance(covariance, transition, process))
        weight = gaps.weight
        done = update(ahead, jnp.zeros((1, len(first))).at[0, 0].set(weight), white)
        gain, scale, new = done.correction[:, 0], done.whitening[0, 0], done.covariance
        if model.has_unknown_start:
            # The first sample determines the state, up to its white noise.
            square = jnp.maximum(weight, jnp.finfo(weight.dtype).tiny)
            gain = jnp.where(gaps.is_first, jnp.ones_like(gain) / square, gain)
            new = jnp.where(gaps.is_first, white / square**2, new)
            scale = jnp.where(gaps.is_first, 0.0, scale)
        covariance = jnp.where(gaps.counts, new, covariance)
        return covariance, (jnp.where(gaps.counts, gain, 0.0), jnp.where(gaps.counts, scale, 0.0))

    def filter_channel(transitions, process, gaps):
        return jax.lax.scan(advance, first, (transitions, process, gaps))[1]

    over_channels = jax.vmap(filter_channel, in_axes=1, out_axes=1)
    gain, scale = over_channels(transitions, process, gaps)
    return Whitening(transitions, gain, gaps.weight, scale, gaps.counts)


def sample_gaps(
    name: str, ts: np.ndarray, weights: np.ndarray, counts_samples: bool, is_relative: bool
) -> SampleGaps:
    """Return the gaps of all runs of a sensor, with a leading run axis.

    **Arguments:** `name` of the sensor; `ts` (B, T), s; `weights` (B, T, C); `counts_samples`, see
    `AbstractNoise`; `is_relative`, whether the noise model describes weighted residuals instead of
    plain ones.
    **Errors:** `ValueError` for samples that are not equidistant, up to gaps, if they are counted.
    """
    counts = weights > 0
    times = np.where(counts, ts[..., None], np.nan)
    index = np.where(counts, np.arange(ts.shape[1])[:, None], -1)
    last = np.maximum.accumulate(index, axis=1)
    before = np.concatenate([np.full_like(last[:, :1], -1), last[:, :-1]], axis=1)
    is_first = counts & (before < 0)
    previous = np.take_along_axis(times, np.maximum(before, 0), axis=1)
    gap = np.where(counts & ~is_first, times - previous, 0.0)
    if counts_samples:
        gap = _in_intervals(name, gap)
    arrays = gap, counts, is_first, counts * (1.0 if is_relative else weights)
    return SampleGaps(*map(jnp.asarray, arrays))


def _in_intervals(name: str, gap: np.ndarray) -> np.ndarray:
    used = gap[gap > 0]
    interval = used.min(initial=1.0) if used.size == 0 else np.median(used[used < 1.5 * used.min()])
    steps = gap / interval
    worst = np.abs(steps - np.round(steps)).max()
    if worst > 0.1:
        raise ValueError(
            f"An autoregressive noise model needs equidistant samples, up to gaps; those of the "
            f'sensor {name!r} are {worst:.2g} intervals off. Resample them, or use noise="gp", '
            "which takes any times."
        )
    return np.round(steps)
