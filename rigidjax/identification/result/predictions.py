"""Sensor readings of a fitted model at the times of the samples."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack

import jax
import numpy as np
from jaxtyping import Array

from ...persistent_jit import persistent_jit
from ...results import RESULTS
from ...state import State
from ..data.measurements import Measurements, stack_runs
from ..experiment.linearised_runs import StateReader, simulate_readings
from ..experiment.parameters import Experiment
from ..experiment.simulation import Settings, Simulation, resolve_simulation
from ..search.options import trial_simulation
from .result import Fit


class FittedRun(NamedTuple):
    """Run of a fitted model: times (T,), s; states, (T, ...); `values` of all sensors by name.

    Values have shape (T, *value_shape). All are NaN after the time at which a simulation failed.
    """

    ts: np.ndarray
    states: State
    values: dict[str, np.ndarray]


def predictions(
    fit: Fit, measurements: Measurements | Sequence[Measurements], **options: Any
) -> tuple[dict[str, np.ndarray], ...]:
    """Return the predicted values of all sensors for each run, by name, (T, *value_shape).

    Masked samples are predicted too. **Arguments, errors:** as in `fitted_runs`.
    **Returns:** one dictionary per run; NaN after a failure of the simulation.
    """
    return tuple(run.values for run in fitted_runs(fit, measurements, **options))


def fitted_runs(
    fit: Fit,
    measurements: Measurements | Sequence[Measurements],
    *,
    simulation: Simulation | None = None,
    **settings: Unpack[Settings],
) -> tuple[FittedRun, ...]:
    """Simulate the fitted model; return states and readings at the times of the samples, by run.

    **Arguments:** `fit`, of the parameters; `measurements`, those that it was made with;
    `simulation`, `solver`, `rtol`, `atol`, `dt`, `projection`, `adjoint`, `max_steps`, `backend`,
    as in `rj.identify`.
    **Errors:** `ValueError` if the runs are not those of the fit.
    """
    runs = stack_runs(measurements)
    if runs.names != fit.run_names:
        raise ValueError(
            f"`predictions` and `fitted_runs` take the runs of the fit, {fit.run_names}; got "
            f"{runs.names}."
        )
    run_settings = trial_simulation(
        resolve_simulation("fitted_runs", simulation, settings), runs.ts.dtype
    )
    results = []
    for b, length in enumerate(runs.lengths):
        sensors: Any = (StateReader(), *fit.sensors_by_run[b])
        experiment = Experiment(fit.models[b], fit.states[b], sensors)
        readings, _ = read_run(experiment, runs.ts[b], run_settings)
        states, *values = jax.tree.map(lambda x, n=length: _nan_if_infinite(x[:n]), readings)
        names = (sensor.name for sensor in fit.sensors)
        ts = np.asarray(runs.ts[b][:length])
        results.append(FittedRun(ts, states, dict(zip(names, values, strict=True))))
    return tuple(results)


@persistent_jit
def read_run(
    experiment: Experiment, ts: Any, simulation: Simulation
) -> tuple[tuple[Any, ...], RESULTS]:
    """Return the readings of all sensors at the times `ts` (T,), s, and the result of the run."""
    return simulate_readings(experiment, ts, simulation, during_solve=False)


def _nan_if_infinite(values: Array | np.ndarray) -> np.ndarray:
    values = np.asarray(values)
    return np.where(np.isfinite(values), values, np.nan)
