r"""Extended Kalman filter and smoother of one run.

Residuals $e$ are predicted minus measured values in units of the noise, so that the noise of every
channel has variance one and a masked channel has zero residual and derivative.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...annotations import Flag, Scalar
from ...formulations import Relative
from ...native import call_as_kernel, why_too_large_matrices
from ...results import RESULTS
from ...sensors import AbstractSensor
from ..experiment.linearised_runs import (
    LinearisedResiduals,
    linearise_residuals,
    make_observation,
    sensor_major_order,
)
from ..experiment.parameters import Experiment
from ..noise.kalman import predict_covariance, update
from .motion import SampledMotion, joint_coordinate_model


class Gains(eqx.Module):
    r"""Gains of a filter: `correction` $K$ (T, n, C) of the local coordinates, and `whitening`
    $S^{-1/2}$ (T, C, C) of the innovations, both for residuals in units of the noise."""

    correction: Float[Array, "T n C"]
    whitening: Float[Array, "T C C"]


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
        P_after = predict_covariance(done.covariance, F, jnp.tensordot(intensity**2, Q, 1))
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


class Predictor(eqx.Module):
    """One-step predictor of runs, which replaces their simulation in a `FitProblem`.

    `motion` between samples; `backend`, as in `simulate`. The gains of a run are in its `RunData`.
    """

    motion: SampledMotion
    backend: str = eqx.field(static=True)

    def linearise(
        self, parametrised: Any, directions: Float[Array, "E K"], run: Any
    ) -> LinearisedResiduals:
        r"""Return the whitened innovations $S_t^{-1/2} e_t$ of a run and their Jacobian.

        The gains are those of a filter with the parameters of an earlier iteration: they have no
        derivatives. `aux` is the result.

        **Arguments:** as of `linearise_run`; `run`, its `RunData`.
        """

        def observe(change):
            experiment = parametrised(change)
            readings, okay = self.predict(experiment, run)
            successful: Any = RESULTS.successful
            result = RESULTS.where(okay, successful, RESULTS.joints_open)
            return make_observation(experiment, readings), result

        sensors = parametrised.experiment.sensors
        linear = linearise_residuals(observe, directions, sensors, run.weights, run.values)
        order = sensor_major_order(run.weights)
        columns = jnp.concatenate([linear.residuals[:, None], linear.jacobian], axis=1)
        # Whiten all channels of a sample together, then restore the order of the residuals.
        by_sample = columns[np.argsort(order)].reshape(*run.gains.whitening.shape[:2], -1)
        white = (run.gains.whitening @ by_sample).reshape(columns.shape)[order]
        return LinearisedResiduals(white[:, 0], white[:, 1:], linear.extra_jacobian, linear.aux)

    def predict(self, experiment: Experiment, run: Any) -> tuple[tuple[Array, ...], Flag]:
        """Return the predicted readings of a run, (T, *value_shape) for each sensor, and whether
        the joints close at its start."""
        model, y0, okay = start_of_run(experiment, run.ts[0])
        samples = Samples.of_run(run.ts, run.values, run.weights)
        readings = call_as_kernel(
            self.backend, why_too_large_matrices,
            _predict, self.motion, model, experiment.sensors, y0, samples, run.gains.correction,
        )  # fmt: skip
        return readings, okay


def _predict(
    motion: SampledMotion,
    model: Relative,
    sensors: tuple[AbstractSensor, ...],
    y0: Array,
    samples: Samples,
    gains: Float[Array, "T n C"],
) -> tuple[Array, ...]:
    """Return the predicted readings of all sensors at every sample."""

    def step(y, sample):
        (t, following, values, w), K = sample
        readings = tuple(sensor.predict(model, t, y) for sensor in sensors)
        pairs = zip(sensors, readings, values, strict=True)
        e = apply_weights(w, jnp.concatenate([s.residual(r, v) for s, r, v in pairs]))
        y = motion.shift(model, t, y, -K @ e)
        return motion.move(model, y, t, following), readings

    return jax.lax.scan(step, y0, (samples, gains))[1]


def start_of_run(experiment: Experiment, t: Any) -> tuple[Any, Array, Flag]:
    """Return the model in joint coordinates, its unknowns at the first sample, and whether its
    joints close."""
    state, okay = experiment.start_at(t)
    model = joint_coordinate_model(experiment.model)
    return model, model.start(state.normalized(), t), okay
