"""What the sensors of a fitted model read at the times of the samples."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack

import equinox as eqx
import jax
import numpy as np

from ...results import RESULTS
from ...state import State
from ..data.measurements import Measurements, stack_runs
from ..linearised_runs import Motion, observed
from ..parameters import Experiment
from ..simulation import Settings, Simulation, simulation_of
from .options import trials
from .result import Fit


class FittedRun(NamedTuple):
    """The run of a fitted model: times (T,), s; states, (T, ...); `values` of all sensors by name,
    (T, *value_shape). NaN from where a simulation failed."""

    ts: np.ndarray
    states: State
    values: dict[str, np.ndarray]


def predictions(
    fit: Fit, measurements: Measurements | Sequence[Measurements], **options: Any
) -> tuple[dict[str, np.ndarray], ...]:
    """Predicted values of all sensors, of each run by the sensor's name, (T, *value_shape).

    Also where samples are masked. **Arguments, errors:** those of `fitted_runs`.
    **Returns:** one dictionary for each run; NaN from where a simulation failed.
    """
    return tuple(run.values for run in fitted_runs(fit, measurements, **options))


def fitted_runs(
    fit: Fit,
    measurements: Measurements | Sequence[Measurements],
    *,
    simulation: Simulation | None = None,
    **settings: Unpack[Settings],
) -> tuple[FittedRun, ...]:
    """States and readings of the fitted model at the times of the samples, run by run.

    **Arguments:** `fit`; `measurements`, those it was made with; the others as in `rj.identify`.
    **Errors:** `ValueError` if there are not as many runs as in the fit.
    """
    runs = stack_runs(measurements)
    if runs.names != fit.run_names:
        raise ValueError(
            f"`predictions` and `fitted_runs` take the runs of the fit, {fit.run_names}; got "
            f"{runs.names}."
        )
    how = trials(simulation_of("fitted_runs", simulation, settings), runs.ts.dtype)
    out = []
    for b, length in enumerate(runs.lengths):
        sensors: Any = (Motion(), *fit.sensors_by_run[b])
        experiment = Experiment(fit.models[b], fit.states[b], sensors)
        readings, _ = read_run(experiment, runs.ts[b], how)
        states, *values = jax.tree.map(lambda x, n=length: _finite(x[:n]), readings)
        names = (sensor.name for sensor in fit.sensors)
        ts = np.asarray(runs.ts[b][:length])
        out.append(FittedRun(ts, states, dict(zip(names, values, strict=True))))
    return tuple(out)


@eqx.filter_jit
def read_run(
    experiment: Experiment, ts: Any, simulation: Simulation
) -> tuple[tuple[Any, ...], RESULTS]:
    """Return the readings of all sensors at the times `ts` (T,), s, and the result of the run."""
    return observed(experiment, ts, simulation, within=False)


def _finite(values):
    values = np.asarray(values)
    return np.where(np.isfinite(values), values, np.nan)
