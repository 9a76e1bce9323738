"""Arguments of prediction-error fits, and the problems made from them."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

from ...analysis.linear_arguments import IndependentRates
from ...initial.local_coordinates import independent_rates, num_rates
from ...sensors import Accelerometer, Delayed, JointTorque, ReactionForce, ReactionMoment
from ...simulate.arguments import check_solver, choose_projection
from ..data.measurements import Runs
from ..fit.least_squares import Search
from ..fit.losses import Squares
from ..fit.problem import FitProblem
from ..noise.differences import difference_noise
from .motion import SampledMotion
from .predictor import Predictor
from .process_noise import ProcessNoise, make_process_noise
from .rounds import PredictionProblem

# First guess of the noise of a sensor whose successive samples show none, relative to the spread of
# the samples.
_SMALL = 1e-2

_READS_FORCES = (Accelerometer, JointTorque, ReactionForce, ReactionMoment)


def check_prediction_options(
    method: Any,
    process_noise: Mapping[str, Any] | None,
    starts: int = 1,
    segments: int = 1,
) -> Mapping[str, Any] | None:
    """Return the process noise of a prediction-error fit, `None` for other methods.

    **Errors:** `ValueError` for options that do not belong to the method.
    """
    if method != "prediction-error":
        if process_noise is not None:
            raise ValueError(
                '`identify(process_noise=...)` needs `method="prediction-error"`; got '
                f"`method={method!r}`."
            )
        return None
    if process_noise is None:
        raise ValueError(
            '`identify(method="prediction-error")` needs `process_noise=`, standard deviations by '
            "the names of joints, bodies, signals and inputs, such as {'hinge': 0.01}, or "
            "{'hinge': None} to estimate them."
        )
    if starts > 1 or segments > 1:
        raise ValueError(
            '`identify(method="prediction-error")` corrects its state by every sample, so that it '
            f"needs neither `starts` nor `segments`; got {starts} and {segments}."
        )
    return process_noise


def check_white_noise(process_noise: Mapping[str, Any] | None, models: Sequence[Any]) -> None:
    """Raise `ValueError` for a prediction-error fit with dependent noise of the sensors."""
    if process_noise is not None and any(model is not None for model in models):
        raise ValueError(
            '`identify(method="prediction-error")` takes white noise of the sensors, '
            '`noise="white"`; a slow disturbance of the motion is process noise.'
        )


def make_prediction_problem(
    problem: FitProblem, runs: Runs, search: Search, process_noise: Mapping[str, Any]
) -> PredictionProblem:
    """Return the problem of a prediction-error fit.

    **Errors:** `ValueError` and `TypeError` for sensors, solvers and options that the filter does
    not support, and for process noise that does not fit the model.
    """
    if not isinstance(search.loss, Squares):
        raise ValueError(
            '`identify(method="prediction-error")` takes `loss=None`: the filter corrects its '
            "state by every sample, outliers too. Mask them by `Measurements(mask=...)`."
        )
    for sensor in runs.sensors:
        _check_sensor(sensor)
    noise = make_process_noise(problem.model, process_noise, runs.inputs[0])
    motion = _make_motion(problem, runs, noise)
    problem = dataclasses.replace(problem, predictor=Predictor(motion, problem.simulation.backend))
    is_estimated = (*noise.is_estimated, *(not known for known in runs.has_noise))
    sensor_noise = jnp.asarray(_rough_sensor_noise(runs), runs.ts.dtype)
    return PredictionProblem(problem, noise, search.with_full_horizon(), sensor_noise, is_estimated)


def _check_sensor(sensor: Any) -> None:
    """Raise `ValueError` for a sensor that the filter does not support."""
    parts = jax.tree.leaves(sensor, is_leaf=lambda x: isinstance(x, (*_READS_FORCES, Delayed)))
    if any(isinstance(part, Delayed) for part in (sensor, *parts)):
        raise ValueError(
            f'`identify(method="prediction-error")` has no sensors with a delay; got '
            f"{sensor.name!r}. Shift its samples in time."
        )
    if any(isinstance(part, _READS_FORCES) for part in (sensor, *parts)):
        raise ValueError(
            f'`identify(method="prediction-error")` takes sensors of positions and velocities; '
            f"{sensor.name!r} reads accelerations or forces, of which white noise has no finite "
            "value. Leave it out."
        )


def _rough_sensor_noise(runs: Runs) -> np.ndarray:
    """Return a rough standard deviation of the noise of each sensor in units of its weights: one if
    it is given, else that which successive samples show."""
    noise, ts = [], np.asarray(runs.ts)
    for values, weights, known in zip(runs.values, runs.weights, runs.has_noise, strict=True):
        samples, w = np.asarray(values), np.asarray(weights)
        rough = difference_noise(ts, samples, w)
        if not np.isfinite(rough):
            spread = np.std(samples.reshape(*w.shape[:2], -1)[w.max(axis=-1) > 0])
            rough = _SMALL * spread if spread > 0 else 1.0
        noise.append(1.0 if known else float(rough))
    return np.asarray(noise)


def _make_motion(problem: FitProblem, runs: Runs, noise: ProcessNoise) -> SampledMotion:
    model, simulation = problem.model, problem.simulation
    solver = check_solver(simulation.solver)
    tableau = getattr(solver, "tableau", None)
    if not (
        isinstance(solver, diffrax.AbstractERK) and isinstance(tableau, diffrax.ButcherTableau)
    ):
        raise ValueError(
            '`identify(method="prediction-error")` integrates by explicit Runge-Kutta methods such '
            f"as `diffrax.Dopri5()`; got `solver={type(solver).__name__}()`."
        )
    state = jax.tree.map(lambda x: x[0], problem.runs.state0)
    independent = independent_rates(model, state)
    local = IndependentRates(independent, independent)
    dtype = runs.ts.dtype
    spans = np.diff(np.asarray(runs.ts), axis=1)
    step = simulation.dt if simulation.dt is not None else np.median(spans[spans > 0])
    return SampledMotion(
        solver,
        choose_projection(simulation.projection, solver, "identify"),
        jnp.asarray(step, dtype),
        local.coordinates(num_rates(model), dtype),
        noise.channels,
        2 * len(independent) + model.multibody.num_states,
    )
