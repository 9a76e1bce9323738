"""A fit as an `xarray.Dataset`: estimates, their uncertainty, data, predictions and settings."""

import importlib.metadata
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._version import __version__

if TYPE_CHECKING:
    import xarray

    from ..identification import Fit, Measurements

_LEVEL = 0.95
_PACKAGES = ("jax", "jaxlib", "diffrax", "equinox", "optimistix", "numpy")


def fit_to_dataset(
    fit: "Fit",
    measurements: "Sequence[Measurements]",
    predictions: "Sequence[Mapping[str, np.ndarray]]",
    attributes: Mapping[str, str | int | float] | None = None,
) -> "xarray.Dataset":
    """Everything that a fit found, with the data it was made from.

    Dimensions are `parameter` (twice, `parameter_2`, for matrices), `bound` of the intervals, `run`
    and `sample`, and for each sensor its components and channels. Runs that are shorter than others
    are padded with NaN. Units are attributes. The attributes `converged` (0 or 1) and `result` say
    whether the estimates are any.

    **Arguments:** `fit`; `measurements`, those it was made with; `predictions`, see
    `rigidjax.identification.predictions`; `attributes`, further ones.
    **Returns:** an `xarray.Dataset` in memory; write it with `rj.io.save`.
    """
    import xarray

    variables = _estimates(fit)
    length = max(len(ts) for ts in fit.ts)
    axes: dict[str, Any] = {
        "parameter": list(fit.labels),
        "parameter_2": list(fit.labels),
        "bound": ["lower", "upper"],
        "run": list(fit.run_names),
    }
    variables["time"] = (("run", "sample"), _padded(fit.ts, length), {"units": "s"})
    for k, sensor in enumerate(fit.sensors):
        name = re.sub(r"\W+", "_", sensor.name).strip("_")
        channel = f"{name}_channel"
        axes[channel] = list(sensor.channels)
        component = [f"{name}_component"] if sensor.value_shape else []
        dims = ("run", "sample", *component)
        measured = [run.counted(k) for run in measurements]
        residuals = [run[sensor.name] for run in fit.residuals]
        predicted = [run[sensor.name] for run in predictions]
        text, unit = {"sensor": sensor.name}, fit.sensor_units[sensor.name]
        values = {"units": "1" if sensor.value_shape == (4,) else unit, **text}
        variables[f"{name}_measured"] = (dims, _padded(measured, length), values)
        variables[f"{name}_predicted"] = (dims, _padded(predicted, length), values)
        variables[f"{name}_residual"] = (
            ("run", "sample", channel),
            _padded(residuals, length),
            {"units": unit, "long_name": "predicted minus measured", **text},
        )
        variables |= _noise(name, channel, k, measurements, length, unit)
        tests = [fit.whiteness[sensor.name][c] for c in sensor.channels]
        variables[f"{name}_p_value"] = (
            (channel,),
            [np.nan if test is None else test.p_value for test in tests],
            {"units": "1", "long_name": "test of Ljung and Box that residuals are white", **text},
        )
    return xarray.Dataset(variables, axes, {**_attributes(fit), **(attributes or {})})


def _estimates(fit) -> dict[str, Any]:
    intervals = list(fit.confidence_intervals(_LEVEL).values())
    one, two = ("parameter",), ("parameter", "parameter_2")
    return {
        "estimate": (one, fit.values, {"long_name": "estimate, in `unit`"}),
        "standard_deviation": (one, list(fit.std.values()), {"long_name": "in `unit`"}),
        "interval": (
            (*one, "bound"),
            np.reshape(intervals, (-1, 2)),
            {"long_name": "confidence interval, in `unit`", "level": _LEVEL},
        ),
        "start": (one, fit.starts, {"long_name": "where the fit started, in `unit`"}),
        "unit": (one, list(fit.units)),
        "covariance": (two, fit.covariance, {"long_name": "in the product of the units"}),
        "correlation": (two, fit.correlations, {"units": "1"}),
    }


def _noise(name, channel, k, measurements, length, unit):
    noise = [run.noise[k] for run in measurements]
    if any(n is None for n in noise):
        return {}
    entry = ("run", "sample", channel), _padded(noise, length), {"units": unit}
    return {f"{name}_noise": entry}


def _attributes(fit) -> dict[str, Any]:
    return {
        "converged": int(fit.converged),
        "result": fit.result,
        "warning": ""
        if fit.converged
        else f"this fit did not converge ({fit.result}): its numbers are no estimates",
        "formulation": type(fit.model).__name__,
        "rotation": type(fit.model.rotation).__name__,
        "iterations": list(fit.iterations),
        "failed_evaluations": fit.failed_evaluations,
        "num_residuals": fit.num_residuals,
        "degrees_of_freedom": fit.degrees_of_freedom,
        "noise_is_known": int(fit.noise_is_known),
        "noise": fit.noise,
        "chi_square": fit.chi_square,
        "identifiable": int(fit.identifiability.identifiable),
        "rank": fit.identifiability.rank,
        "condition": fit.identifiability.condition,
        "verdict": "\n".join(fit.identifiability.messages),
        "warnings": "\n".join(fit.warnings),
        "notes": "\n".join(fit.notes),
        **{f"{package}_version": importlib.metadata.version(package) for package in _PACKAGES},
        "rigidjax_version": _version(),
    }


def _padded(arrays, length):
    arrays = [np.asarray(a, float) for a in arrays]
    out = np.full((len(arrays), length, *arrays[0].shape[1:]), np.nan)
    for row, array in zip(out, arrays, strict=True):
        row[: len(array)] = array
    return out


def _version():
    return __version__
