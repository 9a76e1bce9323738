"""Runs cut into segments, each with its own start, and their linearisation."""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ...annotations import Flag, Scalar, Vector
from ...formulations import AbstractFormulation
from ...formulations.charts import Unknowns, split_chart
from ...initial.local_coordinates import Directions, retract
from ...joints.relative_pose import wrap_angle
from ...persistent_jit import persistent_jit
from ...results import RESULTS
from ...rotations import so3
from ...state import State
from ..data.measurements import Runs
from ..experiment.linearised_runs import (
    LinearisedResiduals,
    ParametrisedExperiment,
    linearise_residuals,
    make_observation,
    sensor_residuals,
    simulate_readings,
)
from ..experiment.parameters import Experiment
from ..experiment.simulation import Simulation
from ..search.problem import FitProblem


class SegmentSamples(eqx.Module):
    """The samples of all runs by segments, with leading axes (B, K); see `RunData`.

    A segment ends at the first sample of the next one, which has no weight in it.
    """

    ts: Float[Array, "B K T"]
    values: tuple[Array, ...]
    weights: tuple[Float[Array, "B K T C"], ...]


def cut_runs(runs: Runs, count: int, num_start: int) -> SegmentSamples:
    """Cut every run into `count` segments of equal numbers of samples, as far as possible.

    **Arguments:** `num_start`, the number of coordinates of the start of a segment.
    **Errors:** `ValueError` for fewer intervals than segments, and for segments with fewer samples
    than coordinates of their start.
    """
    shortest = int(np.argmin(runs.lengths))
    if runs.lengths[shortest] - 1 < count:
        raise ValueError(
            f"`identify(segments={count})`: the run {runs.names[shortest]} has "
            f"{runs.lengths[shortest]} times, enough for at most {runs.lengths[shortest] - 1} "
            "segments."
        )
    nodes = [np.linspace(0, n - 1, count + 1).astype(int) for n in runs.lengths]
    length = 1 + max(int(np.diff(edges).max()) for edges in nodes)
    indices = np.stack(
        [np.minimum(e[:-1, None] + np.arange(length), e[1:, None]) for e in nodes]
    )  # (B, K, T)
    inside = np.stack([e[:-1, None] + np.arange(length) < e[1:, None] for e in nodes])
    # The last segment includes the last sample of a run.
    ends = np.stack([np.arange(length) == e[-1] - e[-2] for e in nodes])
    inside[:, -1] |= ends

    def pick(array: Any) -> np.ndarray:
        array = np.asarray(array)
        return np.stack([array[b, indices[b]] for b in range(len(nodes))])

    weights = [np.where(inside[..., None], pick(w), 0.0) for w in runs.weights]
    counts = np.sum([np.count_nonzero(w, axis=(2, 3)) for w in weights], axis=0)
    few = np.argwhere(counts < num_start)
    if few.size:
        b, k = few[0]
        raise ValueError(
            f"`identify(segments={count})`: segment {k + 1} of the run {runs.names[b]} has "
            f"{counts[b, k]} scalar samples, which cannot determine the {num_start} coordinates of "
            "its start. Use fewer segments."
        )
    return SegmentSamples(
        jnp.asarray(pick(runs.ts)),
        tuple(jnp.asarray(pick(v)) for v in runs.values),
        tuple(jnp.asarray(w) for w in weights),
    )


class SegmentUnknowns(eqx.Module):
    """Coordinates of the parameters, and changes of the starts of the segments.

    `shared` (S,), `per_run` (B, P), `change` (B, K, n); changes of the first segments have no
    effect.
    """

    shared: Float[Array, " S"]
    per_run: Float[Array, "B P"]
    change: Float[Array, "B K n"]


class Segments(eqx.Module):
    """All segments and their base states, with leading axes (B, K)."""

    problem: FitProblem
    cut: SegmentSamples
    bases: State
    directions: Directions


class LinearSegments(eqx.Module):
    """Residuals and gaps with their derivatives.

    **Attributes:** `residuals` (B, K, N), weighted; `jacobian` (B, K, N, S + P + n), with respect
    to shared coordinates, per-run coordinates, and the change of the start; `gaps` (B, K - 1, 12
    L), end of a segment minus start of the next: position (m), rotation (rad), velocity and angular
    velocity of each body; `ends` and `starts`, derivatives of the gaps through the end and through
    the next start, (B, K - 1, 12 L, S + P + n); `states`, at the starts; `final`, at the ends;
    `angles` at the ends, of joints whose angle is unwrapped; `prior`, residuals of the shared
    parameters (R,) and their derivatives with respect to coordinates (R, S), those of the per-run
    parameters (B, Q) and (B, Q, P); `okay` (B, K).
    """

    residuals: Array
    jacobian: Array
    gaps: Array
    ends: Array
    starts: Array
    states: State
    final: State
    angles: Array
    prior: tuple[Array, Array, Array, Array]
    okay: Bool[Array, "B K"]


class _EndReader(eqx.Module):
    """Reader of the state from which the next segment starts."""

    def on_time(self) -> tuple["_EndReader", None]:
        return self, None

    def predict(self, model: AbstractFormulation, t: Scalar, y: Unknowns) -> tuple[State, Any]:
        """Return the state and the unwrapped angles."""
        return model.decode(t, y), model.layout.angles(split_chart(y)[0])


@persistent_jit
def linearise(segments: Segments, unknowns: SegmentUnknowns) -> LinearSegments:
    """Simulate all segments at once, with derivatives in forward mode.

    A segment depends on the shared parameters, those of its run, and its own start, so that the
    number of directions does not grow with the number of segments.
    """
    problem = segments.problem
    count = segments.cut.ts.shape[1]
    first = jnp.arange(count) == 0

    def linearise_segments_of_run(per_run, run, change, cut, bases, directions):
        experiment = problem.experiment(problem.run_leaves(unknowns.shared, per_run, run), run)
        parametrised = ParametrisedExperiment(experiment, problem.parameters)
        shared_chain, per_run_chain = problem.component_derivatives(unknowns.shared, per_run, run)
        chain = jax.scipy.linalg.block_diag(shared_chain, per_run_chain)
        segment = functools.partial(_linearise_segment, problem.simulation, parametrised, chain)
        (r, shared_jacobian), (per_run_r, per_run_jacobian) = (
            part.prior() for part in problem.parametrise(experiment)
        )
        prior = r, shared_jacobian @ shared_chain, per_run_r, per_run_jacobian @ per_run_chain
        return jax.vmap(segment)(change, first, cut, bases, directions), prior

    linear, prior = jax.vmap(linearise_segments_of_run)(
        unknowns.per_run,
        problem.runs,
        unknowns.change,
        segments.cut,
        segments.bases,
        segments.directions,
    )
    r, J, (d_start, d_final), (start, final, angles, okay) = linear
    after = jax.tree.map(lambda x: x[:, 1:], start)
    before = jax.tree.map(lambda x: x[:, :-1], final)
    gaps, by_end, by_start = jax.vmap(jax.vmap(_gap_and_derivatives))(before, after)
    finite = jnp.all(jnp.isfinite(r), axis=2) & jnp.all(jnp.isfinite(J), axis=(2, 3))
    return LinearSegments(
        r, J, gaps, by_end @ d_final[:, :-1], by_start @ d_start[:, 1:], start, final, angles,
        (prior[0][0], prior[1][0], *prior[2:]), okay & finite,
    )  # fmt: skip


def _linearise_segment(
    simulation: Simulation,
    parametrised: ParametrisedExperiment,
    chain: Float[Array, "E m"],
    change: Vector,
    first: Flag,
    cut: SegmentSamples,
    base: State,
    directions: Directions,
) -> LinearisedResiduals:
    """Linearise one segment in the coordinates of the parameters and the change of its start."""
    (components, _), half, t = chain.shape, change.shape[0] // 2, cut.ts[0]

    def observe(z):
        experiment = parametrised(z[:components])
        start, joints_close = experiment.start_at(t)
        d = change + z[components:]
        retracted, okay = retract(experiment.model, base, t, directions, d[:half], d[half:])
        state = jax.tree.map(lambda a, b: jnp.where(first, a, b), start.normalized(), retracted)
        readers: Any = (*experiment.sensors, _EndReader())
        segment = Experiment(experiment.model, state, readers)
        (*readings, (states, angles)), result = simulate_readings(segment, cut.ts, simulation)
        final = jax.tree.map(lambda leaf: leaf[-1], states)
        reference = jax.lax.stop_gradient((state, final))
        gap = state_difference(state, reference[0]), state_difference(final, reference[1])
        okay = (result == RESULTS.successful) & jnp.where(first, joints_close, okay)
        return make_observation(experiment, tuple(readings), gap), (state, final, angles[-1], okay)

    steps = jnp.eye(change.shape[0], dtype=change.dtype)
    columns = jax.scipy.linalg.block_diag(chain, steps).T
    sensors = parametrised.experiment.sensors
    first_samples = {
        s.name: jnp.argmax(w[:, 0] > 0)
        for s, w in zip(sensors, cut.weights, strict=True)
        if s.tracked_joints(parametrised.experiment.model)
    }

    def residuals(sensor, readings, measured):
        r = sensor_residuals(sensor, readings, measured)
        if sensor.name not in first_samples:
            return r
        # A segment does not know the previous revolutions of a joint. All samples are shifted by
        # the revolutions of the first that counts: wrapping each sample separately would accept a
        # far too slow or too fast motion.
        first = r[first_samples[sensor.name]]
        return r + (wrap_angle(first) - first)

    return linearise_residuals(observe, columns, sensors, cut.weights, cut.values, residuals)


def state_difference(state: State, other: State) -> Float[Array, " G"]:
    """Return `state` minus `other`: position, body rotation, velocity and angular velocity."""
    rotation = jax.vmap(lambda p, q: so3.log_quaternion(so3.multiply(so3.conjugate(q), p)))
    parts = [
        state.position - other.position,
        rotation(state.orientation, other.orientation),
        state.velocity - other.velocity,
        state.angular_velocity - other.angular_velocity,
    ]
    return jnp.concatenate([part.ravel() for part in parts])


def _gap_and_derivatives(
    end: State, start: State
) -> tuple[Float[Array, " G"], Float[Array, "G G"], Float[Array, "G G"]]:
    """Return the gap between two segments and its derivatives in small changes of both states."""

    def perturb(state, change):
        x, rotation, v, w = change.reshape(4, -1, 3)
        p = jax.vmap(lambda p, u: so3.multiply(p, so3.exp_quaternion(u)))(
            state.orientation, rotation
        )
        return State(state.position + x, p, state.velocity + v, state.angular_velocity + w)

    zero = jnp.zeros(4 * end.position.size, end.position.dtype)

    def function(first, second):
        return state_difference(perturb(end, first), perturb(start, second))

    by_end, by_start = jax.jacfwd(function, argnums=(0, 1))(zero, zero)
    return state_difference(end, start), by_end, by_start
