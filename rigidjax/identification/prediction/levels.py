r"""Maximum-likelihood estimation of noise intensities, with the parameters held fixed.

Along a filtered motion the model is linear: other intensities have other gains, and their
innovations follow from a linear Kalman filter of the difference, without another integration.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ...native import call_as_kernel, why_too_large_matrices
from ...native.ops import inverse
from .kalman import FilteredRun, Gains, predict_covariance, update
from .process_noise import ProcessNoise

# Largest change of a logarithm in one step, and number of steps.
_LARGEST_STEP, _MAX_STEPS = 1.5, 40
# Change of the logarithms at which the estimate has converged.
_CONVERGED = 1e-4
# Least level, relative to the level whose effect over one interval is as large as the noise of the
# sensors: below it process noise has no effect.
_LEAST = 1e-6


class NoiseLevels(NamedTuple):
    """Intensities of the process noise (S,), and noise of the sensors (K,) in units of the weights
    of a problem."""

    process: Float[Array, " S"]
    sensors: Float[Array, " K"]


class LevelProblem(NamedTuple):
    """Data for the estimation of levels: the `filtered` runs with a leading axis, and `is_used`
    (B, T, C), which samples count."""

    filtered: FilteredRun
    is_used: Bool[Array, "B T C"]


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
    is_used: Bool[Array, "T C"],
    intensity: Float[Array, " m"],
    scale: Float[Array, " C"],
) -> tuple[Float[Array, "T C"], Float[Array, "T C"], Gains]:
    """Return the whitened innovations of other noise levels, the logarithms of their variances, and
    the gains, for residuals in units of the new noise.

    **Arguments:** `intensity` of each channel of the process noise; `scale`, noise of each channel
    of the readings, in units of the weights.
    """

    def step(carry, sample):
        mean, P = carry
        e, H, F, Q, K, used = sample
        e_new, H_new = (e + H @ mean) / scale, H / scale[:, None]
        done = update(P, H_new)
        nu = done.whitening @ e_new
        logs = done.log_variances + jnp.where(used, 2 * jnp.log(scale), 0.0)
        mean = F @ (mean + K @ e - done.correction @ e_new)
        P = predict_covariance(done.covariance, F, Q, intensity)
        return (mean, P), (nu, logs, Gains(done.correction, done.whitening))

    n = run.transition.shape[-1]
    zero = jnp.zeros(n, run.transition.dtype)
    samples = (
        run.innovations, run.readings, run.transition, run.effect, run.gains.correction, is_used
    )  # fmt: skip
    _, outputs = jax.lax.scan(step, (zero, jnp.zeros((n, n), zero.dtype)), samples)
    return outputs


def _innovations(*args: Any) -> tuple[Array, Array]:
    return _refilter(*args)[:2]


def _gains(*args: Any) -> Gains:
    return _refilter(*args)[2]


def _refilter_runs(
    function: Any,
    data: LevelProblem,
    noise: ProcessNoise,
    levels: NoiseLevels,
    sensor_of_channel: tuple[int, ...],
    backend: str,
) -> Any:
    """Call a function with the arguments of `_refilter` for every run."""
    scale = levels.sensors[np.array(sensor_of_channel, int)]
    intensity = noise.spread(levels.process)

    def of_run(run, used):
        return call_as_kernel(
            backend, why_too_large_matrices, function, run, used, intensity, scale
        )

    return jax.vmap(of_run)(data.filtered, data.is_used)


def gains_at_levels(
    data: LevelProblem,
    noise: ProcessNoise,
    levels: NoiseLevels,
    sensor_of_channel: tuple[int, ...],
    backend: str,
) -> Gains:
    """Return the gains of all runs at other noise levels, along the filtered motion.

    **Arguments:** `levels`, those of the sensors relative to the noise in `data`.
    """
    return _refilter_runs(_gains, data, noise, levels, sensor_of_channel, backend)


def estimate_levels(
    data: LevelProblem,
    noise: ProcessNoise,
    start: NoiseLevels,
    is_estimated: tuple[bool, ...],
    sensor_of_channel: tuple[int, ...],
    backend: str,
) -> NoiseLevels:
    """Maximise the likelihood over the noise levels by Fisher scoring of their logarithms.

    **Arguments:** `start`; `is_estimated`, for all intensities, then for all sensors.
    **Source:** Ljung, System Identification (1999), Section 7.4; for scoring, Seber and Wild,
    Nonlinear Regression (1989), Section 2.2.
    """
    free = np.flatnonzero(is_estimated)
    if free.size == 0:
        return start
    S = len(noise.sources)
    natural = natural_intensity(data.filtered, noise)
    # From zero, where the likelihood does not depend on the logarithm, no step leads away.
    process = jnp.where(start.process > 0, start.process, natural)
    all_logs = jnp.log(jnp.concatenate([process, start.sensors]))
    natural = jnp.concatenate([natural, jnp.ones_like(start.sensors)])
    least = jnp.log(_LEAST * natural)[free]

    def levels(x):
        values = jnp.exp(all_logs.at[free].set(x))
        return NoiseLevels(values[:S], values[S:])

    def residuals(x):
        return _refilter_runs(_innovations, data, noise, levels(x), sensor_of_channel, backend)

    def linearise(x):
        (nu, logs), (d_nu, d_logs) = _value_and_jacobian(residuals, x)
        d_nu, d_logs = (d.reshape(-1, len(free)) for d in (d_nu, d_logs))
        nu, logs = nu.ravel(), logs.ravel()
        gradient = nu @ d_nu + 0.5 * jnp.sum(d_logs, axis=0)
        # Derivatives of the innovations at constant variance.
        d_e = d_nu + 0.5 * nu[:, None] * d_logs
        information = d_e.T @ d_e + 0.5 * d_logs.T @ d_logs
        return 0.5 * jnp.sum(nu**2 + logs), gradient, information

    def advance(state):
        x, cost, gradient, information, damping, _, number = state
        floor = 1e-9 * jnp.max(jnp.diag(information)) + 1e-300
        A = information + jnp.diag(damping * jnp.diag(information) + floor)
        step = -inverse(A) @ gradient
        step = jnp.clip(step, -_LARGEST_STEP, _LARGEST_STEP)
        trial = jnp.maximum(x + step, least)
        new = linearise(trial)
        better = new[0] <= cost + 1e-12 * jnp.abs(cost)
        kept = jax.tree.map(lambda a, b: jnp.where(better, a, b), (trial, *new), state[:4])
        change = jnp.max(jnp.abs(trial - x))
        damping = jnp.where(better, 0.1 * damping, 10 * damping + 1e-3)
        return (*kept, damping, change, number + 1)

    def continues(state):
        return (state[5] > _CONVERGED) & (state[6] < _MAX_STEPS)

    x = jnp.maximum(all_logs[free], least)
    one = jnp.ones((), x.dtype)
    state = (x, *linearise(x), 1e-3 * one, jnp.inf * one, jnp.array(0))
    x = jax.lax.while_loop(continues, advance, state)[0]
    # A level at its limit has no effect.
    process = np.flatnonzero(free < S)
    result = jnp.exp(all_logs.at[free].set(x))
    at_limit = x[process] <= least[process] + 1e-6
    result = result.at[free[process]].set(jnp.where(at_limit, 0.0, result[free[process]]))
    return NoiseLevels(result[:S], result[S:])


def _value_and_jacobian(function: Any, x: Array) -> tuple[Any, Any]:
    """Return a function's values and their derivatives with a trailing axis, from one pass."""

    def push(direction):
        return jax.jvp(function, (x,), (direction,))

    return jax.vmap(push, out_axes=(None, -1))(jnp.eye(len(x), dtype=x.dtype))
