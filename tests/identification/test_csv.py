"""Reading measurements from files: every fault is named with its line."""

import re

import numpy as np
import pytest

from rigidjax.identification import Gyroscope
from rigidjax.identification.csv import read_csv

COLUMNS = ("w1", "w2", "w3")
GOOD = """run,t,w1,w2,w3,remark
a,0.0,1,2,3,start
a,0.1,4,5,6,
b,5.0,1,1,1,
b,5.2,2,2,2,"two, or so"
b,5.5,3,3,3,
"""


def read(tmp_path, text, **options):
    path = tmp_path / "rates.csv"
    path.write_text(text, encoding="utf-8")
    return read_csv(path, {Gyroscope(): COLUMNS}, **{"time": "t", "run": "run", **options})


def test_runs_are_told_apart(tmp_path):
    a, b = read(tmp_path, GOOD, noise={Gyroscope(): 0.1})
    assert (a.name, b.name) == ("a", "b")
    np.testing.assert_array_equal(a.ts, [0.0, 0.1])
    np.testing.assert_array_equal(b.values[0], [[1] * 3, [2] * 3, [3] * 3])
    np.testing.assert_array_equal(a.noise[0], np.full((2, 3), 0.1))


def test_one_run_without_a_column_for_it(tmp_path):
    (only,) = read(tmp_path, "\ufefft,w1,w2,w3\r\n0,1,2,3\r\n1,1,2,3\r\n", run=None)
    assert only.name == ""
    np.testing.assert_array_equal(only.ts, [0.0, 1.0])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("t,w1", "time,w1", r"line 1: there is no column 't'"),
        ("w1,w2", "w1,w2_", r"line 1: there is no column 'w2'.* Did you mean 'w2_'"),
        ("remark", "w2", r"line 1: there are 2 columns called 'w2'"),
        ("a,0.1,4,5,6,", "a,0.1,4,,6,", r"line 3: column 'w2' is empty"),
        ("a,0.1,4,5,6,", "a,0.1,4,n/a,6,", r"line 3: column 'w2' must be a number; got 'n/a'"),
        ("a,0.1,4,5,6,", "a,0.1,4,nan,6,", r"line 3: column 'w2' must be finite"),
        ("a,0.1,4,5,6,", "a,0.1,4,5", r"line 3: 4 cells under 6 names"),
        ("a,0.1,4,5,6,", "", r"line 3: the line is empty"),
        ("b,5.2", "b,5.0", r"line 5: the times of run b must increase, column 't' goes from 5 \(l"),
        ("b,5.5", "b,5.1", r"line 6: .* from 5.2 \(line 5\) to 5.1"),
        ("a,0.1", "b,4.0", r"line 2: there is only one sample of run a"),
        ('"two, or so"', '"two, or so', r"line 6: unexpected end of data"),
        (GOOD, "", r"line 1: there is no header"),
        (GOOD, GOOD.splitlines()[0], r"has no line of data after its header"),
    ],
)
def test_errors_name_the_line(tmp_path, old, new, message):
    assert old in GOOD
    with pytest.raises(ValueError, match=r"rates\.csv.*" + message):
        read(tmp_path, GOOD.replace(old, new, 1))


def test_other_delimiters(tmp_path):
    text = GOOD.replace("two, or so", "two or so").replace(",", ";")
    a, b = read(tmp_path, text, delimiter=";")
    np.testing.assert_array_equal(a.ts, [0.0, 0.1])
    np.testing.assert_array_equal(b.values[0][2], [3, 3, 3])
    with pytest.raises(ValueError, match=r"line 1: there is one column only, 'run;t;w1;w2;w3;rem"):
        read(tmp_path, text)
    with pytest.raises(ValueError, match=r"must be one character; got ', '"):
        read(tmp_path, text, delimiter=", ")


def test_other_errors(tmp_path):
    with pytest.raises(ValueError, match=r"must name 3 columns for the sensor 'gyroscope'"):
        read_csv(tmp_path / "x.csv", {Gyroscope(): "w1"})
    with pytest.raises(FileNotFoundError, match=re.escape(str(tmp_path / "x.csv"))):
        read_csv(tmp_path / "x.csv", {Gyroscope(): COLUMNS})
    (tmp_path / "bytes.csv").write_bytes(b"t,w1,w2,w3\n\xff\xfe\n")
    with pytest.raises(ValueError, match=r"is not text in UTF-8"):
        read_csv(tmp_path / "bytes.csv", {Gyroscope(): COLUMNS}, time="t")
