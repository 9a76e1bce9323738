"""Checked arguments of fits, start states, and checks of the start."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

from ...formulations import AbstractFormulation
from ...results import SimulationError
from ...sensors import unwrap_measured_angles
from ...simulate.simulate import simulate
from ..data.measurements import Runs
from ..experiment.checked_arguments import check_precision
from ..experiment.inputs import bind_measured
from ..experiment.parameters import ComponentTable, Parameter
from ..experiment.simulation import Simulation
from ..starts.first_samples import align_revolutions, detect_angle_ranges, start_states
from ..starts.parameter import add_late_start_parameter
from ..statistics.covariance import columns_without_effect
from .evaluation import Evaluation, evaluate
from .first_order import FirstOrder
from .least_squares import Search
from .losses import AbstractLoss, Squares
from .problem import FitProblem, make_problem

Method: TypeAlias = Literal["levenberg-marquardt", "gauss-newton", "prediction-error"] | FirstOrder
METHODS = ("levenberg-marquardt", "gauss-newton", "prediction-error")


def make_search(
    dtype: Any,
    horizons: Sequence[float] = (0.1, 0.3, 1.0),
    method: Method = "levenberg-marquardt",
    loss: AbstractLoss | None = None,
    max_iterations: int = 200,
    tolerance: float | None = None,
) -> Search:
    """Return the search options for a precision, from arguments of `rj.identify`.

    **Errors:** `ValueError` and `TypeError` for arguments that do not fit.
    """
    stages = np.asarray(horizons, float)
    if not (
        stages.ndim == 1
        and len(stages) > 0
        and np.all(np.diff(stages) > 0)
        and stages[0] > 0
        and stages[-1] == 1
    ):
        raise ValueError(
            "`identify(horizons=...)` must increase, from above 0, to 1, such as "
            f"(0.1, 0.3, 1.0); got {horizons!r}."
        )
    if not isinstance(method, FirstOrder) and method not in METHODS:
        raise ValueError(
            '`identify(method=...)` must be "levenberg-marquardt", "gauss-newton", '
            f'"prediction-error" or `rj.identification.FirstOrder(...)`; got {method!r}.'
        )
    if loss is not None and not isinstance(loss, AbstractLoss):
        raise TypeError(
            "`identify(loss=...)` must be a loss such as `rj.identification.Huber()`; got "
            f"{loss!r}."
        )
    if max_iterations < 4:
        raise ValueError(
            f"`identify(max_iterations=...)` must be at least 4; got {max_iterations}."
        )
    if tolerance is None:
        tolerance = 1e-8 if dtype == jnp.float64 else 1e-4
    return Search(
        np.asarray(stages, dtype),
        np.asarray(tolerance, dtype),
        max_iterations,
        Squares() if loss is None else loss,
        method != "gauss-newton",
    )


def trial_simulation(simulation: Simulation, dtype: jnp.dtype) -> Simulation:
    """Return the simulation settings of trials."""
    return simulation.with_defaults(dtype, solver=diffrax.Dopri5())


def check_starts(starts: Any, start_spread: Any, segments: Any, model: Any) -> None:
    """Raise `ValueError` for invalid numbers of starts or segments."""
    if isinstance(segments, bool) or not isinstance(segments, int) or segments < 1:
        raise ValueError(
            "`identify(segments=...)` must be a number of segments, 1 for undivided runs; got "
            f"{segments!r}."
        )
    if segments > 1 and model.multibody.num_states:
        raise ValueError(
            "`identify(segments=...)` starts segments from states of the bodies; the states of "
            "actuators are not among them. Fit undivided runs, `segments=1`."
        )
    if not isinstance(starts, int) or starts < 1 or not start_spread > 0:
        raise ValueError(
            "`identify(starts=...)` must be a number of starts, at least 1, with a positive "
            f"`start_spread`; got {starts!r} and {start_spread!r}."
        )


def prepare_runs(
    model: AbstractFormulation, all_runs: Sequence[Runs]
) -> tuple[AbstractFormulation, list[Runs], list[str]]:
    """Return a model that tracks the measured angles and has signals for the measured inputs, and
    runs with the angle ranges of sensors.

    **Returns:** also notes on the ranges that were detected.
    """
    check_precision("identify", model, all_runs[0].sensors, (), all_runs[0].ts)
    model = bind_measured(model, all_runs[0].inputs[0])
    for sensor in all_runs[0].sensors:
        sensor.check(model)
    model = unwrap_measured_angles(model, all_runs[0].sensors)
    return model, *detect_angle_ranges(model, all_runs)


def prepare_problems(
    model: AbstractFormulation,
    all_runs: Sequence[Runs],
    parameters: tuple[Parameter, ...],
    state0: Any,
    simulation: Simulation,
    weigh: Callable[[Runs], Runs],
    starts: Mapping[str, np.ndarray],
) -> tuple[list[FitProblem], list[Runs], ComponentTable, list[str]]:
    """Return the problem and the runs of every data set, the table of components, and notes.

    **Arguments:** `all_runs`, of each data set; `state0`, see `rj.identify`; `weigh`, a function
    that gives weights to sensors of unknown noise; `starts` of parameters by name, for each set.
    """
    model, all_runs, notes = prepare_runs(model, all_runs)
    all_states = [start_states(model, all_runs[0], state0)] * len(all_runs)
    if state0 is None:
        all_states[1:] = [start_states(model, runs, None) for runs in all_runs[1:]]
    for n, states in enumerate(all_states):
        runs, new_notes = align_revolutions(model, all_runs[n], states)
        all_runs[n] = weigh(runs)
        notes += new_notes
    if state0 is None:
        parameters, new_notes = add_late_start_parameter(model, all_runs, parameters)
        notes += new_notes
    simulation = trial_simulation(simulation, all_runs[0].ts.dtype)
    problems, tables = [], []
    for n, (runs, states) in enumerate(zip(all_runs, all_states, strict=True)):
        if n and state0 is not None and not starts and not any(runs.inputs):
            # The problems differ in the samples alone.
            problems.append(problems[0].with_samples(runs))
            continue
        started = [
            dataclasses.replace(p, start=starts[p.name][n]) if p.name in starts else p
            for p in parameters
        ]
        problem, table, new_notes = make_problem(model, runs, states, started, simulation)
        problems.append(problem)
        tables.append(table)
        notes = new_notes + notes
    return problems, all_runs, tables[0], notes


def count_fitted(table: ComponentTable, runs: Runs) -> int:
    """Return the number of fitted components.

    **Errors:** `ValueError` if there are fewer samples.
    """
    count = table.fitted_indices.size
    if runs.num_samples < count:
        raise ValueError(
            f"There are {runs.num_samples} scalar samples for {count} parameters. Fit fewer "
            "parameters, or measure more."
        )
    return count


def check_start(problem: FitProblem, runs: Runs, table: ComponentTable, first: Evaluation) -> None:
    """Raise an error that names the runs or parameters because of which a fit cannot succeed.

    **Errors:** `IdentificationError` for simulations that fail at the start values; `ValueError`
    for parameters without effect.
    """
    failing = np.flatnonzero(~np.asarray(first.okay))
    failed = [runs.names[b] for b in failing]
    if failed:
        raise IdentificationError(
            f"The simulation fails at the start values, in the runs {failed}. In the run "
            f"{failed[0]!r}: {explain_failed_run(problem, runs, int(failing[0]))}"
        )
    table = table.with_values(first.components)
    has_no_effect = columns_without_effect(
        first.component_jacobian_with_prior(), table.magnitudes(table.values)
    )
    idle = [table.labels[k] for k in np.flatnonzero(table.fitted & has_no_effect)]
    if idle:
        raise ValueError(
            f"The parameters {idle} act on nothing that is measured, at the start values. Leave "
            "them out (`transform=Positive(which=...)` fits some elements), or start "
            "elsewhere, such as by `state0=` in motion."
        )


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
