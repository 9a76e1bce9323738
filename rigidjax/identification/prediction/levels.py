r"""Noise intensities by restricted maximum likelihood.

Along a filtered motion the model is linear: other intensities have other gains, and their
innovations follow from a linear Kalman filter of the difference, without another integration.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ...native import call_as_kernel, why_too_large_matrices
from ..noise.likelihood import AbstractLinearisedFit
from .kalman import FilteredRun, Gains, predict_covariance, update
from .process_noise import ProcessNoise

# Least level, relative to the level whose effect over one interval is as large as the noise of the
# sensors: below it process noise has no effect.
_LEAST = 1e-6


class NoiseLevels(NamedTuple):
    """Intensities of the process noise (S,), and noise of the sensors (K,) in units of the weights
    of a problem."""

    process: Float[Array, " S"]
    sensors: Float[Array, " K"]


def natural_intensity(filtered: FilteredRun, noise: ProcessNoise) -> Float[Array, " S"]:
    """Return the intensity of each source whose effect over one interval is, in the root mean
    square over samples and channels, as large as the noise of the sensors."""
    # Effect of the interval before each sample.
    H, Q = filtered.readings[:, 1:], filtered.effect[:, :-1]
    per_channel = jnp.einsum("btci,btmij,btcj->m", H, Q, H)
    sources = np.array([channel.source for channel in noise.channels], int)
    total = jax.ops.segment_sum(per_channel, sources, len(noise.sources))
    count = H.shape[0] * H.shape[1] * H.shape[2]
    return 1 / jnp.sqrt(jnp.maximum(total / count, 1e-300))


def _refilter(
    run: FilteredRun,
    columns: Float[Array, "T C F"],
    is_used: Bool[Array, "T C"],
    intensity: Float[Array, " m"],
    scale: Float[Array, " C"],
) -> tuple[Float[Array, "T C F"], Float[Array, "T C"], Gains]:
    """Return whitened columns at other noise levels, the logarithms of variances, and the gains.

    The gains are for residuals in units of the new noise.

    **Arguments:** `columns`, innovations and derivatives of them at the gains of the run;
    `intensity` of each channel of the process noise; `scale`, noise of each channel of the
    readings, in units of the weights.
    """

    def step(carry, sample):
        mean, P = carry
        e, H, F, Q, K, used = sample
        e_new, H_new = (e + H @ mean) / scale[:, None], H / scale[:, None]
        done = update(P, H_new)
        nu = done.whitening @ e_new
        logs = done.log_variances + jnp.where(used, 2 * jnp.log(scale), 0.0)
        mean = F @ (mean + K @ e - done.correction @ e_new)
        P = predict_covariance(done.covariance, F, Q, intensity)
        return (mean, P), (nu, logs, Gains(done.correction, done.whitening))

    n = run.transition.shape[-1]
    dtype = run.transition.dtype
    start = jnp.zeros((n, columns.shape[-1]), dtype), jnp.zeros((n, n), dtype)
    samples = (
        columns, run.readings, run.transition, run.effect, run.gains.correction, is_used
    )  # fmt: skip
    _, outputs = jax.lax.scan(step, start, samples)
    return outputs


def _whiten_columns(*args: Any) -> tuple[Array, Array]:
    return _refilter(*args)[:2]


def _gains(*args: Any) -> Gains:
    return _refilter(*args)[2]


class LevelProblem(AbstractLinearisedFit):
    """Filtered runs, linearised in the parameters, as a function of the noise levels.

    The coordinates are logarithms of the levels that are estimated: intensities, then the noise of
    sensors relative to that in `filtered`.

    **Attributes:** `filtered` runs with a leading axis; `columns` (B, T, C, E + 1), derivatives of
    the plain innovations by the coordinates of the parameters, and the innovations; `is_used`
    (B, T, C), which samples count; `noise`; `levels`, given and first ones; `least` noise of the
    sensors (K,); `free`, indices of the levels that are estimated; see `AbstractLinearisedFit`.
    """

    filtered: FilteredRun
    columns: Float[Array, "B T C F"]
    is_used: Bool[Array, "B T C"]
    noise: ProcessNoise
    levels: NoiseLevels
    least: Float[Array, " K"]
    prior: tuple[Float[Array, " R"], Float[Array, "R U"]]
    num_shared: int = eqx.field(static=True)
    free: tuple[int, ...] = eqx.field(static=True)
    sensor_of_channel: tuple[int, ...] = eqx.field(static=True)
    backend: str = eqx.field(static=True)

    @property
    def start(self) -> Float[Array, " d"]:
        """The coordinates of `levels`; of natural ones where process noise is zero."""
        natural = natural_intensity(self.filtered, self.noise)
        process = jnp.where(self.levels.process > 0, self.levels.process, natural)
        # From zero, where the likelihood does not depend on the logarithm, no step leads away.
        return jnp.log(jnp.concatenate([process, self.levels.sensors])[np.array(self.free, int)])

    def levels_at(self, coordinates: Float[Array, " d"]) -> NoiseLevels:
        """Return the noise levels, within their limits; process noise without effect is zero."""
        count = len(self.noise.sources)
        values = jnp.concatenate(self.levels)
        values = values.at[np.array(self.free, int)].set(jnp.exp(coordinates))
        least = _LEAST * natural_intensity(self.filtered, self.noise)
        process = jnp.where(values[:count] > least, values[:count], 0.0)
        return NoiseLevels(process, jnp.maximum(values[count:], self.least))

    def whiten_at(
        self, coordinates: Float[Array, " d"]
    ) -> tuple[Float[Array, "B N F"], Float[Array, ""]]:
        rows, logs = self._refilter_runs(_whiten_columns, self.levels_at(coordinates))
        return rows.reshape(rows.shape[0], -1, rows.shape[-1]), jnp.sum(logs)

    def gains_at(self, levels: NoiseLevels) -> Gains:
        """Return the gains of all runs at other noise levels, along the filtered motion."""
        return self._refilter_runs(_gains, levels)

    def _refilter_runs(self, function: Any, levels: NoiseLevels) -> Any:
        """Call a function with the arguments of `_refilter` for every run."""
        scale = levels.sensors[np.array(self.sensor_of_channel, int)]
        intensity = self.noise.spread(levels.process)

        def of_run(run, columns, used):
            return call_as_kernel(
                self.backend, why_too_large_matrices, function, run, columns, used, intensity, scale
            )

        return jax.vmap(of_run)(self.filtered, self.columns, self.is_used)
