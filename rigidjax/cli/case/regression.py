"""Cases of `rigidjax regress`: a model file, and recorded positions and torques of its joints."""

import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...bodies import MassProperties
from ...identification import (
    JointData,
    Measurements,
    differentiate,
    joint_data,
    lowpass,
    resample,
    stack_joint_data,
)
from ...identification.data.units import factor
from ...identification.regression.link_frames import describe_in_frames, without_constants
from ...mechanics import rate_labels
from ...models import Model
from .data import ReadColumns, Source, read_common, read_series
from .model import read_model_file
from .preparation import Cut
from .table import CaseTable, array_of_tables, read_toml, top_table

_TABLES = (
    "title", "model", "data", "position", "rate", "acceleration", "torque", "recording", "filter",
    "coupled", "regress", "prior", "output",
)  # fmt: skip
_QUANTITIES = {"position": ("angle", "length"), "torque": ("moment", "force")}
_QUANTITIES |= {"rate": ("angular velocity", "velocity"), "acceleration": ("acceleration",)}


class RegressionOutputs(NamedTuple):
    """Output files; `None` for files that are not written."""

    report: pathlib.Path | None
    csv: pathlib.Path | None
    model: pathlib.Path | None


class RegressionCase(NamedTuple):
    """The content of a case of `rigidjax regress`.

    **Attributes:** `title`, `text` of the file; `model`, its `path` and the `options` it was loaded
    with; `data`; `prior`, mass properties in the frames of the links; `terms`, of the joints;
    `settings` of `regress`; `essential`, the least ratio of a parameter to its standard deviation,
    and `consistent`, the weight of the prior, `None` if not asked for; `outputs`; `files`.
    """

    title: str
    text: str
    model: Model
    path: pathlib.Path
    options: dict[str, Any]
    data: JointData
    prior: dict[str, MassProperties]
    terms: tuple[str, ...]
    settings: dict[str, Any]
    essential: float | None
    consistent: float | None
    outputs: RegressionOutputs
    files: tuple[str, ...]


class _Filter(NamedTuple):
    """Filter of the samples: `cutoff`, Hz, or `None`; `window` of derivatives, s; `margin`, s, left
    out at both ends; `every`, thinning after the filter; `rest`, least rate of all joints, rad/s
    or m/s."""

    cutoff: float | None
    window: float
    margin: float
    every: int
    rest: float


class _Channel(NamedTuple):
    """Columns of a quantity at the motors, with the factor to SI units and joints."""

    table: CaseTable
    columns: str | tuple[str, ...]
    scale: float
    gear: np.ndarray
    zero: np.ndarray


def read_regression_case(path: str | os.PathLike[str]) -> RegressionCase:
    """Read a case of `rigidjax regress` from a TOML file; nothing in it is executed.

    **Errors:** `ValueError` that names the file and the table or line; `OSError` for files that
    cannot be read.
    """
    path = pathlib.Path(path)
    content, text = read_toml(path)
    top = top_table(path, content, _TABLES)
    title = top.text("title", path.stem)
    table = top.table("model", {})
    if not table.has("file"):
        table.fail("`file` is missing; name the URDF, SDF or MJCF file of the robot.")
    model_path = path.parent / table.text("file")
    model, options = read_model_file(table, model_path, path.parent, {"fixed_base": True})
    table.reject_unknown()
    terms, settings, essential, consistent = _read_regress(top)
    common, cut = read_common(top, path.parent)
    channels = _read_channels(top, len(rate_labels(model.system)))
    chosen = _read_filter(top)
    coupled = {
        t.text("name"): _numbers_by_name(t, "joints") for t in array_of_tables(top, "coupled")
    }
    system, prior = describe_in_frames(model.system, model.frames)
    system = without_constants(system, terms)
    parts, files = [], [str(model_path)]
    for recording, source, loads in _recordings(top, path.parent, common, model, prior):
        runs, used = _read_runs(recording, channels, source, path.parent, cut)
        files += used
        for run in runs:
            values = recording.call(_filter_run, run, channels, chosen, model)
            parts.append(
                recording.call(
                    joint_data, system, *values, terms=terms, coupled=coupled, loads=loads
                )
            )
    prior |= {name: load for name, load in _read_bodies(top, "prior", model)}
    outputs = top.table("output", {})
    names = {key: outputs.text(key, None) for key in RegressionOutputs._fields}
    outputs.reject_unknown()
    for key in top.values:
        top.fail(f"[{key}] is not used by `rigidjax regress`; remove it.")
    return RegressionCase(
        title,
        text,
        model,
        model_path,
        options,
        stack_joint_data(parts),
        prior,
        terms,
        settings,
        essential,
        consistent,
        RegressionOutputs(*(None if n is None else path.parent / n for n in names.values())),
        tuple(dict.fromkeys(files)),
    )


def _read_regress(
    top: CaseTable,
) -> tuple[tuple[str, ...], dict[str, Any], float | None, float | None]:
    """Read `[regress]`: terms, arguments of `regress`, and what follows it."""
    table = top.table("regress", {})
    terms = table.texts("terms", ())
    settings: dict[str, Any] = {}
    if table.has("noise"):
        settings["noise"] = table.numbers("noise")
    if table.has("tolerance"):
        settings["tolerance"] = table.number("tolerance")
    if table.has("covariance"):
        settings["covariance"] = table.text("covariance")
    thresholds = []
    for key, default in (("essential", 1.0), ("consistent", 1.0)):
        value = table.values.pop(key, False)
        table.requested.add(key)
        if not isinstance(value, int | float) or value < 0:
            table.fail(f"`{key}` must be true, false, or a positive number; got {value!r}.")
        thresholds.append((default if value is True else float(value)) if value else None)
    table.reject_unknown()
    return terms, settings, *thresholds


def _read_filter(top: CaseTable) -> _Filter:
    table = top.table("filter", {})
    cutoff = table.number("cutoff", None)
    numbers = {
        "window": table.number("window", None if cutoff is None else 0.5 / cutoff),
        "margin": table.number("margin", 0.0 if cutoff is None else 2.0 / cutoff),
        "rest": table.number("rest", 0.0),
    }
    for key, value in {"cutoff": cutoff, **numbers}.items():
        if value is not None and not 0 <= value < np.inf:
            table.fail(f"`{key}` must not be negative; got {value}.")
    every = table.take("every", "an integer", 1)
    if every < 1:
        table.fail(f"`every` must be 1 or more; got {every}.")
    table.reject_unknown()
    return _Filter(cutoff, every=every, **numbers)


def _read_channels(top: CaseTable, count: int) -> dict[str, _Channel]:
    """Read `[position]`, `[rate]`, `[acceleration]` and `[torque]`; `count` joints."""
    channels: dict[str, _Channel] = {}
    for key in ("position", "rate", "acceleration", "torque"):
        if not top.has(key):
            if key in ("position", "torque"):
                top.fail(f"[{key}] is missing; it names the columns of the {key}s of all joints.")
            continue
        table = top.table(key)
        columns = table.take("columns", "an array") if _is_array(table) else table.text("columns")
        unit = table.text("unit", None)
        scale = 1.0 if unit is None else table.call(factor, unit, *_QUANTITIES[key])
        first = channels.get("position")
        gear = table.numbers("gear", 1.0 if first is None else first.gear)
        zero = table.numbers("zero", 0.0) if key == "position" else 0.0
        channels[key] = _Channel(
            table,
            tuple(columns) if isinstance(columns, list) else columns,
            scale,
            _matrix_of_gear(table, gear, count),
            table.call(lambda x: np.broadcast_to(np.asarray(x, float), (count,)), zero),
        )
    return channels


def _is_array(table: CaseTable) -> bool:
    return isinstance(table.values.get("columns"), list)


def _matrix_of_gear(table: CaseTable, gear: Any, count: int) -> np.ndarray:
    """Return the matrix from rates of joints to those of motors, (f, f)."""
    matrix = np.asarray(gear, float)
    if matrix.ndim < 2 and matrix.size in (1, count):
        matrix = np.diag(np.broadcast_to(matrix, (count,)))
    if matrix.shape != (count, count) or np.linalg.matrix_rank(matrix) < count:
        table.fail(
            f"`gear` must be one ratio, {count} of them, or a regular matrix ({count}, {count}) of "
            f"rows with the motion of each motor by joints; got shape {np.shape(gear)}."
        )
    return matrix


def _numbers_by_name(table: CaseTable, key: str) -> dict[str, float]:
    part = table.table(key)
    values = {name: part.number(name) for name in list(part.values)}
    table.reject_unknown()
    return values


def _recordings(
    top: CaseTable,
    folder: pathlib.Path,
    common: Source,
    model: Model,
    nominal: Mapping[str, MassProperties],
) -> list[tuple[CaseTable, Source, dict[str, MassProperties]]]:
    """Return the recordings of a case: one of `[data]`, or those of `[[recording]]` with loads."""
    tables = list(array_of_tables(top, "recording"))
    if not tables:
        return [(CaseTable({}, f"{top.where}, [data]"), common, {})]
    recordings = []
    for table in tables:
        source = common
        if table.has("file"):
            source = common._replace(file=folder / table.text("file"))
        loads = dict(_read_bodies(table, "load", model))
        table.reject_unknown()
        recordings.append((table, source, loads))
    return recordings


def _read_bodies(top: CaseTable, key: str, model: Model) -> list[tuple[str, MassProperties]]:
    """Read tables of mass properties, in the frame of a link or of the body of a name."""
    found = []
    for table in array_of_tables(top, key):
        name = table.text("body")
        if name not in model.names.bodies:
            table.fail(f"`body` must be one of {list(model.names.bodies)}; got {name!r}.")
        found.append((name, table.build(MassProperties)))
    return found


def _read_runs(
    recording: CaseTable,
    channels: Mapping[str, _Channel],
    source: Source,
    folder: pathlib.Path,
    cut: Cut | None,
) -> tuple[list[Measurements], list[str]]:
    """Return the runs of a recording, with a reader of columns for each channel, in order."""
    files, by_channel = [], []
    for key, channel in channels.items():
        table = CaseTable(channel.table.values, channel.table.where)
        names = (channel.columns,) if isinstance(channel.columns, str) else channel.columns
        count = len(channel.gear)
        if not isinstance(channel.columns, str) and len(names) != count:
            table.fail(f"`columns` must be {count}, one for each joint; got {len(names)}.")
        reader = ReadColumns(count, key)
        runs, file = read_series(table, folder, source, reader, channel.columns)
        table.reject_unknown()
        files.append(file)
        by_channel.append(runs)
    if len({len(runs) for runs in by_channel}) > 1:
        recording.fail(f"the channels differ in their runs: {[len(r) for r in by_channel]}.")
    merged = [
        recording.call(_on_one_clock, list(channels), runs)
        for runs in zip(*by_channel, strict=True)
    ]
    if cut is not None:
        merged = cut.apply(merged, source.column, source.clock.read_column)
    return merged, files


def _on_one_clock(keys: Sequence[str], runs: Sequence[Measurements]) -> Measurements:
    """Return the channels of one run at the times of its positions."""
    ts = np.asarray(runs[0].ts)
    begin, end = max(float(r.ts[0]) for r in runs), min(float(r.ts[-1]) for r in runs)
    ts = ts[(ts >= begin) & (ts <= end)]
    values = {}
    for key, run in zip(keys, runs, strict=True):
        if not np.asarray(run.mask[0]).all():
            raise ValueError(f"the columns of [{key}] have gaps; cut the recording there.")
        samples = np.asarray(run.values[0]).reshape(len(run.ts), -1)
        same = len(ts) == len(run.ts) and np.array_equal(ts, run.ts)
        samples = samples if same else resample(run.ts, samples, ts)
        values[ReadColumns(samples.shape[1], key)] = samples.reshape(
            len(ts), *ReadColumns(samples.shape[1], key).value_shape
        )
    return Measurements(ts, values, name=runs[0].name)


def _filter_run(
    run: Measurements, channels: Mapping[str, _Channel], chosen: _Filter, model: Model
) -> list[np.ndarray]:
    """Return coordinates, rates, accelerations and torques of the joints, (S, f)."""
    ts = np.asarray(run.ts)
    period = float(np.mean(np.diff(ts)))
    window = 4 * period if chosen.window is None else max(chosen.window, 4 * period)
    joint: dict[str, np.ndarray] = {}
    for (key, channel), values in zip(channels.items(), run.values, strict=True):
        samples = channel.scale * np.asarray(values).reshape(len(ts), -1)
        if chosen.cutoff is not None:
            samples = lowpass(ts, samples, chosen.cutoff)
        gear = channel.gear
        joint[key] = samples @ gear if key == "torque" else np.linalg.solve(gear, samples.T).T
    q = joint["position"] + channels["position"].zero
    # The reference configuration of a model may have another coordinate than zero in its file.
    q = q - np.array([model.zeros.get(name, 0.0) for name in rate_labels(model.system)])
    rate, acceleration = joint.get("rate"), joint.get("acceleration")
    if rate is None:
        rate = differentiate(ts, q, window=window)
    if acceleration is None and "rate" in joint:
        acceleration = differentiate(ts, rate, window=window)
    elif acceleration is None:
        acceleration = differentiate(ts, q, window=window, derivative=2)
    inside = (ts >= ts[0] + chosen.margin) & (ts <= ts[-1] - chosen.margin)
    moving = (np.abs(rate) >= chosen.rest).all(axis=1)
    rows = np.flatnonzero(inside & moving)[:: chosen.every]
    if not rows.size:
        raise ValueError(
            f"the run {run.name or 'of the file'} has no sample outside of the margins, "
            f"{chosen.margin:g} s, in which every joint moves at {chosen.rest:g} or more."
        )
    return [x[rows] for x in (q, rate, acceleration, joint["torque"])]


def check_model_output(path: pathlib.Path, case: RegressionCase) -> None:
    """Raise `ValueError` if a fitted model is to be written and no consistent bodies are found."""
    if case.consistent is None:
        raise ValueError(
            f"The fitted model {path} needs `consistent` in [regress]: least squares alone may "
            "give bodies that do not exist. Write `consistent = true`."
        )
