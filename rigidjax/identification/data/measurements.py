"""Measurements of one run, and batches of several runs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float

from ...checks import as_leaf, check_increasing, check_sample_times, float_array
from ...sensors import AbstractSensor
from ..experiment.checked_arguments import check_noise, check_sensors
from ..experiment.inputs import check_inputs, pad_rows

# Times closer than this fraction of the whole span are equal up to round-off.
_SAME = 1e-9


class Measurements(eqx.Module):
    """The samples of all sensors in one run.

    **Arguments:**

    - `ts`: times of the samples, strictly increasing, shape (T,), s. The run starts at `ts[0]`.
    - `values`: for each sensor its samples, shape (T, *sensor.value_shape), in the sensor's unit.
    - `noise`: standard deviation of a sensor's noise, one number, one per channel (C,), or one per
      sample and channel (T, C). Where it is left out, it is estimated from the residuals, one
      number per sensor.
    - `mask`: for a sensor with gaps, where its samples count, shape (T,) or (T, C).
    - `name`: of the run, for reports.
    - `inputs`: measured inputs of the run, by the name of an `rj.Signal` or an `rj.Input` of the
      model: a pair of times (K,) and values. They replace the table of the signal; an input gets
      them with linear interpolation.
    - `time_zero`: the date and time of 0 s, ISO 8601, if known: see `read_csv`.

    **Errors:** `ValueError` and `TypeError` for wrong shapes, times out of order, values that are
    not finite (outside the mask), non-positive noise.
    """

    ts: Float[Array, " T"]
    sensors: tuple[AbstractSensor, ...]
    values: tuple[Array, ...]
    noise: tuple[Float[Array, "T C"] | None, ...]
    mask: tuple[Bool[Array, "T C"], ...]
    inputs: dict[str, tuple[Array, Array]]
    name: str = eqx.field(static=True)
    time_zero: str | None = eqx.field(static=True)

    def __init__(
        self,
        ts: ArrayLike,
        values: Mapping[Any, ArrayLike],
        noise: Mapping[Any, ArrayLike] | None = None,
        *,
        mask: Mapping[Any, ArrayLike] | None = None,
        name: str = "",
        inputs: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
        time_zero: str | None = None,
    ):
        if not isinstance(values, Mapping) or not values:
            raise ValueError(
                "`Measurements(ts, values)` takes a dictionary such as {rj.Gyroscope(): samples}; "
                f"got {values!r}."
            )
        if not isinstance(noise, Mapping | None):
            raise TypeError(f"`Measurements(noise=...)` is a number by sensor; got {noise!r}.")
        noise = {} if noise is None else dict(noise)
        mask = {} if mask is None else dict(mask)
        for argument, given in (("values", values), ("noise", noise), ("mask", mask)):
            for sensor in check_sensors(
                f"The keys of `Measurements({argument}=...)` must be", given
            ):
                if sensor not in values:
                    raise ValueError(
                        f"`Measurements({argument}=...)` names the sensor {sensor.name!r}, which "
                        "has no values."
                    )
        self.ts = as_leaf(check_sample_times(ts, "Measurements(ts=...)"))
        self.sensors = tuple(values)
        self.mask = tuple(_check_mask(s, mask.get(s), len(self.ts)) for s in values)
        self.values = tuple(
            _check_samples(s, values[s], m, len(self.ts))
            for s, m in zip(values, self.mask, strict=True)
        )
        wrong, most = "positive and finite, in {}", np.finfo(float).max
        self.noise = tuple(
            as_leaf(check_noise(s, noise[s], len(self.ts), wrong.format(s.unit), most))
            if noise.get(s) is not None
            else None
            for s in values
        )
        self.inputs = check_inputs(inputs)
        self.name = name
        self.time_zero = time_zero

    def __repr__(self) -> str:
        names = ", ".join(sensor.name for sensor in self.sensors)
        return f"Measurements({np.size(self.ts)} times: {names})"

    @classmethod
    def merged(
        cls,
        series: Mapping[Any, tuple[ArrayLike, ArrayLike]],
        noise: Mapping[Any, ArrayLike] | None = None,
        *,
        mask: Mapping[Any, ArrayLike] | None = None,
        name: str = "",
        inputs: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
        time_zero: str | None = None,
    ) -> "Measurements":
        """Return one run of sensors with different sampling times, such as different rates.

        Its times are the union of all times, with gaps where a sensor has no sample; times that
        differ by less than 1e-9 of the run are merged. All clocks must agree.

        **Arguments:** `series`: for each sensor its times (T,), strictly increasing, s, and its
        samples (T, *sensor.value_shape); `noise`, `mask`, `name`, `inputs` and `time_zero` as in
        `Measurements`, for the sensor's own samples.
        **Errors:** those of `Measurements`; `ValueError` if times and samples differ in number.
        """
        return cls(**_merge(series, noise, mask), name=name, inputs=inputs, time_zero=time_zero)

    def sample_mask(self, k: int) -> np.ndarray:
        """Return the samples of sensor number `k`, (T, *value_shape), NaN where masked."""
        values = np.asarray(self.values[k])
        used = _used_elements(self.mask[k], (len(values), values[0].size))
        return np.where(used.reshape(values.shape), values, np.nan)


class Runs(eqx.Module):
    """A batch of runs of different length, padded in time with zero weights.

    **Attributes:** `ts` (B, T), padded with the last time; for each sensor `values` (B, T, ...) and
    `weights` (B, T, C), the reciprocals of the noise; `inputs` of each run; `lengths` (B,) and
    `names`, static; `has_noise`, whether the noise of each sensor was given.
    """

    ts: Float[Array, "B T"]
    values: tuple[Array, ...]
    weights: tuple[Float[Array, "B T C"], ...]
    inputs: tuple[dict[str, tuple[Array, Array]], ...]
    sensors: tuple[AbstractSensor, ...]
    lengths: tuple[int, ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    has_noise: tuple[bool, ...] = eqx.field(static=True)

    @property
    def noise_is_known(self) -> bool:
        """Whether the noise of every sensor was given."""
        return all(self.has_noise)

    @property
    def num_samples(self) -> int:
        """Number of scalar residuals that count."""
        return int(sum(np.count_nonzero(np.asarray(w)) for w in self.weights))

    def by_sensor(
        self, residuals: ArrayLike
    ) -> Iterator[tuple[AbstractSensor, np.ndarray, np.ndarray]]:
        """Yield sensors with their weights and weighted residuals (B, T, C), from all (B, N)."""
        begin = 0
        for sensor, weights in zip(self.sensors, map(np.asarray, self.weights), strict=True):
            end = begin + weights[0].size
            yield sensor, weights, np.asarray(residuals)[:, begin:end].reshape(weights.shape)
            begin = end


def stack_runs(measurements: "Measurements | Sequence[Measurements]") -> Runs:
    """Return several runs as one batch.

    **Errors:** `TypeError` for objects other than `Measurements`; `ValueError` for none, for runs
    with different sensors, and for noise of a sensor given for some runs only.
    """
    runs = [measurements] if isinstance(measurements, Measurements) else list(measurements)
    if not runs:
        raise ValueError("`identify(measurements=...)` needs at least one run; got none.")
    for run in runs:
        if not isinstance(run, Measurements):
            raise TypeError(
                "`identify(measurements=...)` takes a `Measurements` or a list of them; got "
                f"{type(run).__name__}."
            )
    first = runs[0]
    for run in runs[1:]:
        if [s.name for s in run.sensors] != [s.name for s in first.sensors]:
            raise ValueError(
                "All runs must have the same sensors in the same order; got "
                f"{[s.name for s in first.sensors]} and {[s.name for s in run.sensors]}."
            )
    given = [[run.noise[k] is not None for run in runs] for k in range(len(first.sensors))]
    partial = [k for k, known in enumerate(given) if any(known) != all(known)]
    if partial:
        parts = []
        for k in partial:
            lacking = [run.name or str(i) for i, run in enumerate(runs, 1) if run.noise[k] is None]
            parts.append(f"the {first.sensors[k].name} in the runs {lacking}")
        raise ValueError(
            "`Measurements(noise=...)` of a sensor must be given for every run, or for none, to "
            f"estimate it from the residuals. It lacks {', '.join(parts)}."
        )
    length = max(len(run.ts) for run in runs)

    # NumPy stacks without compiling; JAX would compile each operation separately.
    def stack_arrays(arrays: Any) -> Array:
        return as_leaf(np.stack(arrays))

    def weight(mask: Any, noise: Any, ts: Any) -> np.ndarray:
        weight = np.asarray(mask).astype(ts.dtype)
        return weight if noise is None else weight / np.asarray(noise)

    weights = [
        [weight(m, s, run.ts) for m, s in zip(run.mask, run.noise, strict=True)] for run in runs
    ]
    each = range(len(first.sensors))
    return Runs(
        ts=stack_arrays([pad_rows(run.ts, length) for run in runs]),
        values=tuple(stack_arrays([pad_rows(run.values[k], length) for run in runs]) for k in each),
        weights=tuple(
            stack_arrays([pad_rows(w[k], length, "constant") for w in weights]) for k in each
        ),
        inputs=tuple(run.inputs for run in runs),
        sensors=first.sensors,
        lengths=tuple(len(run.ts) for run in runs),
        names=tuple(run.name or str(i + 1) for i, run in enumerate(runs)),
        has_noise=tuple(map(all, given)),
    )


def rescale_weights(runs: Runs, noise: Sequence[float]) -> Runs:
    """Return the runs with weights divided by the `noise` of each sensor."""
    weights = tuple(w / s for w, s in zip(runs.weights, noise, strict=True))
    return eqx.tree_at(lambda r: r.weights, runs, weights)


def _check_mask(sensor: Any, mask: Any, length: int) -> Any:
    shape = (length, len(sensor.channels))
    if mask is None:
        return as_leaf(np.ones(shape, bool))
    mask = np.asarray(mask)
    if mask.dtype != bool or mask.shape not in (shape, shape[:1]):
        raise ValueError(
            f"`Measurements(mask=...)` of the sensor {sensor.name!r} must be True or False, shape "
            f"{shape[:1]} or {shape}; got {mask.dtype} of shape {mask.shape}."
        )
    return as_leaf(np.broadcast_to(mask[:, None] if mask.ndim == 1 else mask, shape))


def _used_elements(mask: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return which elements of samples count, (T, size): of an orientation all, or none."""
    mask = np.asarray(mask)
    return mask if mask.shape == shape else np.broadcast_to(mask.any(axis=1)[:, None], shape)


def _check_samples(sensor: Any, values: Any, mask: Any, length: int) -> Any:
    argument = f"values of the sensor {sensor.name!r}"
    shape = (length, *sensor.value_shape)
    array: Any = np.asarray(float_array(values, argument))
    if array.shape != shape:
        column = " Pass its column, `values[..., 0]`." if array.shape == (*shape, 1) else ""
        raise ValueError(f"The {argument} must have shape {shape}; got {array.shape}.{column}")
    flat = array.reshape(length, -1)
    used = _used_elements(mask, flat.shape)
    valid = np.isfinite(flat)
    bad = np.flatnonzero((used & ~valid).any(axis=1))
    if bad.size:
        raise ValueError(
            f"The {argument} are not finite at sample {bad[0]}. Leave gaps out with "
            "`Measurements(mask=...)`."
        )
    if not used.any(axis=0).all():
        raise ValueError(f"The {argument} have a channel in which every sample is masked.")
    if not valid.all():
        # Gaps take the value of the last valid sample, so that no NaN reaches a derivative.
        last = np.maximum.accumulate(np.where(valid, np.arange(length)[:, None], -1), axis=0)
        last = np.where(last < 0, valid.argmax(axis=0), last)
        array = np.take_along_axis(flat, last, axis=0).reshape(shape)
    return as_leaf(sensor.check_values(array, argument))


def _merge(
    series: Mapping[Any, tuple[Any, Any]],
    noise: Mapping[Any, Any] | None,
    mask: Mapping[Any, Any] | None,
) -> dict[str, Any]:
    """Merge series of sensors on the union of their times, with gaps between their samples.

    **Arguments, errors:** as `Measurements.merged`.
    **Returns:** `ts`, `values`, `noise` and `mask` of `Measurements`.
    """
    if not isinstance(series, Mapping) or not series:
        raise ValueError(
            "`Measurements.merged(series)` takes a dictionary such as {rj.Gyroscope(): (ts, "
            f"samples)}}; got {series!r}."
        )
    no_noise = not noise
    noise, mask = dict(noise or {}), dict(mask or {})
    checked = {sensor: _check_series(sensor, pair) for sensor, pair in series.items()}
    ts = np.unique(np.concatenate([times for times, _ in checked.values()]))
    same = np.diff(ts, prepend=-np.inf) <= _SAME * (ts[-1] - ts[0])
    ts = ts[~same]
    samples, stds, masks = {}, {}, {}
    for sensor, (times, values) in checked.items():
        rows = np.searchsorted(ts, times, side="right") - 1
        samples[sensor] = _scatter_rows(values, rows, len(ts), np.nan)
        is_valid = np.asarray(mask.pop(sensor, np.ones(len(times), bool)))
        masks[sensor] = _scatter_rows(is_valid, rows, len(ts), False)
        deviation = noise.pop(sensor, None)
        if deviation is not None:
            deviation = np.asarray(deviation, float)
            stds[sensor] = (
                _scatter_rows(deviation, rows, len(ts), 1.0) if deviation.ndim == 2 else deviation
            )
    for argument, unused in (("noise", noise), ("mask", mask)):
        if unused:
            names = [getattr(sensor, "name", sensor) for sensor in unused]
            raise ValueError(
                f"`Measurements.merged({argument}=...)` names {names}, which have no values."
            )
    return {"ts": ts, "values": samples, "noise": None if no_noise else stds, "mask": masks}


def _check_series(sensor: Any, pair: Any) -> tuple[np.ndarray, np.ndarray]:
    name = getattr(sensor, "name", sensor)
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise ValueError(
            f"`Measurements.merged(series)` takes a pair (ts, values) for the sensor {name!r}; got "
            f"{type(pair).__name__}."
        )
    times, values = np.asarray(pair[0], float), np.asarray(pair[1], float)
    if times.ndim != 1 or len(times) == 0 or len(values) != len(times):
        raise ValueError(
            f"The sensor {name!r} needs as many times, shape (T,), as values; got {times.shape} "
            f"and {values.shape}."
        )
    if not np.isfinite(times).all():
        raise ValueError(f"The times of the sensor {name!r} must be finite numbers, s.")
    check_increasing(f"The times of the sensor {name!r}", times)
    return times, values


def _scatter_rows(values: np.ndarray, rows: np.ndarray, length: int, fill: Any) -> np.ndarray:
    if len(values) != len(rows):
        raise ValueError(
            f"Noise and mask of a series with {len(rows)} samples must have as many rows; got "
            f"{len(values)}."
        )
    scattered = np.full((length, *values.shape[1:]), fill, values.dtype)
    scattered[rows] = values
    return scattered
