"""What the sensors of a fitted model read at the times of the samples."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import numpy as np

from ...projection import AbstractProjection
from ...simulate import simulate
from ...state import State
from ..data.measurements import Measurements, stack_runs
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
    solver: diffrax.AbstractSolver | None = None,
    rtol: float = 1e-8,
    atol: float = 1e-8,
    projection: bool | AbstractProjection = True,
    max_steps: int = 4096,
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
    solver = diffrax.Dopri5() if solver is None else solver

    @eqx.filter_jit
    def predict(model: Any, state: Any, sensors: Any, ts: Any):
        solution = simulate(
            model,
            state,
            ts[-1],
            t0=ts[0],
            ts=ts,
            solver=solver,
            rtol=rtol,
            atol=atol,
            projection=projection,
            max_steps=max_steps,
            throw=False,
        )

        def read(t, y):
            return model.decode(t, y), tuple(sensor.predict(model, t, y) for sensor in sensors)

        # Times are given again: where a run ends early, those of the solution are infinite.
        return jax.vmap(read)(ts, solution.ys)

    out = []
    for b, length in enumerate(runs.lengths):
        read = predict(fit.models[b], fit.states[b], fit.sensors_by_run[b], runs.ts[b])
        states, values = jax.tree.map(lambda x, n=length: _finite(x[:n]), read)
        names = (sensor.name for sensor in fit.sensors)
        ts = np.asarray(runs.ts[b][:length])
        out.append(FittedRun(ts, states, dict(zip(names, values, strict=True))))
    return tuple(out)


def _finite(values):
    values = np.asarray(values)
    return np.where(np.isfinite(values), values, np.nan)
