"""Measurements from MCAP files with messages of ROS 2."""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np

from ...checks import did_you_mean
from ...extras import import_optional
from ..experiment.checked_arguments import check_sensors
from .arrays import read_arrays
from .measurements import Measurements
from .reading import ReadOptions, make_layout
from .recordings import merge_runs

_PART = re.compile(r"(\w+)(?:\[([^\]]+)\])?")
_CLOCKS = ("log_time", "publish_time")


class _Field(NamedTuple):
    """A number in the messages of a topic: names of fields, each with an index or a name."""

    topic: str
    parts: tuple[tuple[str, str | None], ...]


def read_mcap(
    path: str | os.PathLike[str],
    sensors: Mapping[Any, str | Sequence[str]],
    *,
    time: str = "header.stamp",
    **options: Unpack[ReadOptions],
) -> list[Measurements]:
    """Read one run from a recording of ROS 2 in an MCAP file.

    A column is a topic and a field of its messages, such as `"/imu.angular_velocity.x"`. An entry
    of an array is chosen by its index, from 0, or by its name where the message lists names, as in
    `"/joint_states.position[elbow]"`. Topics have times of their own; sensors of several topics are
    merged on the union of their times.

    **Arguments:**

    - `path`: the file.
    - `sensors`: for each sensor its columns, all of one topic.
    - `time`: the field with the time stamp of a message, by default that of its header; or
      `"log_time"` or `"publish_time"` of the recording, for messages without one.
    - `noise`, `units`, `orientation`, `gaps`, `every`, `time_zero`: as in `read_csv`. Times have no
      unit.

    **Returns:** a list of one run.
    **Errors:** `ModuleNotFoundError` without the extra `rigidjax[mcap]`; `ValueError`, with the
    file, for unknown topics and fields, and the errors of `read_csv`.
    """
    columns = {
        sensor: (names,) if isinstance(names, str) else tuple(names)
        for sensor, names in sensors.items()
    }
    fields = {sensor: [_parse(path, name) for name in names] for sensor, names in columns.items()}
    noise = dict(options.pop("noise", None) or {})
    units = dict(options.pop("units", None) or {})
    orientation = dict(options.pop("orientation", None) or {})
    if stated := {time, "time"} & {*units}:
        raise ValueError(f"`read_mcap(units=...)`: time stamps have no unit; leave {stated} out.")
    # Checks the arguments, of which each topic gets its own.
    described: ReadOptions = {"units": units, "orientation": orientation}
    make_layout(columns, time, options | described, "read_mcap")
    for sensor in check_sensors("The keys of `read_mcap(noise=...)` must be", noise):
        if sensor not in sensors:
            raise ValueError(f"`read_mcap(noise=...)` names {sensor.name!r}, which is not read.")
    topics: dict[str, list[Any]] = {}
    for sensor, group in fields.items():
        if len({field.topic for field in group}) != 1:
            raise ValueError(
                f"{path}: the columns of the {sensor.name} must be of one topic; got "
                f"{list(columns[sensor])}."
            )
        topics.setdefault(group[0].topic, []).append(sensor)
    arrays = _read_messages(path, {t: [fields[s] for s in group] for t, group in topics.items()},
                            time)  # fmt: skip
    runs: list[Measurements] = []
    for topic, group in topics.items():
        stamps, values = arrays[topic]
        named = {time: stamps.astype("datetime64[ns]")}
        for sensor, samples in zip(group, values, strict=True):
            named |= dict(zip(columns[sensor], samples.T, strict=True))
        runs += read_arrays(
            f"{path}, topic {topic}",
            named,
            {sensor: columns[sensor] for sensor in group},
            time=time,
            noise={s: noise[s] for s in group if s in noise},
            units={k: unit for k, unit in units.items() if k in group or k in named},
            orientation={s: c for s, c in orientation.items() if s in group},
            **options,
        )
        # All topics are counted from the stamp that is 0 s in the first one.
        options["time_zero"] = runs[-1].time_zero
    return [merge_runs(runs, list(sensors))]


def _parse(path: Any, name: str) -> _Field:
    """Return the field of a column such as `"/joint_states.position[elbow]"`."""
    topic, _, rest = name.partition(".")
    matches = [match for match in map(_PART.fullmatch, rest.split(".")) if match]
    parts = tuple((match[1], match[2]) for match in matches)
    if not topic.startswith("/") or not rest or len(parts) != len(rest.split(".")):
        raise ValueError(
            f"{path}: a column is a topic and a field, such as "
            f'"/joint_states.position[elbow]"; got {name!r}.'
        )
    return _Field(topic, parts)


def _read_messages(
    path: Any, fields: Mapping[str, Sequence[Sequence[_Field]]], time: str
) -> dict[str, tuple[np.ndarray, list[np.ndarray]]]:
    """Return for each topic the stamps (T,), ns, and the samples (T, n) of each of its sensors."""
    mcap_error = import_optional("mcap.exceptions", "MCAP files").McapError
    make_reader = import_optional("mcap.reader", "MCAP files").make_reader
    decoder = import_optional("mcap_ros2.decoder", "MCAP files").DecoderFactory()
    rows: dict[str, list[Any]] = {topic: [] for topic in fields}
    try:
        with open(path, "rb") as file:
            reader = make_reader(file, decoder_factories=[decoder])
            summary = reader.get_summary()
            known = sorted({c.topic for c in summary.channels.values()}) if summary else []
            for topic in fields:
                if known and topic not in known:
                    raise ValueError(
                        f"{path}: there is no topic {topic!r}; there are {known}."
                        + did_you_mean(topic, known)
                    )
            for _, channel, message, content in reader.iter_decoded_messages(topics=list(fields)):
                stamp = _stamp(path, channel.topic, message, content, time)
                samples = [
                    [_number(path, field, content) for field in group]
                    for group in fields[channel.topic]
                ]
                rows[channel.topic].append((stamp, samples))
    except mcap_error as error:
        raise ValueError(f"{path} is no MCAP file of ROS 2: {error}.") from error
    found = {}
    for topic, messages in rows.items():
        if not messages:
            raise ValueError(f"{path}: the topic {topic!r} has no messages.")
        stamps = np.array([stamp for stamp, _ in messages], np.int64)
        samples = [np.array(x, float) for x in zip(*(s for _, s in messages), strict=True)]
        # Messages are logged in another order than they were stamped.
        order = np.argsort(stamps, kind="stable")
        found[topic] = stamps[order], [x[order] for x in samples]
    return found


def _stamp(path: Any, topic: str, message: Any, content: Any, time: str) -> int:
    """Return the time stamp of a message, ns."""
    if time in _CLOCKS:
        return getattr(message, time)
    node: Any = content
    for name in time.split("."):
        node = getattr(node, name, None)
    if not (hasattr(node, "sec") and hasattr(node, "nanosec")):
        raise ValueError(
            f"{path}: messages of {topic!r} have no time stamp {time!r}. Use the time of the "
            f'recording, `time="log_time"`.'
        )
    return int(node.sec) * 10**9 + int(node.nanosec)


def _number(path: Any, field: _Field, content: Any) -> float:
    """Return the number of a field in a message."""
    node = content
    for name, index in field.parts:
        if not hasattr(node, name):
            known = [n for n in getattr(node, "__slots__", ()) if not n.startswith("_")]
            raise ValueError(
                f"{path}: {name!r} is no field of the messages of {field.topic!r}; there are "
                f"{known}." + did_you_mean(name, known)
            )
        parent, node = node, getattr(node, name)
        if index is None:
            continue
        names = list(getattr(parent, "name", ()))
        place = int(index) if index.isdigit() else names.index(index) if index in names else -1
        if not 0 <= place < len(node):
            raise ValueError(
                f"{path}: {name}[{index}] of {field.topic!r} does not exist; it has {len(node)} "
                f"entries{f', called {names}' if names else ''}."
            )
        node = node[place]
    try:
        return float(node)
    except (TypeError, ValueError):
        raise ValueError(
            f"{path}: {'.'.join(name for name, _ in field.parts)!r} of {field.topic!r} is no "
            f"number; got {type(node).__name__}."
        ) from None
