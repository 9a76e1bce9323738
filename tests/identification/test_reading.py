"""Units, gaps, conventions and several rates, from CSV and NetCDF."""

import numpy as np
import pytest
import scipy.spatial.transform
import xarray

import rigidjax as rj
from rigidjax import identification as ident
from rigidjax.identification import Measurements
from rigidjax.identification.data.csv import read_csv
from rigidjax.identification.data.netcdf import read_netcdf
from rigidjax.identification.data.units import UNITS, factor, quantities_of

GYRO, ATTITUDE, PLACE = rj.Gyroscope(), rj.Attitude(), rj.Position()
ANGLES = np.array([[0.3, -0.7, 1.9], [0.4, 1.1, -2.5], [-3.0, 0.2, 0.1]])
TS = np.array([0.0, 0.1, 0.25])


def quaternions(sequence="ZYX"):
    return scipy.spatial.transform.Rotation.from_euler(sequence, ANGLES).as_quat(scalar_first=True)


def same_rotations(found, expected):
    np.testing.assert_allclose(np.abs(np.sum(found * expected, axis=1)), 1.0, rtol=1e-12)


def write_csv(tmp_path, names, columns):
    path = tmp_path / "data.csv"
    lines = [",".join(names)] + [
        ",".join("" if x is None else f"{x!r}" for x in r) for r in columns
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


# --- units


@pytest.mark.parametrize(
    ("value", "units"),
    [
        (np.pi / 180, ["deg", "deg/s", "°/s"]),
        (2 * np.pi, ["rev"]),
        (2 * np.pi / 60, ["rpm"]),
        (1.0, ["", "rad s-1", "m s-2", "m/s2", "m/s**2", "N*m", "Nm", "N·m"]),
        (1e-2, ["cm"]),
        (1e-3, ["mm", "ms", "N mm"]),
        (1e-6, ["us"]),
        (1e3, ["kN"]),
        (9.80665, ["g"]),
    ],
)
def test_units_are_converted(value, units):
    np.testing.assert_allclose([factor(unit) for unit in units], value, rtol=1e-15)


def test_every_sensor_has_a_known_unit():
    sensors = [GYRO, PLACE, rj.Accelerometer(), rj.JointCoordinate("a"), rj.JointRate("a")]
    sensors += [rj.JointTorque("a"), rj.ReactionForce("a"), rj.ReactionMoment("a")]
    found = [quantities_of(sensor.unit) for sensor in sensors]
    assert found[3] == ("angle", "length") and found[5] == ("force", "moment")
    assert all(found) and set(sum(found, ())) <= set(UNITS)


@pytest.mark.parametrize(
    ("unit", "quantities", "message"),
    [
        ("furlong", (), r"'furlong' is not known.* There are angle: rad, mrad, deg, rev; angular"),
        ("deg/S", (), r"Did you mean 'deg/s'"),
        ("deg", ("angular velocity",), r"is one of angle, where one of angular velocity is needed"),
        (3, (), r"A unit is a text such as"),
    ],
)
def test_wrong_units_raise(unit, quantities, message):
    with pytest.raises(ValueError, match=message):
        factor(unit, *quantities)


# --- CSV


def test_columns_are_converted(tmp_path):
    path = write_csv(tmp_path, ("t", "a", "b", "c"), [(0, 180.0, 60.0, 1.0), (500, 90.0, 0.0, 2.0)])
    units = {"t": "ms", GYRO: "deg/s", "b": "rpm", "c": "rad/s"}
    (run,) = read_csv(path, {GYRO: ("a", "b", "c")}, time="t", units=units)
    np.testing.assert_allclose(run.ts, [0.0, 0.5])
    np.testing.assert_allclose(run.values[0], [[np.pi, 2 * np.pi, 1], [np.pi / 2, 0, 2]])
    (again,) = read_csv(path, {GYRO: ("a", "b", "c")}, time="t", units={**units, "t": "s"})
    np.testing.assert_array_equal(again.ts, [0, 500])


def test_gaps_become_a_mask(tmp_path):
    rows = [(0.0, 1.0, None, 3.0), (0.1, None, 5.0, 6.0), (0.2, 7.0, 8.0, float("nan"))]
    path = write_csv(tmp_path, ("time_s", "a", "b", "c"), rows)
    (run,) = read_csv(path, {GYRO: ("a", "b", "c")}, gaps="mask")
    np.testing.assert_array_equal(run.mask[0], [[1, 0, 1], [0, 1, 1], [1, 1, 0]])
    np.testing.assert_array_equal(run.values[0], [[1, 5, 3], [1, 5, 6], [7, 8, 6]])
    with pytest.raises(ValueError, match=r'line 2: column \'b\' is empty.*gaps="mask"'):
        read_csv(path, {GYRO: ("a", "b", "c")})
    path = write_csv(tmp_path, ("time_s", "a", "b", "c"), [(0, 1, 2, 3), (None, 1, 2, 3)])
    with pytest.raises(ValueError, match=r"line 3: there is no time in column 'time_s'"):
        read_csv(path, {GYRO: ("a", "b", "c")}, gaps="mask")


@pytest.mark.parametrize("convention", ["wxyz", "xyzw", "matrix", "ZYX", "ZXZ"])
def test_orientation_conventions(tmp_path, convention):
    p = quaternions(convention if convention.isupper() else "ZYX")
    rotation = scipy.spatial.transform.Rotation.from_quat(p, scalar_first=True)
    rows = {
        "wxyz": p,
        "xyzw": rotation.as_quat(),
        "matrix": rotation.as_matrix().reshape(-1, 9),
    }.get(convention, np.degrees(ANGLES))
    names = [f"c{k}" for k in range(rows.shape[1])]
    units = {ATTITUDE: "deg"} if convention.isupper() else {}
    table = [(t, *(float(x) for x in row)) for t, row in zip(TS.tolist(), rows, strict=True)]
    path = write_csv(tmp_path, ("time_s", *names), table)
    how = {"orientation": {ATTITUDE: convention}, "units": units, "gaps": "mask"}
    (run,) = read_csv(path, {ATTITUDE: names}, **how)
    same_rotations(np.asarray(run.values[0]), p)
    table[1] = (*table[1][:2], None, *table[1][3:])
    (run,) = read_csv(write_csv(tmp_path, ("time_s", *names), table), {ATTITUDE: names}, **how)
    np.testing.assert_array_equal(run.mask[0], [[True] * 3, [False] * 3, [True] * 3])
    same_rotations(np.asarray(run.values[0])[[0, 2]], p[[0, 2]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"units": {GYRO: "deg"}}, r"Column 'a' of the gyroscope: The unit 'deg' is one of angle"),
        ({"units": {"a": "dog/s"}}, r"The unit 'dog/s' is not known. Did you mean 'deg/s'"),
        ({"units": {"time": "m"}}, r"Column 'time_s': The unit 'm' is one of length"),
        ({"units": {"d": "deg/s"}}, r"names \['d'\], which are not read"),
        ({"units": {ATTITUDE: "deg"}}, r"names the sensor 'attitude', of which nothing is read"),
        ({"gaps": "skip"}, r"must be \"raise\" or \"mask\"; got 'skip'"),
        ({"orientation": {GYRO: "wxyz"}}, r"is for sensors of orientation; the gyroscope is none"),
        ({"orientation": {"a": "wxyz"}}, r"takes sensors as keys"),
        ({"time": "a"}, r"is to read the columns \['a'\] more than once"),
    ],
)
def test_wrong_layouts_raise(tmp_path, options, message):
    path = write_csv(tmp_path, ("time_s", "a", "b", "c"), [(0, 1, 2, 3), (1, 1, 2, 3)])
    with pytest.raises(ValueError, match=message):
        read_csv(path, {GYRO: ("a", "b", "c")}, **options)


@pytest.mark.parametrize(
    ("orientation", "names", "message"),
    [
        ({}, "abcd", r"Say how the columns of the attitude write an orientation"),
        ({ATTITUDE: "wxzy"}, "abcd", r"must be 'wxyz', 'xyzw', 'matrix', or an intrinsic.*'wxzy'"),
        ({ATTITUDE: "zyx"}, "abc", r"write the same as the intrinsic sequence 'XYZ'"),
        ({ATTITUDE: "ZYX"}, "abcd", r"must name 3 columns for the sensor 'attitude'"),
        ({ATTITUDE: "wxyz"}, "abcd", r"line 2: the attitude must be a quaternion of unit length"),
        ({ATTITUDE: "matrix"}, "abcdefghi", r"line 3: the attitude must be a rotation matrix"),
    ],
)
def test_wrong_orientations_raise(tmp_path, orientation, names, message):
    identity = np.eye(3).ravel().tolist()
    mirror = np.diag([1.0, 1.0, -1.0]).ravel().tolist()
    rows = [(0, *identity), (1, *mirror)] if len(names) == 9 else [(0, *[1.0] * 9), (1, *mirror)]
    path = write_csv(tmp_path, ("time_s", *"abcdefghi"), rows)
    with pytest.raises(ValueError, match=message):
        read_csv(path, {ATTITUDE: tuple(names)}, orientation=orientation)


# --- different rates


def test_series_are_merged():
    slow, fast = np.array([0.0, 0.2, 0.4]), np.array([0.1, 0.2 + 1e-13, 0.3])
    rates, places = np.arange(9.0).reshape(3, 3), np.ones((3, 3))
    run = Measurements.merged(
        {GYRO: (slow, rates), PLACE: (fast, places)}, {GYRO: 0.1, PLACE: np.full((3, 3), 2.0)}
    )
    np.testing.assert_allclose(run.ts, [0.0, 0.1, 0.2, 0.3, 0.4], rtol=1e-12)
    np.testing.assert_array_equal(run.mask[0][:, 0], [1, 0, 1, 0, 1])
    np.testing.assert_array_equal(run.mask[1][:, 0], [0, 1, 1, 1, 0])
    np.testing.assert_array_equal(run.values[0][::2], rates)
    np.testing.assert_array_equal(np.asarray(run.noise[1])[:, 0], [1, 2, 2, 2, 1])
    partly = Measurements.merged(
        {GYRO: (slow, rates), PLACE: (fast, places)}, mask={GYRO: [True, True, False]}
    )
    np.testing.assert_array_equal(partly.mask[0][:, 0], [1, 0, 1, 0, 0])


@pytest.mark.parametrize(
    ("series", "options", "message"),
    [
        ({}, {}, r"takes a dictionary such as \{rj.Gyroscope"),
        ({GYRO: TS}, {}, r"takes a pair \(ts, values\) for the sensor 'gyroscope'"),
        ({GYRO: (TS, np.ones((2, 3)))}, {}, r"as many times, shape \(T,\), as values"),
        ({GYRO: ([0, np.nan, 1], np.ones((3, 3)))}, {}, r"of the sensor 'gyroscope' must be fin"),
        ({GYRO: ([0, 2, 2], np.ones((3, 3)))}, {}, r"sample 2 is at 2.0 s after 2.0 s"),
        ({GYRO: (TS, np.ones((3, 3)))}, {"noise": {PLACE: 1.0}}, r"names \['position'\], which ha"),
        ({GYRO: (TS, np.ones((3, 3)))}, {"mask": {GYRO: [True]}}, r"must have as many rows; got 1"),
    ],
)
def test_invalid_series_raise(series, options, message):
    with pytest.raises(ValueError, match=message):
        Measurements.merged(series, **options)


# --- NetCDF


def dataset(**changes):
    data = xarray.Dataset(
        {
            "rates": (("time", "axis"), np.arange(9.0).reshape(3, 3), {"units": "deg s-1"}),
            "x": ("time", [1.0, 2.0, 3.0], {"units": "mm"}),
            "y": ("time", [4.0, 5.0, 6.0], {"units": "mm"}),
            "z": ("time", [7.0, 8.0, 9.0], {"units": "m"}),
        },
        {"time": ("time", 1e3 * TS, {"units": "milliseconds since 2024-01-01"})},
    )
    return data.assign(**changes)


def write_netcdf(tmp_path, data):
    path = tmp_path / "data.nc"
    data.to_netcdf(path, engine="h5netcdf")
    return path


def test_netcdf_with_its_units(tmp_path):
    path = write_netcdf(tmp_path, dataset())
    (run,) = ident.read(path, {GYRO: "rates", PLACE: ("x", "y", "z")})
    np.testing.assert_allclose(run.ts, TS)
    np.testing.assert_allclose(run.values[0], np.radians(np.arange(9.0)).reshape(3, 3))
    np.testing.assert_allclose(run.values[1][0], [1e-3, 4e-3, 7.0])
    (run,) = read_netcdf(path, {GYRO: "rates"}, units={GYRO: "rad/s", "time": "s"})
    np.testing.assert_array_equal(run.ts, 1e3 * TS)
    np.testing.assert_array_equal(run.values[0][0], [0, 1, 2])


def test_netcdf_with_integer_stamps(tmp_path):
    """Nanoseconds since a date keep steps of 1 ns, in several runs and another file."""
    first = 1700000000123456789
    stamps = np.array([[first, first + 1], [first + 5, first + 10**9]])
    units = {"units": "nanoseconds since 1970-01-01"}
    data = xarray.Dataset(
        {
            "t": (("toss", "k"), stamps, units),
            "q": (("toss", "k"), np.ones((2, 2)), {"units": "rad"}),
        }
    )
    how = {"time": "t", "run": "toss"}
    sensor = {rj.JointCoordinate("hinge"): "q"}
    a, b = read_netcdf(write_netcdf(tmp_path, data), sensor, **how)
    np.testing.assert_allclose([a.ts, b.ts], [[0.0, 1e-9], [5e-9, 1.0]], rtol=1e-15)
    assert a.time_zero == "2023-11-14T22:13:20.123456789Z"
    data["t"] = (("toss", "k"), stamps - first, {"units": "ns since 2023-11-14 22:13:20.123456789"})
    c, d = read_netcdf(write_netcdf(tmp_path, data), sensor, **how, time_zero=a.time_zero)
    np.testing.assert_allclose([c.ts, d.ts], [a.ts, b.ts], rtol=1e-12)


def test_netcdf_with_several_runs(tmp_path):
    times = np.array([[0.0, 0.1, 0.2], [5.0, 5.5, np.nan]])
    q = np.stack([quaternions(), quaternions("XYZ")])
    q[0, 1, 2] = q[1, 2] = np.nan
    data = xarray.Dataset(
        {
            "t": (("sample", "toss"), times.T, {"units": "s"}),
            "q": (("toss", "component", "sample"), np.swapaxes(q, 1, 2), {"units": "1"}),
        },
        {"toss": ["a", "b"]},
    )
    path = write_netcdf(tmp_path, data)
    how = {"time": "t", "run": "toss", "orientation": {ATTITUDE: "wxyz"}}
    a, b = read_netcdf(path, {ATTITUDE: "q"}, gaps="mask", **how)
    assert (a.name, b.name) == ("a", "b")
    np.testing.assert_array_equal(b.ts, [5.0, 5.5])
    np.testing.assert_array_equal(a.mask[0][:, 0], [True, False, True])
    same_rotations(np.asarray(b.values[0]), q[1, :2])
    with pytest.raises(
        ValueError, match=r'run a, sample 1: \'q\[2\]\' must be finite.*gaps="mask"'
    ):
        read_netcdf(path, {ATTITUDE: "q"}, **how)
    with pytest.raises(ValueError, match=r"Say how the columns of the attitude write"):
        read_netcdf(path, {ATTITUDE: "q"}, time="t", run="toss")


@pytest.mark.parametrize(
    ("sensors", "options", "message"),
    [
        ({GYRO: "rate"}, {}, r"data\.nc: there is no variable 'rate'.* Did you mean 'rates'"),
        ({PLACE: ("x", "y", "zz")}, {}, r"there is no variable 'zz'"),
        ({GYRO: "x"}, {}, r"must name 3 columns for the sensor 'gyroscope'"),
        ({PLACE: ("x", "y", "rates")}, {}, r"must have the dimensions \['time'\]; it has"),
        ({GYRO: "rates"}, {"run": "toss"}, r"there is no dimension 'toss' of runs"),
        ({GYRO: "rates"}, {"time": "rates"}, r"'rates' must have one dimension; it has"),
        ({GYRO: "rates"}, {"units": {"x": "m"}}, r"names \['x'\], which are not read"),
        ({PLACE: "rates"}, {}, r"The unit 'deg s-1' is one of angular velocity, where"),
    ],
)
def test_wrong_sensors_of_netcdf_raise(tmp_path, sensors, options, message):
    with pytest.raises(ValueError, match=message):
        read_netcdf(write_netcdf(tmp_path, dataset()), sensors, **options)


AXES, RAD, SECONDS = ("time", "axis"), {"units": "rad/s"}, {"units": "s"}


@pytest.mark.parametrize(
    ("name", "variable", "message"),
    [
        ("rates", (AXES, np.ones((3, 3))), r"'rates' has no attribute `units`. State it with"),
        ("rates", (AXES, np.full((3, 3), "a"), RAD), r"'rates\[0\]' must hold real numbers"),
        ("rates", (AXES, np.full((3, 3), np.inf), RAD), r"'rates\[0\]' holds infinite numbers"),
        ("time", ("time", [0, 2, 1.0], SECONDS), r"sample 2: .* goes from 2 \(sample 1\) to 1"),
        ("time", ("time", np.full(3, np.nan), SECONDS), r"'time' has less than two finite times"),
    ],
)
def test_wrong_variables_of_netcdf_raise(tmp_path, name, variable, message):
    path = write_netcdf(tmp_path, dataset(**{name: variable}))
    with pytest.raises(ValueError, match=message):
        read_netcdf(path, {GYRO: "rates"})


def test_missing_netcdf_raises(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_netcdf(tmp_path / "nothing.nc", {GYRO: "rates"})
