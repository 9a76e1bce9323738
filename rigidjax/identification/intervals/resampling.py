"""Resampled residuals and the readings that have them."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...rotations import so3
from ...sensors import AbstractSensor
from ..noise.whitening import Whitening
from ..statistics.whiteness import successive_correlation

# Smallest and largest correlation of successive residuals that a block length is computed for.
_CORRELATED, _EXTREME = 1e-3, 0.99


def block_length(weights: Float[np.ndarray, "B T C"], r: Float[np.ndarray, "B T C"]) -> int:
    """Return the number of samples of a block, from the correlation of successive residuals.

    It is at most a quarter of the longest run.

    **Source:** Carlstein, Ann. Statist. 14 (1986) 1171, for an autoregressive process of order one.
    """
    used = (weights > 0).any(axis=-1)
    plain = [np.where(w > 0, x, np.nan) for w, x in zip(weights, r, strict=True)]
    correlation = float(np.clip(abs(successive_correlation(plain)), _CORRELATED, _EXTREME))
    factor = (np.sqrt(6) * correlation / (1 - correlation**2)) ** (2 / 3)
    length = factor * np.count_nonzero(used) ** (1 / 3)
    longest = int(used.sum(axis=1).max())
    return int(np.clip(np.ceil(length), 1, max(longest // 4, 1)))


def draw_residuals(
    rng: np.random.Generator,
    count: int,
    weights: Float[np.ndarray, "B T C"],
    r: Float[np.ndarray, "B T C"],
    length: int,
) -> Float[np.ndarray, "N B T C"]:
    """Return resampled weighted residuals of one sensor, zero where there is no sample.

    Blocks of `length` successive samples are drawn from a run, chosen in proportion to its number
    of samples, and continue at its start. Channels with the same gaps are drawn together.
    """
    used = weights > 0
    total = np.zeros((count, *r.shape))
    mean = np.sum(np.where(used, r, 0.0), axis=(0, 1)) / np.maximum(used.sum(axis=(0, 1)), 1)
    centred = r - mean
    patterns, group = np.unique(used.reshape(-1, used.shape[-1]), axis=1, return_inverse=True)
    for k in range(patterns.shape[1]):
        channels = np.flatnonzero(group.reshape(-1) == k)
        counts = used[..., channels[0]]
        rows = [run[at][:, channels] for run, at in zip(centred, counts, strict=True)]
        sizes = np.array([len(x) for x in rows])
        starts = np.concatenate([[0], np.cumsum(sizes)])
        pool = np.concatenate(rows)
        for b, size in enumerate(sizes):
            num_blocks = -(-size // length) if size else 0
            source = rng.choice(len(sizes), (count, num_blocks), p=sizes / sizes.sum())
            begin = rng.integers(sizes[source])
            within = (begin[..., None] + np.arange(length)) % sizes[source][..., None]
            index = (starts[source][..., None] + within).reshape(count, -1)[:, :size]
            at = np.flatnonzero(counts[b])
            total[:, b, at[:, None], channels] = pool[index]
    return total


@jax.jit
def filter_back(
    whitening: Whitening, innovations: Float[Array, "N B T C"]
) -> Float[Array, "N B T C"]:
    """Return weighted residuals with these innovations, the inverse of a `Whitening`.

    Noise of unknown start begins at zero.

    **Arguments:** `whitening` of the runs (B, T, C); `innovations` of N data sets.
    """

    def update(state, inputs):
        step, innovation = inputs
        ahead = jnp.einsum("cij,cj->ci", step.transition, state)
        scale = jnp.where(step.scale > 0, step.scale, 1.0)
        change = jnp.where(step.scale > 0, innovation / scale, 0.0)
        residual = step.weight * ahead[:, 0] + change
        new = ahead + step.gain * change[:, None]
        return jnp.where(step.counts[:, None], new, state), jnp.where(step.counts, residual, 0.0)

    def filter_run(whitening, innovations):
        state = jnp.zeros(whitening.gain.shape[1:], innovations.dtype)
        return jax.lax.scan(update, state, (whitening, innovations))[1]

    return jax.vmap(jax.vmap(filter_run), in_axes=(None, 0))(whitening, innovations)


def readings_with_residuals(
    sensor: AbstractSensor,
    values: Float[np.ndarray, "B T *s"],
    residuals: Float[np.ndarray, "B T C"],
    drawn: Float[np.ndarray, "N B T C"],
) -> Float[np.ndarray, "N B T *s"]:
    """Return readings that have the residuals `drawn` from the predictions of a fit.

    **Arguments:** `values`, readings, whose residuals are `residuals`, in the unit of the sensor.
    **Errors:** `ValueError` for a sensor whose reading is neither a vector nor an orientation.
    """
    if int(np.prod(sensor.value_shape)) == len(sensor.channels):
        change = residuals - drawn
        return values + change.reshape(*change.shape[:-1], *values.shape[2:])
    if sensor.value_shape == (4,) and len(sensor.channels) == 3:
        predicted = _rotate(jnp.asarray(values), jnp.asarray(residuals))
        repeated = jnp.broadcast_to(predicted, (len(drawn), *predicted.shape))
        return np.asarray(_rotate(repeated, -jnp.asarray(drawn)))
    raise ValueError(
        f"`bootstrap` cannot add noise to readings of the {sensor.name}, of shape "
        f'{sensor.value_shape}; use kind="runs".'
    )


@jax.jit
def _rotate(p: Float[Array, "*b 4"], psi: Float[Array, "*b 3"]) -> Float[Array, "*b 4"]:
    """Return quaternions after rotations about body axes."""
    rotated = jax.vmap(lambda p, psi: so3.multiply(p, so3.exp_quaternion(psi)))
    return rotated(p.reshape(-1, 4), psi.reshape(-1, 3)).reshape(p.shape)
