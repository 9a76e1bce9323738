"""Runs cut into segments, each with a start of its own, and their linearisation."""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ...formulations.charts import split_chart
from ...initial.local_coordinates import Directions, retract
from ...joints.relative_pose import wrap_angle
from ...results import RESULTS
from ...rotations import so3
from ...state import State
from ..data.measurements import Runs
from ..fit.problem import FitProblem
from ..linearised_runs import (
    ParametrisedExperiment,
    linearise_residuals,
    make_observation,
    sensor_residuals,
    simulate_readings,
)
from ..parameters import Experiment


class SegmentSamples(eqx.Module):
    """The samples of all runs by segments, with axes (B, K) in front; see `Run`.

    A segment ends at the first sample of the next one, where its own samples do not count.
    """

    ts: Float[Array, "B K T"]
    values: tuple[Array, ...]
    weights: tuple[Float[Array, "B K T C"], ...]


def cut_runs(runs: Runs, count: int, num_start: int) -> SegmentSamples:
    """Cut every run into `count` segments of as many samples as can be.

    **Arguments:** `num_start`, coordinates of the start of a segment.
    **Errors:** `ValueError` for fewer intervals than segments, and for segments whose samples are
    fewer than the coordinates of their start.
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
    place = np.stack(
        [np.minimum(e[:-1, None] + np.arange(length), e[1:, None]) for e in nodes]
    )  # (B, K, T)
    inside = np.stack([e[:-1, None] + np.arange(length) < e[1:, None] for e in nodes])
    # The last sample of a run belongs to its last segment.
    ends = np.stack([np.arange(length) == e[-1] - e[-2] for e in nodes])
    inside[:, -1] |= ends

    def pick(array: Any) -> np.ndarray:
        array = np.asarray(array)
        return np.stack([array[b, place[b]] for b in range(len(nodes))])

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
    """What is varied: coordinates of the parameters, and changes of the starts of the segments.

    `shared` (S,), `per_run` (B, P), `change` (B, K, n); those of the first segments have no effect.
    """

    shared: Float[Array, " S"]
    per_run: Float[Array, "B P"]
    change: Float[Array, "B K n"]


class Segments(eqx.Module):
    """All segments about their base states, with axes (B, K) in front."""

    problem: FitProblem
    cut: SegmentSamples
    bases: State
    directions: Directions


class LinearSegments(eqx.Module):
    """Residuals and gaps with their derivatives.

    **Attributes:** `residuals` (B, K, N), weighted; `jacobian` (B, K, N, S + P + n), by shared
    coordinates, own ones, and the change of the start; `gaps` (B, K - 1, 12 L), end of a segment
    less start of the next, position (m), rotation (rad), velocity, angular velocity of each body;
    `ends`, their derivatives by what the end depends on, `starts`, by what the next start does,
    (B, K - 1, 12 L, S + P + n); `states`, at the starts; `final`, at the ends; `angles` there of
    joints that are followed beyond pi; `prior`, residuals of the shared parameters (R,) and their
    derivatives by coordinates (R, S), of those of the runs (B, Q) and theirs (B, Q, P); `okay`
    (B, K).
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


class _End(eqx.Module):
    """Reads what the next segment starts from."""

    def on_time(self):
        return self, None

    def predict(self, model, t, y):
        """State and followed angles."""
        return model.decode(t, y), model.layout.angles(split_chart(y)[0])


@eqx.filter_jit
def linearise(segments: Segments, at: SegmentUnknowns) -> LinearSegments:
    """Simulate all segments at once, with derivatives in forward mode.

    A segment depends on the shared parameters, those of its run, and its own start: as many
    directions, whatever the number of segments.
    """
    problem = segments.problem
    count = segments.cut.ts.shape[1]
    first = jnp.arange(count) == 0

    def of_run(per_run, run, change, cut, bases, directions):
        experiment = problem.experiment(problem.run_leaves(at.shared, per_run, run), run)
        varied = ParametrisedExperiment(experiment, problem.parameters)
        shared_chain, per_run_chain = problem.component_derivatives(at.shared, per_run, run)
        chain = jax.scipy.linalg.block_diag(shared_chain, per_run_chain)
        segment = functools.partial(_segment, problem.simulation, varied, chain)
        (r, shared_jacobian), (per_run_r, per_run_jacobian) = (
            part.prior() for part in problem.parametrised(experiment)
        )
        prior = r, shared_jacobian @ shared_chain, per_run_r, per_run_jacobian @ per_run_chain
        return jax.vmap(segment)(change, first, cut, bases, directions), prior

    found, prior = jax.vmap(of_run)(
        at.per_run, problem.runs, at.change, segments.cut, segments.bases, segments.directions
    )
    r, J, (d_start, d_final), (start, final, angles, okay) = found
    after = jax.tree.map(lambda x: x[:, 1:], start)
    before = jax.tree.map(lambda x: x[:, :-1], final)
    gaps, by_end, by_start = jax.vmap(jax.vmap(_gap_and_derivatives))(before, after)
    finite = jnp.all(jnp.isfinite(r), axis=2) & jnp.all(jnp.isfinite(J), axis=(2, 3))
    return LinearSegments(
        r, J, gaps, by_end @ d_final[:, :-1], by_start @ d_start[:, 1:], start, final, angles,
        (prior[0][0], prior[1][0], *prior[2:]), okay & finite,
    )  # fmt: skip


def _segment(simulation, varied, chain, change, first, cut, base, directions):
    """One segment, linearised by the coordinates of the parameters and the change of its start."""
    (components, _), half, t = chain.shape, change.shape[0] // 2, cut.ts[0]

    def observe(z):
        experiment = varied(z[:components])
        given, closed = experiment.started(t)
        d = change + z[components:]
        moved, okay = retract(experiment.model, base, t, directions, d[:half], d[half:])
        state = jax.tree.map(lambda a, b: jnp.where(first, a, b), given.normalized(), moved)
        readers: Any = (*experiment.sensors, _End())
        alone = Experiment(experiment.model, state, readers)
        (*readings, (states, angles)), result = simulate_readings(alone, cut.ts, simulation)
        final = jax.tree.map(lambda leaf: leaf[-1], states)
        about = jax.lax.stop_gradient((state, final))
        gap = state_difference(state, about[0]), state_difference(final, about[1])
        okay = (result == RESULTS.successful) & jnp.where(first, closed, okay)
        return make_observation(experiment, tuple(readings), gap), (state, final, angles[-1], okay)

    steps = jnp.eye(change.shape[0], dtype=change.dtype)
    columns = jax.scipy.linalg.block_diag(chain, steps).T
    sensors = varied.experiment.sensors
    turning = {
        s.name: jnp.argmax(w[:, 0] > 0)
        for s, w in zip(sensors, cut.weights, strict=True)
        if s.tracked_joints(varied.experiment.model)
    }

    def residuals(sensor, readings, measured):
        r = sensor_residuals(sensor, readings, measured)
        if sensor.name not in turning:
            return r
        # A segment does not know how often a joint has turned before. The same revolutions for all
        # samples, those of the first that counts: each by itself would take a fast turn for a slow
        # one.
        first = r[turning[sensor.name]]
        return r + (wrap_angle(first) - first)

    return linearise_residuals(observe, columns, sensors, cut.weights, cut.values, residuals)


def state_difference(state: State, other: State) -> Float[Array, " G"]:
    """`state` less `other`, body by body: position, rotation about body axes, velocity, rate."""
    turn = jax.vmap(lambda p, q: so3.log_quaternion(so3.multiply(so3.conjugate(q), p)))
    parts = [
        state.position - other.position,
        turn(state.orientation, other.orientation),
        state.velocity - other.velocity,
        state.angular_velocity - other.angular_velocity,
    ]
    return jnp.concatenate([part.ravel() for part in parts])


def _gap_and_derivatives(end: State, start: State):
    """Gap between two segments, and its derivatives by small changes of both states."""

    def moved(state, change):
        x, turn, v, w = change.reshape(4, -1, 3)
        p = jax.vmap(lambda p, u: so3.multiply(p, so3.exp_quaternion(u)))(state.orientation, turn)
        return State(state.position + x, p, state.velocity + v, state.angular_velocity + w)

    zero = jnp.zeros(4 * end.position.size, end.position.dtype)

    def function(first, second):
        return state_difference(moved(end, first), moved(start, second))

    by_end, by_start = jax.jacfwd(function, argnums=(0, 1))(zero, zero)
    return state_difference(end, start), by_end, by_start
