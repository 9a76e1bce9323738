"""Files in binary formats, and the choice of a reader by the ending."""

import pathlib
import sys

import h5py
import numpy as np
import pandas
import pytest
import scipy.io

import rigidjax as rj
from rigidjax import identification as ident

HIP, KNEE, GYRO = rj.JointCoordinate("hip"), rj.JointCoordinate("knee"), rj.Gyroscope()
TS = np.array([0.0, 0.5, 1.25])
ANGLES = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
RATES = np.arange(9.0).reshape(3, 3)
STATED = {HIP: "deg", KNEE: "deg"}


def write(path, ending):
    """The angles of two joints and the rates of a gyroscope in a file of this format."""
    file = path / f"log{ending}"
    if ending == ".npz":
        np.savez(file, time_s=TS, q=ANGLES, w=RATES)
    elif ending == ".parquet":
        columns = {"time_s": TS, "q[0]": ANGLES[:, 0], "q[1]": ANGLES[:, 1], "w": list(RATES)}
        pandas.DataFrame(columns).to_parquet(file)
    elif ending == ".mat":
        scipy.io.savemat(file, {"time_s": TS, "log": {"q": ANGLES, "w": RATES}})
    elif ending == ".mat73":
        file = path / "log.mat"
        with h5py.File(file, "w", userblock_size=512) as new:
            new["time_s"], new["log/q"], new["log/w"] = TS[None], ANGLES.T, RATES.T
        with open(file, "r+b") as new:
            new.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    else:
        names = "time_s,q[0],q[1],w0,w1,w2"
        rows = np.column_stack([TS, ANGLES, RATES])
        np.savetxt(file, rows, delimiter=",", header=names, comments="", fmt="%.17g")
    return file


@pytest.mark.parametrize("ending", [".csv", ".npz", ".parquet", ".mat", ".mat73"])
def test_one_recording_in_every_format(tmp_path, ending):
    """All formats give equal values, in SI units."""
    prefix = "log." if ending.startswith(".mat") else ""
    names = {
        HIP: [f"{prefix}q[0]"],
        KNEE: [f"{prefix}q[1]"],
        GYRO: ["w0", "w1", "w2"] if ending == ".csv" else f"{prefix}w",
    }
    (run,) = ident.read(write(tmp_path, ending), names, units=STATED, noise={HIP: 0.1})
    np.testing.assert_array_equal(run.ts, TS)
    np.testing.assert_allclose(run.values[0], np.radians(ANGLES[:, 0]), rtol=1e-15)
    np.testing.assert_allclose(run.values[1], np.radians(ANGLES[:, 1]), rtol=1e-15)
    np.testing.assert_array_equal(run.values[2], RATES)


def test_a_number_is_the_time_between_samples(tmp_path):
    np.savez(tmp_path / "a.npz", dt=np.float32(0.25), q=ANGLES)
    (run,) = ident.read(tmp_path / "a.npz", {HIP: "q[1]"}, time="dt", units={"dt": "ms"})
    np.testing.assert_allclose(run.ts, [0.0, 0.25e-3, 0.5e-3], rtol=1e-15)


def test_runs_and_gaps(tmp_path):
    """Labels of runs in any order; NaN are gaps, in the run that they are in."""
    q = np.array([1.0, 2.0, 3.0, np.nan, 5.0, 6.0])
    ts, labels = np.array([0, 0, 1, 1, 2, 2.0]), np.array(["b", "a", "b", "a", "b", "a"])
    np.savez(tmp_path / "a.npz", t=ts, q=q, run=labels)
    with pytest.raises(ValueError, match=r"run a, sample 1: 'q' must be finite; got nan"):
        ident.read(tmp_path / "a.npz", {HIP: "q"}, time="t", run="run")
    b, a = ident.read(tmp_path / "a.npz", {HIP: "q"}, time="t", run="run", gaps="mask")
    assert (b.name, a.name) == ("b", "a")
    np.testing.assert_array_equal(b.values[0], [1, 3, 5])
    np.testing.assert_array_equal(a.mask[0][:, 0], [True, False, True])


def test_dates_are_counted_exactly(tmp_path):
    """Nanoseconds since 1970, as integers and as dates; another file on the same clock."""
    stamps = 1_700_000_000_000_000_000 + np.array([0, 1_000_001, 2_000_003])
    pandas.DataFrame({"t": pandas.to_datetime(stamps), "q": TS}).to_parquet(tmp_path / "a.parquet")
    np.savez(tmp_path / "b.npz", t=stamps + 5, q=TS)
    (a,) = ident.read(tmp_path / "a.parquet", {HIP: "q"}, time="t")
    np.testing.assert_allclose(a.ts, [0, 1.000001e-3, 2.000003e-3], rtol=1e-15)
    assert a.time_zero == "2023-11-14T22:13:20Z"
    (b,) = ident.read(
        tmp_path / "b.npz", {HIP: "q"}, time="t", units={"t": "ns"}, time_zero=a.time_zero
    )
    np.testing.assert_allclose(b.ts, np.asarray(a.ts) + 5e-9, rtol=1e-12)
    with pytest.raises(ValueError, match="holds dates, which have no unit"):
        ident.read(tmp_path / "a.parquet", {HIP: "q"}, time="t", units={"t": "ns"})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sensors": {HIP: "w"}}, "there is no array 'w'; there are"),
        ({"sensors": {HIP: ["q"]}}, r"'q' is no column .* shape \(3, 2\).* such as \"q\[2\]\""),
        ({"sensors": {HIP: ["q[2]"]}}, r"'q\[2\]' is no column"),
        ({"sensors": {HIP: "q"}}, "must name 1 columns for the sensor 'coordinate of hip'"),
        ({"sensors": {HIP: "cube"}}, r"the array 'cube' must have shape \(T, n\); got \(3, 2, 2\)"),
        ({"sensors": {HIP: "text"}}, "the array 'text' must hold real numbers; got <U1"),
        ({"sensors": {HIP: "short"}}, "the array 'short' has 2 samples, 't' has 3"),
        ({"sensors": {HIP: "inf"}}, "the array 'inf' holds infinite numbers"),
        ({"time": "time"}, "there is no array 'time'"),
        ({"time": "zero"}, "the time between samples, which must be positive; got 0"),
        ({"run": "short"}, "the array of runs 'short' has 2 entries for 3 samples"),
        ({"time": "down"}, "sample 1: the times must increase, column 'down' goes from 2"),
        ({"delimiter": ";"}, "are for text files"),
    ],
)
def test_wrong_arrays(tmp_path, change, message):
    np.savez(
        tmp_path / "a.npz", t=TS, q=ANGLES, cube=np.zeros((3, 2, 2)), text=np.array(list("abc")),
        short=TS[:2], inf=TS + np.inf, zero=0.0, down=np.array([2.0, 1.0, 0.0]),
    )  # fmt: skip
    arguments = {"sensors": {HIP: "q[0]"}, "time": "t", **change}
    with pytest.raises(ValueError, match=message):
        ident.read(tmp_path / "a.npz", **arguments)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.npz", "is no NumPy file of arrays"),
        ("a.parquet", "is no Parquet file"),
        ("a.mat", "is no MATLAB file"),
        ("a.mcap", "is no MCAP file of ROS 2"),
        ("a.bag", r"cannot read .*a.bag: it is no text.* must be one of .csv.*\.mcap"),
    ],
)
def test_files_that_are_none(tmp_path, name, message):
    (tmp_path / name).write_bytes(b"\0no such file, but some bytes that are long enough" * 5)
    with pytest.raises(ValueError, match=message):
        ident.read(tmp_path / name, {HIP: ["/a.b"]})


@pytest.mark.parametrize(
    ("name", "module", "message"),
    [("a.parquet", "pyarrow", r"rigidjax\[parquet\]"), ("a.mcap", "mcap", r"rigidjax\[mcap\]")],
)
def test_formats_without_their_extra(tmp_path, monkeypatch, name, module, message):
    for known in [k for k in sys.modules if k.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, known)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModuleNotFoundError, match=message):
        ident.read(tmp_path / name, {HIP: ["/a.b"]})


# --- MCAP

HEADER = """std_msgs/Header header
string[] name
float64[] position
================================================================================
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
================================================================================
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
"""
VECTOR = "float64 x\nfloat64 y\nfloat64 z\n"


def recording(tmp_path) -> pathlib.Path:
    """Joint states with headers, one out of order, and vectors without, at other times."""
    from mcap_ros2.writer import Writer

    file = tmp_path / "log.mcap"
    with open(file, "wb") as stream:
        writer = Writer(stream)
        states = writer.register_msgdef("sensor_msgs/msg/JointState", HEADER)
        vectors = writer.register_msgdef("geometry_msgs/msg/Vector3", VECTOR)
        for k in (0, 2, 1):
            stamp = {"sec": 1_700_000_000, "nanosec": 10_000_000 * k}
            message = {
                "header": {"stamp": stamp, "frame_id": ""},
                "name": ["knee", "hip"],
                "position": ANGLES[k].tolist(),
            }
            writer.write_message("/joint_states", states, message, 10**9 + k)
        for k in range(3):
            message = dict(zip("xyz", RATES[k].tolist(), strict=True))
            writer.write_message("/gyro", vectors, message, 1_700_000_000 * 10**9 + 5_000_000 * k)
        writer.finish()
    return file


def test_messages_of_ros_2(tmp_path):
    file = recording(tmp_path)
    names = {HIP: "/joint_states.position[hip]", KNEE: ["/joint_states.position[0]"]}
    (run,) = ident.read(file, names, noise={HIP: 0.1, KNEE: 0.2}, units={HIP: "deg"})
    np.testing.assert_allclose(run.ts, [0.0, 0.01, 0.02], rtol=1e-12)
    np.testing.assert_allclose(run.values[0], np.radians(ANGLES[:, 1]))
    np.testing.assert_array_equal(run.values[1], ANGLES[:, 0])
    assert run.time_zero == "2023-11-14T22:13:20Z"

    axes = {GYRO: ["/gyro.x", "/gyro.y", "/gyro.z"]}
    (run,) = ident.read(file, axes, time="publish_time")
    np.testing.assert_allclose(run.ts, [0.0, 0.005, 0.01], rtol=1e-12)
    np.testing.assert_array_equal(run.values[0], RATES)

    both = {**axes, HIP: names[HIP]}
    with pytest.raises(ValueError, match="messages of '/gyro' have no time stamp 'header.stamp'"):
        ident.read(file, both)
    (run,) = ident.read(file, {HIP: names[HIP], KNEE: names[KNEE]}, time="log_time")
    np.testing.assert_allclose(run.ts, 1 + 1e-9 * np.arange(3), rtol=1e-15)


def test_topics_are_merged_on_one_clock(tmp_path):
    from rigidjax.identification.data.mcap import read_mcap

    file = recording(tmp_path)
    states = read_mcap(file, {HIP: "/joint_states.position[hip]"})
    axes = {GYRO: ["/gyro.x", "/gyro.y", "/gyro.z"]}
    rates = read_mcap(file, axes, time="log_time", time_zero=states[0].time_zero)
    merged = ident.merge_runs([*states, *rates])
    np.testing.assert_allclose(merged.ts, [0.0, 0.005, 0.01, 0.02], rtol=1e-12)
    np.testing.assert_array_equal(merged.mask[0][:, 0], [True, False, True, True])


@pytest.mark.parametrize(
    ("sensors", "options", "message"),
    [
        ({HIP: "joint_states"}, {}, "a column is a topic and a field"),
        ({HIP: "/joints.position[0]"}, {}, "there is no topic '/joints'; there are"),
        ({HIP: "/joint_states.pos"}, {}, "'pos' is no field of the messages of '/joint_states'"),
        ({HIP: "/joint_states.position[2]"}, {}, r"position\[2\] .* it has 2 entries, called"),
        ({HIP: "/joint_states.position"}, {}, "'position' of '/joint_states' is no number"),
        ({GYRO: ["/gyro.x", "/gyro.y", "/a.z"]}, {}, "columns of the gyroscope must be of one"),
        ({HIP: "/joint_states.position[0]"}, {"noise": {GYRO: 1}}, "names 'gyroscope', which is"),
        ({HIP: "/joint_states.position[0]"}, {"units": {"time": "s"}}, "time stamps have no unit"),
        ({HIP: "/joint_states.position[0]"}, {"run": "a"}, "is one run. Cut it into pieces"),
    ],
)
def test_wrong_messages(tmp_path, sensors, options, message):
    with pytest.raises(ValueError, match=message):
        ident.read(recording(tmp_path), sensors, **options)
