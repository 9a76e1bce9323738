"""What the sensors of a fitted model read at the times of the samples."""

from collections.abc import Sequence
from typing import Any

import diffrax
import equinox as eqx
import jax
import numpy as np

from ..projection import AbstractProjection
from ..simulate import simulate
from .fit import Fit
from .measurements import Measurements, stack_runs


def predictions(
    fit: Fit,
    measurements: Measurements | Sequence[Measurements],
    *,
    solver: diffrax.AbstractSolver | None = None,
    rtol: float = 1e-8,
    atol: float = 1e-8,
    projection: bool | AbstractProjection = True,
    max_steps: int = 4096,
) -> tuple[dict[str, np.ndarray], ...]:
    """Predicted values of all sensors, of each run by the sensor's name, (T, *value_shape).

    Also where samples are masked. **Arguments:** `fit`; `measurements`, those it was made with;
    the others as in `rj.identify`.
    **Returns:** one dictionary for each run; NaN from where a simulation failed.
    **Errors:** `ValueError` if there are not as many runs as in the fit.
    """
    runs = stack_runs(measurements)
    if runs.names != fit.run_names:
        raise ValueError(
            f"`predictions(measurements=...)` takes the runs of the fit, {fit.run_names}; got "
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
            return tuple(sensor.predict(model, t, y) for sensor in sensors)

        # Times are given again: where a run ends early, those of the solution are infinite.
        return jax.vmap(read)(ts, solution.ys)

    out = []
    for b, length in enumerate(runs.lengths):
        values = predict(fit.models[b], fit.states[b], fit.sensors_by_run[b], runs.ts[b])
        found = {}
        for sensor, value in zip(fit.sensors, values, strict=True):
            value = np.asarray(value)[:length]
            found[sensor.name] = np.where(np.isfinite(value), value, np.nan)
        out.append(found)
    return tuple(out)
