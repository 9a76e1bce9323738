r"""Innovations of a predictor with fixed gains, as residuals of a least-squares problem."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ...formulations import Relative
from ...native import call_as_kernel, why_too_large_matrices
from ...results import RESULTS
from ...sensors import AbstractSensor
from ..linearised_runs import LinearisedResiduals, linearise_residuals, make_observation
from ..parameters import Experiment
from .kalman import Samples, apply_weights
from .motion import SampledMotion, joint_coordinate_model


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
        # Sample by sample, all channels together, then back.
        by_sample = columns[np.argsort(order)].reshape(*run.gains.whitening.shape[:2], -1)
        white = (run.gains.whitening @ by_sample).reshape(columns.shape)[order]
        return LinearisedResiduals(white[:, 0], white[:, 1:], linear.extra_jacobian, linear.aux)

    def predict(
        self, experiment: Experiment, run: Any
    ) -> tuple[tuple[Array, ...], Bool[Array, ""]]:
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


def start_of_run(experiment: Experiment, t: Any) -> tuple[Any, Array, Bool[Array, ""]]:
    """Return the model in joint coordinates, its unknowns at the first sample, and whether its
    joints close."""
    state, okay = experiment.start_at(t)
    model = joint_coordinate_model(experiment.model)
    return model, model.start(state.normalized(), t), okay


def sensor_major_order(weights: Any) -> np.ndarray:
    """Return the position of each residual of a run, sensor by sensor, among all channels sample
    by sample, (N,)."""
    counts = [w.shape[-1] for w in weights]
    length, begin, parts = weights[0].shape[-2], 0, []
    total = sum(counts)
    for count in counts:
        columns = begin + np.arange(count)
        parts.append((total * np.arange(length)[:, None] + columns).ravel())
        begin += count
    return np.concatenate(parts)
