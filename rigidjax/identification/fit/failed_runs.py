"""Explanations for failing runs and for inaccurate derivatives."""

import jax
import numpy as np

from ...results import SimulationError
from ...simulate.simulate import simulate
from ..data.measurements import Runs
from .evaluation import evaluate
from .least_squares import Minimum
from .problem import FitProblem


class IdentificationError(RuntimeError):
    """Failure of an identification to reach an optimum; see `Fit.result`."""


def explain_failed_run(problem: FitProblem, runs: Runs, b: int) -> str:
    """Return why run number `b` fails at the start values, from simulating it again.

    Either it cannot start, the simulation fails, or derivatives are not finite.
    """
    shared, per_run = problem.start_coordinates()
    run = jax.tree.map(lambda leaf: leaf[b], problem.runs)
    experiment = problem.experiment(problem.run_leaves(shared, per_run[b], run), run)
    ts = run.ts[: runs.lengths[b]]
    state, joints_close = experiment.start_at(ts[0])
    if not bool(joints_close):
        return "The joints cannot be closed at the start."
    settings = problem.simulation.forward(experiment.model).arguments
    try:
        state = experiment.model.check_state(state, ts[0])
        simulate(experiment.model, state, ts[-1], t0=ts[0], ts=ts, **settings)
    except ValueError as error:
        return f"It cannot start: {error}"
    except SimulationError as error:
        return str(error)
    return _explain_non_finite(problem, runs, b)


def _explain_non_finite(problem: FitProblem, runs: Runs, b: int) -> str:
    """Return which readings or derivatives of a run are not finite although it can be simulated."""
    evaluation = evaluate(problem, *problem.start_coordinates())
    table = problem.component_table(runs.names)
    num_shared, num_own = evaluation.shared.shape[0], evaluation.per_run.shape[1]
    first = num_shared + b * num_own
    columns = [*range(num_shared), *range(first, first + num_own)]
    jacobian, start = np.asarray(evaluation.jacobian)[b], 0
    bad = ~np.isfinite(jacobian)
    if not bad.any():
        return "The run can be simulated, but its readings or priors are not finite."
    labels = [table.labels[columns[k]] for k in np.flatnonzero(bad.any(axis=0))]
    ts, times = np.asarray(runs.ts)[b], []
    for sensor, weights in zip(runs.sensors, runs.weights, strict=True):
        end = start + weights[b].size
        rows = np.flatnonzero(bad[start:end].any(axis=1)) // weights.shape[-1]
        times += [(ts[rows[0]], sensor.name)] if rows.size else []
        start = end
    t, name = min(times)
    return (
        f"The run can be simulated, but derivatives of readings by {labels} are not finite, first "
        f"of the {name} at t = {t:.6g} s."
    )


def derivative_mismatch(problem: FitProblem, minimum: Minimum) -> float:
    """Return the relative difference between derivatives and finite differences of runs.

    It is measured along the step to the optimum of the linearisation, on the residuals at a
    minimum, over the free coordinates. Not finite where runs fail.
    """
    evaluation = evaluate(problem, minimum.shared, minimum.per_run)
    free = np.asarray(minimum.sides) == 0
    jacobian = np.asarray(evaluation.coordinate_jacobian()) * free
    step = -np.linalg.lstsq(jacobian, np.asarray(evaluation.residuals).reshape(-1))[0]
    size = minimum.shared.size
    shared, per_run = step[:size], step[size:].reshape(minimum.per_run.shape)
    ends = []
    for sign in (1.0, -1.0):
        moved = problem.clip(minimum.shared + sign * shared, minimum.per_run + sign * per_run)
        end = evaluate(problem, *moved)
        ends.append(np.where(np.asarray(end.okay)[:, None], np.asarray(end.residuals), np.nan))
    slope = jacobian @ step
    difference = 0.5 * (ends[0] - ends[1]).reshape(-1)
    return float(np.linalg.norm(difference - slope) / max(np.linalg.norm(slope), 1e-300))
