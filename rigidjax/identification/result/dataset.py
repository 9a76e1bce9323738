"""Conversion of a fit to an `xarray.Dataset`."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...extras import import_optional

if TYPE_CHECKING:
    import xarray

    from ..data.measurements import Measurements
    from .result import Fit

_LEVEL = 0.95


def fit_to_dataset(
    fit: "Fit",
    measurements: "Sequence[Measurements]",
    predictions: "Sequence[Mapping[str, np.ndarray]]",
    attributes: Mapping[str, str | int | float] | None = None,
) -> "xarray.Dataset":
    """Convert a fit to a dataset: estimates, their uncertainty, data, predictions and settings.

    Dimensions are `parameter` (and `parameter_2` for matrices), `bound` of the intervals, `run` and
    `sample`, and for each sensor its components and channels. Shorter runs are padded with NaN.
    Units are attributes. The attributes `converged` (0 or 1) and `result` say whether the estimates
    are valid.

    **Arguments:** `fit`, to describe; `measurements`, those of the fit; `predictions`, see
    `rigidjax.identification.predictions`; `attributes`, to add.
    **Returns:** an `xarray.Dataset` in memory; write it with `rj.io.save`.
    """
    xarray = import_optional("xarray", "Datasets of fits")

    variables = _estimates(fit)
    length = max(len(ts) for ts in fit.ts)
    axes: dict[str, Any] = {
        "parameter": list(fit.labels),
        "parameter_2": list(fit.labels),
        "bound": ["lower", "upper"],
        "run": list(fit.run_names),
    }
    variables["time"] = (("run", "sample"), _pad_with_nan(fit.ts, length), {"units": "s"})
    for k, sensor in enumerate(fit.sensors):
        name = re.sub(r"\W+", "_", sensor.name).strip("_")
        channel = f"{name}_channel"
        axes[channel] = list(sensor.channels)
        component = [f"{name}_component"] if sensor.value_shape else []
        dims = ("run", "sample", *component)
        measured = [run.sample_mask(k) for run in measurements]
        residuals = [run[sensor.name] for run in fit.residuals]
        predicted = [run[sensor.name] for run in predictions]
        text, unit = {"sensor": sensor.name}, fit.sensor_units[sensor.name]
        values = {"units": "1" if sensor.value_shape == (4,) else unit, **text}
        variables[f"{name}_measured"] = (dims, _pad_with_nan(measured, length), values)
        variables[f"{name}_predicted"] = (dims, _pad_with_nan(predicted, length), values)
        variables[f"{name}_residual"] = (
            ("run", "sample", channel),
            _pad_with_nan(residuals, length),
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


def _estimates(fit: "Fit") -> dict[str, Any]:
    intervals = list(fit.confidence_intervals(_LEVEL).values())
    vector, matrix = ("parameter",), ("parameter", "parameter_2")
    return {
        "estimate": (vector, fit.values, {"long_name": "estimate, in `unit`"}),
        "standard_deviation": (vector, list(fit.std.values()), {"long_name": "in `unit`"}),
        "interval": (
            (*vector, "bound"),
            np.reshape(intervals, (-1, 2)),
            {"long_name": "confidence interval, in `unit`", "level": _LEVEL},
        ),
        "start": (vector, fit.starts, {"long_name": "where the fit started, in `unit`"}),
        "unit": (vector, list(fit.units)),
        "covariance": (matrix, fit.covariance, {"long_name": "in the product of the units"}),
        "correlation": (matrix, fit.correlations, {"units": "1"}),
    }


def _noise(
    name: str, channel: str, k: int, measurements: "Sequence[Measurements]", length: int, unit: str
) -> dict[str, Any]:
    """Return the noise of the sensor `k`; empty if it is not known in all runs."""
    noise = [run.noise[k] for run in measurements]
    if any(n is None for n in noise):
        return {}
    entry = ("run", "sample", channel), _pad_with_nan(noise, length), {"units": unit}
    return {f"{name}_noise": entry}


def _attributes(fit: "Fit") -> dict[str, Any]:
    # Imported here because reports of identification use this package.
    from .report import software_versions

    own = ("result", "failed_evaluations", "num_residuals", "degrees_of_freedom", "noise",
           "chi_square")  # fmt: skip
    return {
        **{name: getattr(fit, name) for name in own},
        "intervals": str(fit.verdict),
        "covariance_method": fit.method,
        "converged": int(fit.converged),
        "warning": ""
        if fit.converged
        else f"this fit did not converge ({fit.result}): its values are not estimates",
        "formulation": type(fit.model).__name__,
        "rotation": type(fit.model.rotation).__name__,
        "iterations": list(fit.iterations),
        "noise_is_known": int(fit.noise_is_known),
        "identifiable": int(fit.identifiability.identifiable),
        "rank": fit.identifiability.rank,
        "condition": fit.identifiability.condition,
        "verdict": "\n".join(fit.identifiability.messages),
        "warnings": "\n".join(fit.warnings),
        "notes": "\n".join(fit.notes),
        **{f"{package}_version": version for package, version in software_versions().items()},
    }


def _pad_with_nan(arrays: Iterable[Any], length: int) -> np.ndarray:
    arrays = [np.asarray(a, float) for a in arrays]
    out = np.full((len(arrays), length, *arrays[0].shape[1:]), np.nan)
    for row, array in zip(out, arrays, strict=True):
        row[: len(array)] = array
    return out
