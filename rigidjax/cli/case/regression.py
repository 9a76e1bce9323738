"""Cases of `rigidjax regress`: a model file, and recorded positions and torques of its joints."""

import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field, Strict

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
from ...identification.regression.regressor import describe_in_frames, without_constants
from ...mechanics import rate_labels
from ...models import Model
from .data import DataTable, ReadColumns, Reader, SourceTable
from .model import ModelTable
from .schema import (
    CaseTable,
    Count,
    File,
    Kind,
    Number,
    Numbers,
    OutputTable,
    PartTable,
    Size,
    Text,
    TextOrTexts,
    Texts,
    parse,
    read_toml,
)

_QUANTITIES = {"position": ("angle", "length"), "torque": ("moment", "force")}
_QUANTITIES |= {"rate": ("angular velocity", "velocity"), "acceleration": ("acceleration",)}


# `true` is 1.0; `false` is 0.0, as if left out.
_Threshold = Annotated[float, Strict(False), Field(ge=0), Kind("true, false, or a positive number")]


class ChannelTable(SourceTable, extra="forbid"):
    """`[position]`, `[torque]`, ...: columns of a quantity at the motors, units and gears."""

    columns: TextOrTexts
    unit: Text | None = None
    gear: Numbers = None
    zero: Numbers = 0.0


class LoadTable(PartTable):
    """A load or a prior: mass properties in the frame of a link or of the body of a name."""

    body: Text


class RecordingTable(CaseTable):
    """`[[recording]]`: a file, and the loads that the robot carries in it."""

    file: File | None = None
    load: list[LoadTable] = []


class FilterTable(CaseTable):
    """`[filter]`: `cutoff`, Hz; `window` of derivatives, s; `margin`, s, left out at both ends;
    `every`, thinning after the filter; `rest`, least rate of all joints, rad/s or m/s."""

    cutoff: Size | None = None
    window: Size | None = None
    margin: Size | None = None
    every: Count = 1
    rest: Size = 0.0


class CoupledTable(CaseTable):
    """`[[coupled]]`: a sum of joint rates, by its coefficients, on which friction depends."""

    name: Text
    joints: dict[str, Number]


class RegressTable(CaseTable):
    """`[regress]`: terms of the joints, arguments of `regress`, and the regressions after it."""

    terms: Texts = ()
    noise: Numbers = None
    tolerance: Number | None = None
    covariance: Text | None = None
    essential: _Threshold = 0.0
    consistent: _Threshold = 0.0


class RegressionOutputs(OutputTable):
    """`[output]` of a regression."""

    report: File | None = None
    csv: File | None = None
    model: File | None = None


class RegressionFile(CaseTable):
    """A whole case file of `rigidjax regress`."""

    title: Text
    model: ModelTable = Field(default_factory=ModelTable)
    data: DataTable = Field(default_factory=DataTable)
    position: ChannelTable | None = None
    rate: ChannelTable | None = None
    acceleration: ChannelTable | None = None
    torque: ChannelTable | None = None
    recording: list[RecordingTable] = []
    filter: FilterTable = Field(default_factory=FilterTable)
    coupled: list[CoupledTable] = []
    regress: RegressTable = Field(default_factory=RegressTable)
    prior: list[LoadTable] = []
    output: RegressionOutputs = Field(default_factory=RegressionOutputs)


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


class _Channel(NamedTuple):
    """Columns of a quantity at the motors, with the factor to SI units and joints."""

    table: ChannelTable
    scale: float
    gear: np.ndarray


def read_regression_case(path: str | os.PathLike[str]) -> RegressionCase:
    """Read a case of `rigidjax regress` from a TOML file; nothing in it is executed.

    **Errors:** `ValueError` that names the file and the table or line; `OSError` for files that
    cannot be read.
    """
    path = pathlib.Path(path)
    content, text = read_toml(path)
    top = parse(RegressionFile, {"title": path.stem} | content, str(path), path.parent)
    if top.model.file is None:
        top.model.fail("`file` is missing; name the URDF, SDF or MJCF file of the robot.")
    model, options = top.model.load(path.parent, fixed_base=True)
    channels = _read_channels(top, len(rate_labels(model.system)))
    reader, terms = Reader(top.data), top.regress.terms
    system, prior = describe_in_frames(model.system, model.frames)
    system = without_constants(system, terms)
    coupled = {table.name: table.joints for table in top.coupled}
    parts, files = [], [str(top.model.file)]
    recordings: list[tuple[CaseTable, SourceTable, list[LoadTable]]] = [
        (t, top.data if t.file is None else top.data.model_copy(update={"file": t.file}), t.load)
        for t in top.recording
    ]
    for table, source, loads in recordings or [(top.data, top.data, [])]:
        properties = dict(_mass_properties(load, model) for load in loads)
        runs, used = _read_runs(table, channels, source, reader)
        files += used
        for run in runs:
            values = table.call(_filter_run, run, channels, top.filter, model)
            data = table.call(
                joint_data, system, *values, terms=terms, coupled=coupled, loads=properties
            )
            parts.append(data)
    prior |= dict(_mass_properties(table, model) for table in top.prior)
    settings = top.regress.given_values("terms", "essential", "consistent")
    return RegressionCase(
        top.title,
        text,
        model,
        top.model.file,
        options,
        stack_joint_data(parts),
        prior,
        terms,
        settings,
        top.regress.essential or None,
        top.regress.consistent or None,
        top.output,
        tuple(dict.fromkeys(files)),
    )


def _read_channels(top: RegressionFile, count: int) -> dict[str, _Channel]:
    """Return the channels that the case has; `count` joints."""
    channels: dict[str, _Channel] = {}
    for key in ("position", "rate", "acceleration", "torque"):
        table: ChannelTable | None = getattr(top, key)
        if table is None:
            if key in ("position", "torque"):
                top.fail(f"[{key}] is missing; it names the columns of the {key}s of all joints.")
            continue
        if key != "position" and "zero" in table.model_fields_set:
            table.fail("there is no `zero` here; it is that of [position].")
        scale = 1.0 if table.unit is None else table.call(factor, table.unit, *_QUANTITIES[key])
        gear = table.gear
        if gear is None:
            gear = channels["position"].gear if key != "position" else 1.0
        channels[key] = _Channel(table, scale, _matrix_of_gear(table, gear, count))
    return channels


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


def _mass_properties(table: LoadTable, model: Model) -> tuple[str, MassProperties]:
    if table.body not in model.names.bodies:
        table.fail(f"`body` must be one of {list(model.names.bodies)}; got {table.body!r}.")
    return table.body, table.build(MassProperties)


def _read_runs(
    recording: CaseTable, channels: Mapping[str, _Channel], source: SourceTable, reader: Reader
) -> tuple[list[Measurements], list[str]]:
    """Return the runs of a recording, with a reader of columns for each channel, in order."""
    files, by_channel = [], []
    for key, (table, _, gear) in channels.items():
        columns, count = table.columns, len(gear)
        if not isinstance(columns, str) and len(columns) != count:
            table.fail(f"`columns` must be {count}, one for each joint; got {len(columns)}.")
        runs, file = reader.series(table, ReadColumns(count, key), columns, source)
        files.append(file)
        by_channel.append(runs)
    if len({len(runs) for runs in by_channel}) > 1:
        recording.fail(f"the channels differ in their runs: {[len(r) for r in by_channel]}.")
    merged = [
        recording.call(_on_one_clock, list(channels), runs)
        for runs in zip(*by_channel, strict=True)
    ]
    return reader.cut(merged, source), files


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
    run: Measurements, channels: Mapping[str, _Channel], chosen: FilterTable, model: Model
) -> list[np.ndarray]:
    """Return coordinates, rates, accelerations and torques of the joints, (S, f)."""
    ts = np.asarray(run.ts)
    period = float(np.mean(np.diff(ts)))
    cutoff = chosen.cutoff
    window = chosen.window if chosen.window is not None or cutoff is None else 0.5 / cutoff
    window = max(window or 0.0, 4 * period)
    margin = chosen.margin
    if margin is None:
        margin = 0.0 if cutoff is None else 2.0 / cutoff
    joint: dict[str, np.ndarray] = {}
    for (key, channel), values in zip(channels.items(), run.values, strict=True):
        samples = channel.scale * np.asarray(values).reshape(len(ts), -1)
        if cutoff is not None:
            samples = lowpass(ts, samples, cutoff)
        gear = channel.gear
        joint[key] = samples @ gear if key == "torque" else np.linalg.solve(gear, samples.T).T
    q = joint["position"] + np.asarray(channels["position"].table.zero, float)
    # The reference configuration of a model may have another coordinate than zero in its file.
    q = q - np.array([model.zeros.get(name, 0.0) for name in rate_labels(model.system)])
    rate, acceleration = joint.get("rate"), joint.get("acceleration")
    if rate is None:
        rate = differentiate(ts, q, window=window)
    if acceleration is None and "rate" in joint:
        acceleration = differentiate(ts, rate, window=window)
    elif acceleration is None:
        acceleration = differentiate(ts, q, window=window, derivative=2)
    inside = (ts >= ts[0] + margin) & (ts <= ts[-1] - margin)
    moving = (np.abs(rate) >= chosen.rest).all(axis=1)
    rows = np.flatnonzero(inside & moving)[:: chosen.every]
    if not rows.size:
        raise ValueError(
            f"the run {run.name or 'of the file'} has no sample outside of the margins, "
            f"{margin:g} s, in which every joint moves at {chosen.rest:g} or more."
        )
    return [x[rows] for x in (q, rate, acceleration, joint["torque"])]


def check_model_output(path: pathlib.Path, case: RegressionCase) -> None:
    """Raise `ValueError` if a fitted model is to be written and no consistent bodies are found."""
    if case.consistent is None:
        raise ValueError(
            f"The fitted model {path} needs `consistent` in [regress]: least squares alone may "
            "give bodies that are not physical. Write `consistent = true`."
        )
