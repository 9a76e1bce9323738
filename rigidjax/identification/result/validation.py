"""Prediction of held-out runs by a fitted model."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ...formulations import AbstractFormulation
from ...io.document import Bullets, Paragraph, Table, to_markdown
from ...state import State
from ..data.measurements import Measurements, Runs, rescale_weights, stack_runs
from ..experiment.linearised_runs import sensor_residuals
from ..experiment.parameters import Experiment, replace_leaves
from ..experiment.start_change import transfer_state
from ..search.least_squares import minimise
from ..search.optimum import Optimum
from ..search.options import IdentificationError, explain_failed_run, prepare_runs
from ..search.problem import make_problem
from ..starts.first_samples import align_revolutions, start_states
from ..starts.parameter import fitted_start_fields, start_state

# Probability with which the chi square of a perfect model exceeds the limit of the verdict.
_SIGNIFICANT = 0.01


@dataclasses.dataclass(frozen=True)
class PredictedSensor:
    """Root mean squares of the residuals of one sensor in held-out runs, in its unit.

    **Attributes:** `name`, `unit`, of the sensor; `noise`, its standard deviation, given with the
    held-out data or that of the fit; `predicted`, of the prediction from the start alone;
    `fitted_start`, of the prediction with fitted starts; `constant`, of the best constant reading
    of each run; `predicted_by_run` and `fitted_start_by_run`, by the names of the runs.
    """

    name: str
    unit: str
    noise: float
    predicted: float
    fitted_start: float
    constant: float
    predicted_by_run: Mapping[str, float]
    fitted_start_by_run: Mapping[str, float]


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Validation:
    """Predictions of held-out runs by a fitted model.

    **Attributes:**

    - `run_names`: of the held-out runs.
    - `sensors`: a `PredictedSensor` for each.
    - `num_samples` of scalar readings; `start_labels`, the quantities that were fitted to the
      held-out runs in the prediction with fitted starts.
    - `chi_square`: mean square of the residuals of the prediction from the start alone, in units of
      the noise; `chi_square_fitted_start`, with fitted starts, per degree of freedom.
    - `expected`: the value that a perfect model exceeds in one of a hundred validations. It allows
      for the errors of the estimates, as if held-out runs and those of the fit were of one kind.
    - `residuals`, `residuals_fitted_start`: for each run by sensor name, predicted minus measured,
      (T, C) in the unit of the sensor, NaN for masked samples.
    """

    run_names: tuple[str, ...]
    sensors: tuple[PredictedSensor, ...]
    num_samples: int
    start_labels: tuple[str, ...]
    chi_square: float
    chi_square_fitted_start: float
    expected: float
    residuals: tuple[dict[str, np.ndarray], ...]
    residuals_fitted_start: tuple[dict[str, np.ndarray], ...]

    @property
    def sentence(self) -> str:
        """How well the model predicts, and what limits the prediction."""
        factors = [np.sqrt(x) for x in (self.chi_square, self.chi_square_fitted_start)]
        share = max(s.predicted / s.constant for s in self.sensors)
        facts = (
            f"from their starts alone the residuals of the held-out runs are {factors[0]:.3g} "
            f"times the noise and at most {100 * share:.2g} % of a constant prediction, with "
            f"fitted starts {factors[1]:.3g} times the noise"
        )
        if self.chi_square <= self.expected:
            verdict = "The model predicts the held-out runs to within their noise"
        elif self.chi_square_fitted_start <= self.expected:
            verdict = "The starts, not the model, limit the prediction"
        elif share >= 1:
            verdict = "The model predicts no better than a constant"
        else:
            verdict = "The model lacks something that the held-out runs show"
        return f"{verdict}: {facts}."

    @property
    def table(self) -> Table:
        """Root mean squares of the sensors, and their ratios to the noise."""
        return Table(
            ("sensor", "unit", "noise", "predicted", "/ noise", "fitted starts", "/ noise",
             "constant"),
            [
                (
                    s.name,
                    s.unit,
                    f"{s.noise:.3g}",
                    f"{s.predicted:.4g}",
                    f"{s.predicted / s.noise:.3g}",
                    f"{s.fitted_start:.4g}",
                    f"{s.fitted_start / s.noise:.3g}",
                    f"{s.constant:.4g}",
                )
                for s in self.sensors
            ],
        )  # fmt: skip

    def to_markdown(self) -> str:
        """Return the table of the sensors, the sentence and the values of the runs as Markdown."""
        lines = []
        for s in self.sensors:
            by_run = ", ".join(
                f"{run} {value:.4g} ({s.fitted_start_by_run[run]:.4g} with fitted start)"
                for run, value in s.predicted_by_run.items()
            )
            lines.append(f"{s.name}, by run: {by_run} {s.unit}.")
        lines.append(f"Fitted to the held-out runs: {', '.join(self.start_labels)}.")
        return to_markdown([self.table, Paragraph(self.sentence), Bullets(lines)])

    def __repr__(self) -> str:
        return f"{self.table}\n{self.sentence}"


def validate(
    optimum: Optimum,
    noise: Mapping[str, float],
    held_out: Measurements | Sequence[Measurements],
    state0: State | Sequence[State] | None = None,
) -> Validation:
    """Predict held-out runs; see `Fit.validate`.

    **Arguments:** `noise`, standard deviation of the sensors whose noise was estimated.
    """
    runs = stack_runs(held_out)
    _check_runs(optimum.runs, runs)
    if not runs.noise_is_known:
        triples = zip(runs.sensors, optimum.runs.weights, runs.has_noise, strict=True)
        runs = rescale_weights(
            runs, [1.0 if known else noise.get(s.name, _mean_noise(w)) for s, w, known in triples]
        )
    problem = optimum.problem
    first = jax.tree.map(lambda x: x[0], problem.runs.state0)
    experiment = Experiment(problem.model, first, problem.sensors)
    pairs = [
        (p, leaf[0])
        for p, leaf in zip(problem.parameters, optimum.minimum.leaves, strict=True)
        if not (p.per_run or fitted_start_fields(problem.model, runs, [p]))
    ]
    fitted = replace_leaves([p for p, _ in pairs], experiment, [leaf for _, leaf in pairs])
    _, (runs,), _ = prepare_runs(fitted.model, [dataclasses.replace(runs, sensors=fitted.sensors)])
    states = _starts(problem.model, fitted.model, runs, state0, problem.fits_geometry)
    runs, _ = align_revolutions(fitted.model, runs, states)
    shared = {p.name for p, _ in pairs}
    own = [dataclasses.replace(p, per_run=True) for p in problem.parameters if p.name not in shared]
    if not fitted_start_fields(problem.model, runs, own):
        name = "start" if "start" not in [p.name for p in own] else "start of the run"
        own.append(start_state(fitted.model, states[0], name=name))
    held_problem, table, _ = make_problem(fitted.model, runs, states, own, problem.simulation)
    minimum = minimise(held_problem, optimum.search)
    failed = np.flatnonzero(~np.asarray(minimum.first.okay))
    if failed.size:
        raise IdentificationError(
            f"The fitted model cannot simulate the held-out run {runs.names[failed[0]]!r}: "
            f"{explain_failed_run(held_problem, runs, int(failed[0]))}"
        )
    return _summarise(
        runs,
        fitted.model,
        minimum.first.residuals,
        minimum.last.residuals,
        table.subset(table.fitted_indices).labels,
        len(optimum.table.fitted_indices) / optimum.runs.num_samples,
    )


def _mean_noise(weights: Array) -> float:
    """Return the root mean square of the noise of one sensor."""
    used = np.asarray(weights)
    return float(np.sqrt(np.mean(used[used > 0] ** -2.0)))


def _check_runs(fitted: Runs, runs: Runs) -> None:
    names = [s.name for s in fitted.sensors], [s.name for s in runs.sensors]
    if names[0] != names[1]:
        raise ValueError(
            f"`Fit.validate(held_out=...)` takes runs with the sensors of the fit, {names[0]}; got "
            f"{names[1]}."
        )
    for name, inputs in zip(runs.names, runs.inputs, strict=True):
        if missing := sorted(set(fitted.inputs[0]) - set(inputs)):
            raise ValueError(
                f"`Fit.validate(held_out=...)` needs the measured inputs of the fit; the run "
                f"{name!r} lacks {missing}. Give them in `Measurements(inputs=...)`."
            )


def _starts(
    original: AbstractFormulation,
    fitted: AbstractFormulation,
    runs: Runs,
    state0: State | Sequence[State] | None,
    fits_geometry: bool,
) -> list[State]:
    """Return the start state of every run, which follows the fitted geometry."""
    states = start_states(original, runs, state0)
    if not fits_geometry:
        return states
    times = np.asarray(runs.ts)[:, 0]
    return [
        transfer_state(original, fitted, state, jnp.asarray(t))[0]
        for state, t in zip(states, times, strict=True)
    ]


def _summarise(
    runs: Runs,
    model: AbstractFormulation,
    predicted: Any,
    fitted_start: Any,
    labels: tuple[str, ...],
    share: float,
) -> Validation:
    """Return the validation of weighted residuals (B, N) from given and from fitted starts.

    **Arguments:** `share`, the number of fitted parameters per sample of the fit.
    """
    from scipy import special

    sensors = []
    residuals: list[list[dict[str, np.ndarray]]] = [[{} for _ in runs.names] for _ in range(2)]
    for k, (sensor, weights, _) in enumerate(runs.by_sensor(predicted)):
        measured = runs.values[k]
        constant = [
            np.asarray(sensor_residuals(sensor, jnp.broadcast_to(x[:1], x.shape), x))
            for x in measured
        ]
        used = weights > 0
        scale = np.where(used, 1 / np.where(used, weights, 1.0), np.nan)
        plain = [scale * list(runs.by_sensor(rows))[k][2] for rows in (predicted, fitted_start)]
        centred = np.where(used, constant, np.nan)
        centred = centred - _mean(centred, axis=1, keepdims=True)
        for rows, by_run in zip(plain, residuals, strict=True):
            for b, length in enumerate(runs.lengths):
                by_run[b][sensor.name] = rows[b, :length]
        sensors.append(
            PredictedSensor(
                name=sensor.name,
                unit=sensor.unit_in(model),
                noise=_rms(scale),
                predicted=_rms(plain[0]),
                fitted_start=_rms(plain[1]),
                constant=_rms(centred),
                predicted_by_run=dict(zip(runs.names, map(_rms, plain[0]), strict=True)),
                fitted_start_by_run=dict(zip(runs.names, map(_rms, plain[1]), strict=True)),
            )
        )
    count = runs.num_samples
    squares = [float(np.sum(np.square(np.asarray(r)))) for r in (predicted, fitted_start)]
    return Validation(
        run_names=runs.names,
        sensors=tuple(sensors),
        num_samples=count,
        start_labels=labels,
        chi_square=squares[0] / count,
        chi_square_fitted_start=squares[1] / max(count - len(labels), 1),
        expected=float(special.chdtri(count, _SIGNIFICANT)) / count + share,
        residuals=tuple(residuals[0]),
        residuals_fitted_start=tuple(residuals[1]),
    )


def _mean(values: np.ndarray, **options: Any) -> np.ndarray:
    """Return the mean of values that are not NaN; zero without any."""
    valid = np.isfinite(values)
    total = np.sum(np.where(valid, values, 0.0), **options)
    return total / np.maximum(np.sum(valid, **options), 1)


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(_mean(np.square(values))))
