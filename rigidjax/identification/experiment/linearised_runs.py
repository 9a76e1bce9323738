"""Simulated readings of experiments, their residuals, and linearisation in the parameters.

Fits and their covariances, designs, segments of multiple shooting and sensitivities all get their
derivatives here.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Float

from ...adjoints.any_mode import AnyMode
from ...formulations import AbstractFormulation
from ...formulations.charts import Unknowns
from ...results import RESULTS
from ...sensors import AbstractSensor
from ...sensors.history import SHORTEST_SPAN, continue_motion, shift_in_time
from ...simulate.backend_policy import choose_call
from ...simulate.simulate import simulate
from ...state import State
from .parameters import Experiment, Parameter, replace_leaves
from .simulation import Simulation

T = TypeVar("T")


class ParametrisedExperiment(eqx.Module):
    """An experiment as a function of changes of the components of its parameters."""

    experiment: Experiment
    parameters: tuple[Parameter, ...]

    def __call__(self, change: Float[Array, " K"]) -> Experiment:
        """Return the experiment with all components changed, correct to first order in `change`."""
        leaves, begin = [], 0
        for p in self.parameters:
            leaf = p.leaf(self.experiment)
            end = begin + p.transform.estimates(leaf).shape[0]
            leaves.append(p.transform.perturbed(leaf, change[begin:end]))
            begin = end
        return replace_leaves(self.parameters, self.experiment, leaves)

    def values(self) -> Float[Array, " K"]:
        """Return all components of the parameters, in physical units."""
        values = [p.transform.estimates(p.leaf(self.experiment)) for p in self.parameters]
        return jnp.concatenate([jnp.zeros(0, self.experiment.state0.position.dtype), *values])

    def prior(self) -> tuple[Float[Array, " R"], Float[Array, "R K"]]:
        """Return residuals of the priors and their derivatives with respect to all components."""
        dtype = self.experiment.state0.position.dtype
        residuals, blocks = [jnp.zeros(0, dtype)], [jnp.zeros((0, 0), dtype)]
        for p in self.parameters:
            leaf = p.leaf(self.experiment)
            zero = jnp.zeros_like(p.transform.estimates(leaf))
            if p.prior is None:
                blocks.append(jnp.zeros((0, zero.size), dtype))
                continue

            def rows(change, prior=p.prior, transform=p.transform, leaf=leaf):
                return prior.rows(transform, transform.perturbed(leaf, change))

            residuals.append(rows(zero))
            blocks.append(jax.jacfwd(rows)(zero))
        return jnp.concatenate(residuals), block_diag(*blocks)


class _SensorReader(eqx.Module):
    """Function that returns the readings of all sensors, to be saved by the solver."""

    model: Any
    sensors: tuple[Any, ...]

    def __call__(self, t: Any, y: Any, args: Any = None) -> tuple[Any, ...]:
        return tuple(sensor.predict(self.model, t, y) for sensor in self.sensors)


class StateReader(eqx.Module):
    """Stand-in for a sensor that reads the physical state."""

    def on_time(self) -> tuple["StateReader", None]:
        return self, None

    def predict(self, model: AbstractFormulation, t: Float[Array, ""], y: Unknowns) -> State:
        return model.decode(t, y)


def simulate_readings(
    experiment: Experiment,
    ts: Float[Array, " T"],
    simulation: Simulation,
    span: tuple[Array, Array] | None = None,
    *,
    during_solve: bool | None = None,
) -> tuple[tuple[Any, ...], RESULTS]:
    """Simulate a run; return the readings of all sensors at `ts`, and the result of the run.

    **Arguments:** `ts`; with a `span`, samples at infinite times are not taken, and their readings
    have no meaning; `span`, start and end of the run, by default the first and the last time;
    `during_solve`, whether sensors are read while integrating, which saves memory traffic but does
    not detect states that are not finite. The default is to do so unless closed loops must be
    projected for every reading, as the elements of a batch would wait for each other in every step.
    """
    t0, t1 = (ts[0], ts[-1]) if span is None else span
    punctual = [sensor.on_time() for sensor in experiment.sensors]
    if any(clock is not None for _, clock in punctual):
        return _simulate_delayed_readings(experiment, ts, simulation, (t0, t1), punctual)
    if during_solve is None:
        during_solve = not experiment.model.multibody.has_loops
    state0, joints_close = experiment.start_at(t0)
    read = _SensorReader(experiment.model, experiment.sensors)
    saveat = diffrax.SaveAt(ts=ts, fn=read) if during_solve else diffrax.SaveAt(ts=ts)
    solution = _simulate(experiment, state0, (t0, t1), simulation, saveat)
    result = RESULTS.where(joints_close, solution.result, RESULTS.joints_open)
    # The times of the solution are infinite after an early end, so that `ts` is used instead.
    return solution.ys if during_solve else jax.vmap(read)(ts, solution.ys), result


def _simulate(
    experiment: Experiment,
    state0: State,
    span: tuple[Array, Array],
    simulation: Simulation,
    saveat: diffrax.SaveAt,
) -> Any:
    return simulate(
        experiment.model,
        state0,
        span[1],
        t0=span[0],
        saveat=saveat,
        throw=False,
        **simulation.forward(experiment.model).arguments,
    )


def _simulate_delayed_readings(
    experiment: Experiment,
    ts: Float[Array, " T"],
    simulation: Simulation,
    span: tuple[Array, Array],
    undelayed: Sequence[tuple[Any, Callable[[Any], Any] | None]],
) -> tuple[tuple[Any, ...], RESULTS]:
    """Return readings and result as `simulate_readings`, for sensors with a delay.

    The solver saves the times of the samples and the earlier times that delayed sensors read.
    Before its start the run is continued backwards. Derivatives with respect to a delay or a skew
    are those of the exact motion.

    **Arguments:** `undelayed`, for each sensor its `on_time()`.
    """
    model, (t0, t1) = experiment.model, span
    state0, joints_close = experiment.start_at(t0)
    # First the times of the samples, then the times that each delayed sensor reads.
    times = [ts, *(clock(ts) for _, clock in undelayed if clock is not None)]
    fixed = [jax.lax.stop_gradient(block) for block in times]
    saved = jnp.concatenate([jnp.maximum(block, t0) for block in fixed])
    order = jnp.argsort(saved)
    end = jnp.maximum(t1, jnp.max(jnp.where(jnp.isfinite(saved), saved, t1)))
    saveat = diffrax.SaveAt(ts=saved[order])
    solution = _simulate(experiment, state0, (t0, end), simulation, saveat)
    rows = jnp.argsort(order).reshape(len(times), -1)
    blocks = [jax.tree.map(lambda y, k=k: y[k], solution.ys) for k in rows]
    sensors = tuple(sensor for sensor, _ in undelayed)
    is_delayed = tuple(clock is not None for _, clock in undelayed)
    read = functools.partial(_read_rows, is_delayed)
    call = choose_call(AnyMode(backend=simulation.backend))
    readings = call(read, model, sensors, state0, t0, times, fixed, blocks)
    result = RESULTS.where(joints_close, solution.result, RESULTS.joints_open)
    return readings, result


def _read_rows(
    is_delayed: tuple[bool, ...],
    model: AbstractFormulation,
    sensors: tuple[AbstractSensor, ...],
    state0: State,
    t0: Float[Array, ""],
    times: Sequence[Float[Array, " T"]],
    fixed: Sequence[Float[Array, " T"]],
    blocks: Sequence[Unknowns],
) -> tuple[Array, ...]:
    """Return the readings of all sensors from saved unknowns.

    **Arguments:** `is_delayed`, per sensor; `times` of the samples, then the times that each
    delayed sensor reads; `fixed`, the same times without derivatives; `blocks`, the unknowns at
    these times, or at the start where a time precedes it.
    """
    # The motion before the start of the run, back to the earliest time.
    state0, earliest = state0.normalized(), jnp.min(jnp.stack([block[0] for block in fixed]))
    y0 = model.chart(state0, t0) if model.recharting else model.start(state0, t0)
    earlier = continue_motion(model, t0, y0, jnp.minimum(earliest - t0, -SHORTEST_SPAN))

    def read_delayed(sensor, t, fixed, y):
        saved_time = jnp.maximum(fixed, t0)
        y = shift_in_time(model, saved_time, y, t - fixed)
        y = jax.tree.map(lambda a, b: jnp.where(fixed < t0, b, a), y, earlier.unknowns(t))
        return sensor.predict(model, t, y)

    readings, delayed = [], iter(zip(times[1:], fixed[1:], blocks[1:], strict=True))
    for sensor, sensor_is_delayed in zip(sensors, is_delayed, strict=True):
        if sensor_is_delayed:
            readings.append(jax.vmap(functools.partial(read_delayed, sensor))(*next(delayed)))
        else:
            read = functools.partial(sensor.predict, model)
            readings.append(jax.vmap(read)(times[0], blocks[0]))
    return tuple(readings)


def weigh_residuals(
    residuals: Sequence[Float[Array, "T C"]], weights: Sequence[Float[Array, "T C"]]
) -> Float[Array, " N"]:
    """Return the residuals of all sensors times their weights, as one vector.

    An element with zero weight is zero, whatever its residual.
    """
    return jnp.concatenate(
        [
            jnp.where(w > 0, w * jnp.where(w > 0, r, 0.0), 0.0).reshape(-1)
            for r, w in zip(residuals, weights, strict=True)
        ]
    )


def sensor_residuals(
    sensor: AbstractSensor, readings: Array, measured: Array
) -> Float[Array, "T C"]:
    """Return the residuals of one sensor, sample by sample."""
    return jax.vmap(sensor.residual)(readings, measured)


def sensor_major_order(weights: Any) -> np.ndarray:
    """Return the position of each residual of a run, sensor by sensor, among all channels sample
    by sample, (N,)."""
    counts = [w.shape[-1] for w in weights]
    indices = np.arange(weights[0].shape[-2] * sum(counts)).reshape(-1, sum(counts))
    return np.concatenate([x.ravel() for x in np.split(indices, np.cumsum(counts)[:-1], axis=1)])


class Observation(NamedTuple):
    """Quantities that are linearised: arrays of `sensors`, their `readings`, and `extra` ones."""

    sensors: Any
    readings: tuple[Array, ...]
    extra: Any = ()


class LinearisedResiduals(NamedTuple):
    """Weighted residuals (N,) and their Jacobian (N, E).

    `extra_jacobian` has derivatives of the extra quantities with a trailing axis E, and `aux` holds
    quantities that are not differentiated.
    """

    residuals: Float[Array, " N"]
    jacobian: Float[Array, "N E"]
    extra_jacobian: Any
    aux: Any


def make_observation(
    experiment: Experiment, readings: tuple[Any, ...], extra: Any = ()
) -> Observation:
    """Collect the readings of an experiment, and extra quantities, for linearisation."""
    return Observation(eqx.filter(experiment.sensors, eqx.is_inexact_array), readings, extra)


def linearise_residuals(
    observe: Callable[[Array], tuple[Observation, Any]],
    directions: Float[Array, "E K"],
    sensors: tuple[AbstractSensor, ...],
    weights: Sequence[Float[Array, "T C"]],
    values: Sequence[Array] | None = None,
    residuals: Callable[[AbstractSensor, Array, Array], Array] = sensor_residuals,
) -> LinearisedResiduals:
    """Return weighted residuals and their directional derivatives, all from one solve.

    **Arguments:** `observe`, a function of a change (K,) that returns quantities to be
    differentiated and auxiliary ones, linearised at zero; `directions`; `sensors`; `weights`;
    `values`, the measured values, or `None` to compare with the predictions themselves (residuals
    are then zero, their derivatives are not); `residuals`, a function that returns the residuals of
    one sensor.
    """
    fixed = eqx.filter(sensors, eqx.is_inexact_array, inverse=True)

    def push(direction):
        observation, tangent, aux = jax.jvp(
            observe, (jnp.zeros_like(direction),), (direction,), has_aux=True
        )
        measured = observation.readings if values is None else values

        def compare(arrays, readings):
            triples = zip(eqx.combine(arrays, fixed), readings, measured, strict=True)
            return weigh_residuals([residuals(*triple) for triple in triples], weights)

        r, dr = jax.jvp(
            compare,
            (observation.sensors, observation.readings),
            (tangent.sensors, tangent.readings),
        )
        return r, dr, tangent.extra, aux

    return LinearisedResiduals(*jax.vmap(push, out_axes=(None, -1, -1, None))(directions))


def linearise_run(
    parametrised: ParametrisedExperiment,
    directions: Float[Array, "E K"],
    ts: Float[Array, " T"],
    simulation: Simulation,
    weights: Sequence[Float[Array, "T C"]],
    values: Sequence[Array] | None = None,
    span: tuple[Array, Array] | None = None,
    *,
    during_solve: bool | None = None,
) -> LinearisedResiduals:
    """Linearise a run in the components of its parameters; `aux` is its result.

    **Arguments:** see `simulate_readings` and `linearise_residuals`.
    """

    def observe(change):
        experiment = parametrised(change)
        readings, result = simulate_readings(
            experiment, ts, simulation, span, during_solve=during_solve
        )
        return make_observation(experiment, readings), result

    return linearise_residuals(
        observe, directions, parametrised.experiment.sensors, weights, values
    )


def separate_runs(rows: Any, num_shared: int, xp: Any = jnp) -> Any:
    """Return the rows of all runs, (B, N, S + P), as one matrix with separate columns per run.

    **Arguments:** `num_shared`, the number S of shared columns; `xp`, `jax.numpy` or `numpy`.
    """
    if len(rows) == 1:
        return rows[0]
    per_run = rows[..., num_shared:]
    blocks = xp.einsum("bc,bnp->bncp", xp.eye(len(per_run), dtype=per_run.dtype), per_run)
    blocks = blocks.reshape(*per_run.shape[:2], -1)
    rows = xp.concatenate([rows[..., :num_shared], blocks], axis=-1)
    return rows.reshape(rows.shape[0] * rows.shape[1], -1)
