"""Experiments simulated, read, compared with data, and linearised by their parameters.

Whoever needs derivatives of runs gets them here: fits and their covariances, designs, the segments
of multiple shooting, sensitivities.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..native import call_by_kernel
from ..results import RESULTS
from ..sensors import AbstractSensor
from ..sensors.history import SHORTEST_SPAN, continue_motion, shift_in_time
from ..simulate.simulate import simulate
from .parameters import Experiment, Parameter, with_leaves
from .prior_rows import prior_rows
from .simulation import Simulation


class Varied(eqx.Module):
    """An experiment as a function of changes of the components of its parameters."""

    experiment: Experiment
    parameters: tuple[Parameter, ...]

    def __call__(self, change: Float[Array, " K"]) -> Experiment:
        """The experiment with these changes of all components, to first order in them."""
        leaves, begin = [], 0
        for p in self.parameters:
            leaf = p.leaf(self.experiment)
            end = begin + p.transform.estimates(leaf).shape[0]
            leaves.append(p.transform.perturbed(leaf, change[begin:end]))
            begin = end
        return with_leaves(self.parameters, self.experiment, leaves)

    def values(self) -> Float[Array, " K"]:
        """All components of the parameters, in physical units."""
        values = [p.transform.estimates(p.leaf(self.experiment)) for p in self.parameters]
        return jnp.concatenate([jnp.zeros(0, self.experiment.state0.position.dtype), *values])

    def prior(self) -> tuple[Float[Array, " R"], Float[Array, "R K"]]:
        """Residuals of the priors, and their derivatives by all components."""
        leaves = [p.leaf(self.experiment) for p in self.parameters]
        return prior_rows(self.parameters, leaves, self.experiment.state0.position.dtype)


class _Reading(eqx.Module):
    """What all sensors read, as a function to be saved by the solver."""

    model: Any
    sensors: tuple[Any, ...]

    def __call__(self, t: Any, y: Any, args: Any = None) -> tuple[Any, ...]:
        return tuple(sensor.predict(self.model, t, y) for sensor in self.sensors)


class Motion(eqx.Module):
    """Reads the physical state, in the place of a sensor."""

    def on_time(self):
        return self, None

    def predict(self, model, t, y):
        return model.decode(t, y)


def observed(
    experiment: Experiment,
    ts: Float[Array, " T"],
    simulation: Simulation,
    span: tuple[Array, Array] | None = None,
    *,
    within: bool | None = None,
) -> tuple[tuple[Any, ...], RESULTS]:
    """What all sensors read at the times, of projected unknowns, and the result of the run.

    **Arguments:** `span`, start and end of the run, the first and the last time if left out;
    `within`: read while integrating, as what is saved costs memory traffic in every step; a state
    that is not finite then is no result of its own. If left out, where no loops have to be closed
    for it: members of a batch would wait for each other in every step.
    """
    t0, t1 = (ts[0], ts[-1]) if span is None else span
    punctual = [sensor.on_time() for sensor in experiment.sensors]
    if any(delay is not None for _, delay in punctual):
        return _observed_late(experiment, ts, simulation, (t0, t1), punctual)
    within = not experiment.model.multibody.closes if within is None else within
    state0, closed = experiment.started(t0)
    read = _Reading(experiment.model, experiment.sensors)
    saveat = diffrax.SaveAt(ts=ts, fn=read) if within else diffrax.SaveAt(ts=ts)
    solution = _run(experiment, state0, (t0, t1), simulation, saveat)
    result = RESULTS.where(closed, solution.result, RESULTS.joints_open)
    # Times are given again: where a run ends early, those of the solution are infinite.
    return solution.ys if within else jax.vmap(read)(ts, solution.ys), result


def _run(experiment, state0, span, simulation, saveat) -> Any:
    return simulate(
        experiment.model,
        state0,
        span[1],
        t0=span[0],
        saveat=saveat,
        throw=False,
        **simulation.forward(experiment.model).arguments,
    )


def _observed_late(experiment, ts, simulation, span, punctual):
    """As `observed`, for sensors of which some have a delay.

    The run is saved at the times of the samples and at those that late sensors tell of. Before its
    start it is continued backwards. Derivatives by a delay are those of the exact motion.
    """
    model, (t0, t1) = experiment.model, span
    state0, closed = experiment.started(t0)
    # The times of the samples, then those of every sensor with a delay.
    delays = [delay for _, delay in punctual if delay is not None]
    times = [ts, *(ts - delay for delay in delays)]
    fixed = [jax.lax.stop_gradient(of_sensor) for of_sensor in times]
    saved = jnp.concatenate([jnp.maximum(of_sensor, t0) for of_sensor in fixed])
    order = jnp.argsort(saved)
    end = jnp.maximum(t1, saved[order[-1]])
    saveat = diffrax.SaveAt(ts=saved[order])
    solution = _run(experiment, state0, (t0, end), simulation, saveat)
    rows = jnp.argsort(order).reshape(len(times), -1)
    blocks = [jax.tree.map(lambda y, k=k: y[k], solution.ys) for k in rows]
    sensors = tuple(sensor for sensor, _ in punctual)
    is_late = tuple(delay is not None for _, delay in punctual)
    read = functools.partial(_read_blocks, is_late)
    called = _called if simulation.backend == "xla" else call_by_kernel
    readings = called(read, model, sensors, state0, t0, times, fixed, blocks)
    result = RESULTS.where(closed, solution.result, RESULTS.joints_open)
    return readings, result


def _called(function, *args):
    return function(*args)


def _read_blocks(is_late, model, sensors, state0, t0, times, fixed, blocks):
    """Readings of all sensors, of which some are late; unknowns and times by blocks.

    **Arguments:** `times` of the samples, then those that each late sensor tells of; `fixed`, the
    same without derivatives; `blocks`, the unknowns there, at the start where a time is earlier.
    """
    before = _before(model, state0, t0, jnp.min(jnp.stack([own[0] for own in fixed])))

    def read_late(sensor, t, fixed, y):
        at = jnp.maximum(fixed, t0)
        y = shift_in_time(model, at, y, t - fixed)
        y = jax.tree.map(lambda a, b: jnp.where(fixed < t0, b, a), y, before.unknowns(t))
        return sensor.predict(model, t, y)

    readings, late = [], iter(zip(times[1:], fixed[1:], blocks[1:], strict=True))
    for sensor, sensor_is_late in zip(sensors, is_late, strict=True):
        if sensor_is_late:
            readings.append(jax.vmap(functools.partial(read_late, sensor))(*next(late)))
        else:
            read = functools.partial(sensor.predict, model)
            readings.append(jax.vmap(read)(times[0], blocks[0]))
    return tuple(readings)


def _before(model, state0, t0, earliest):
    """The motion before the start of a run."""
    state0 = state0.normalized()
    y = model.chart(state0, t0) if model.recharting else model.start(state0, t0)
    return continue_motion(model, t0, y, jnp.minimum(earliest - t0, -SHORTEST_SPAN))


def weighted(
    residuals: Sequence[Float[Array, "T C"]], weights: Sequence[Float[Array, "T C"]]
) -> Float[Array, " N"]:
    """Residuals of all sensors times their weights, as one vector; what has no weight is zero."""
    return jnp.concatenate(
        [
            jnp.where(w > 0, w * jnp.where(w > 0, r, 0.0), 0.0).reshape(-1)
            for r, w in zip(residuals, weights, strict=True)
        ]
    )


def residuals_of(sensor: AbstractSensor, readings: Array, measured: Array) -> Float[Array, "T C"]:
    """Residuals of one sensor, sample by sample."""
    return jax.vmap(sensor.residual)(readings, measured)


class Observation(NamedTuple):
    """What is linearised: the arrays of the `sensors`, their `readings`, and `more` if there is."""

    sensors: Any
    readings: tuple[Array, ...]
    more: Any = ()


class Linearisation(NamedTuple):
    """Weighted residuals (N,), their derivatives, those of `more` with E behind, and the `rest`."""

    residuals: Float[Array, " N"]
    jacobian: Float[Array, "N E"]
    more: Any
    rest: Any


def observation(experiment: Experiment, readings: tuple[Any, ...], more: Any = ()) -> Observation:
    """The readings of an experiment as what is linearised."""
    return Observation(eqx.filter(experiment.sensors, eqx.is_inexact_array), readings, more)


def linearised(
    observe: Callable[[Array], tuple[Observation, Any]],
    directions: Float[Array, "E K"],
    sensors: tuple[AbstractSensor, ...],
    weights: Sequence[Float[Array, "T C"]],
    values: Sequence[Array] | None = None,
    residuals: Callable[[AbstractSensor, Array, Array], Array] = residuals_of,
) -> Linearisation:
    """Weighted residuals and their derivatives along directions, all carried through one solve.

    **Arguments:** `observe`, a function of a change (K,), zero where it is linearised, with what is
    not differentiated behind; `sensors`; `weights`; `values`, what was measured, `None` for what is
    predicted: residuals are then zero, their derivatives are not; `residuals` of one sensor.
    """
    fixed = eqx.filter(sensors, eqx.is_inexact_array, inverse=True)

    def push(direction):
        seen, moved, rest = jax.jvp(
            observe, (jnp.zeros_like(direction),), (direction,), has_aux=True
        )
        measured = seen.readings if values is None else values

        def compared(arrays, readings):
            each = zip(eqx.combine(arrays, fixed), readings, measured, strict=True)
            return weighted([residuals(*one) for one in each], weights)

        r, dr = jax.jvp(compared, (seen.sensors, seen.readings), (moved.sensors, moved.readings))
        return r, dr, moved.more, rest

    return Linearisation(*jax.vmap(push, out_axes=(None, -1, -1, None))(directions))


def linearised_run(
    varied: Varied,
    directions: Float[Array, "E K"],
    ts: Float[Array, " T"],
    simulation: Simulation,
    weights: Sequence[Float[Array, "T C"]],
    values: Sequence[Array] | None = None,
    *,
    within: bool | None = None,
) -> Linearisation:
    """A run linearised along changes of the components of its parameters; `rest` is its result.

    **Arguments:** see `observed` and `linearised`.
    """

    def observe(change):
        experiment = varied(change)
        readings, result = observed(experiment, ts, simulation, within=within)
        return observation(experiment, readings), result

    return linearised(observe, directions, varied.experiment.sensors, weights, values)
