"""Why runs of a fit fail, and whether derivatives agree with differences of runs."""

import jax
import numpy as np

from ...results import SimulationError
from ...simulate.simulate import simulate
from ..data.measurements import Runs
from .evaluation import evaluate
from .least_squares import Minimum
from .problem import Problem


def failed_run_text(problem: Problem, runs: Runs, b: int) -> str:
    """Say why run number `b` fails at the start values, from simulating it again.

    It cannot start, or the simulation fails, or derivatives are not finite.
    """
    shared, own = problem.start()
    run = jax.tree.map(lambda leaf: leaf[b], problem.runs)
    experiment = problem.experiment(problem.leaves(shared, own[b], run), run)
    ts = run.ts[: runs.lengths[b]]
    state, closed = experiment.started(ts[0])
    if not bool(closed):
        return "The joints cannot be closed at the start."
    how = problem.simulation.forward(experiment.model).arguments
    try:
        state = experiment.model.check_state(state, ts[0])
        simulate(experiment.model, state, ts[-1], t0=ts[0], ts=ts, **how)
    except ValueError as error:
        return f"It cannot start: {error}"
    except SimulationError as error:
        return str(error)
    return _not_finite_text(problem, runs, b)


def _not_finite_text(problem: Problem, runs: Runs, b: int) -> str:
    """Say which readings or derivatives of a run that can be simulated are not finite."""
    found = evaluate(problem, *problem.start())
    table = problem.components(runs.names)
    num_shared, num_own = found.shared.shape[0], found.own.shape[1]
    first = num_shared + b * num_own
    columns = [*range(num_shared), *range(first, first + num_own)]
    jacobian, begin = np.asarray(found.jacobian)[b], 0
    bad = ~np.isfinite(jacobian)
    if not bad.any():
        return "The run can be simulated, but its readings or priors are not finite."
    labels = [table.labels[columns[k]] for k in np.flatnonzero(bad.any(axis=0))]
    ts, times = np.asarray(runs.ts)[b], []
    for sensor, weights in zip(runs.sensors, runs.weights, strict=True):
        end = begin + weights[b].size
        rows = np.flatnonzero(bad[begin:end].any(axis=1)) // weights.shape[-1]
        times += [(ts[rows[0]], sensor.name)] if rows.size else []
        begin = end
    t, name = min(times)
    return (
        f"The run can be simulated, but derivatives of readings by {labels} are not finite, first "
        f"of the {name} at t = {t:.6g} s."
    )


def slope_mismatch(problem: Problem, minimum: Minimum) -> float:
    """Return how far derivatives are from differences of runs, along the step to the optimum.

    The norm of their distance over that of the derivative, of the residuals at a minimum by the
    free coordinates; not finite where runs fail.
    """
    found = evaluate(problem, minimum.shared, minimum.own)
    free = np.asarray(minimum.sides) == 0
    jacobian = np.asarray(found.by_coordinates()) * free
    step = -np.linalg.lstsq(jacobian, np.asarray(found.residuals).reshape(-1))[0]
    size = minimum.shared.size
    shared, own = step[:size], step[size:].reshape(minimum.own.shape)
    ends = []
    for sign in (1.0, -1.0):
        moved = problem.clip(minimum.shared + sign * shared, minimum.own + sign * own)
        end = evaluate(problem, *moved)
        ends.append(np.where(np.asarray(end.okay)[:, None], np.asarray(end.residuals), np.nan))
    slope = jacobian @ step
    difference = 0.5 * (ends[0] - ends[1]).reshape(-1)
    return float(np.linalg.norm(difference - slope) / max(np.linalg.norm(slope), 1e-300))
