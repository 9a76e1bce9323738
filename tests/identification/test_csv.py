"""Reading measurements from files: every fault is named with its line."""

import re

import numpy as np
import pytest

from rigidjax.identification import Gyroscope, JointCoordinate
from rigidjax.identification.data.csv import read_csv

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


def test_runs_are_separated(tmp_path):
    a, b = read(tmp_path, GOOD, noise={Gyroscope(): 0.1})
    assert (a.name, b.name) == ("a", "b")
    np.testing.assert_array_equal(a.ts, [0.0, 0.1])
    np.testing.assert_array_equal(b.values[0], [[1] * 3, [2] * 3, [3] * 3])
    np.testing.assert_array_equal(a.noise[0], np.full((2, 3), 0.1))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("t,w1", "time,w1", r"line 1: there is no column 't'"),
        ("w1,w2", "w1,w2_", r"line 1: there is no column 'w2'.* Did you mean 'w2_'"),
        ("remark", "w2", r"line 1: there are 2 columns called 'w2'"),
        ("a,0.1,4,5,6,", "a,0.1,4,,6,", r"line 3: column 'w2' is empty"),
        ("a,0.1,4,5,6,", "a,0.1,4,n/a,6,", r"line 3: column 'w2' must be finite; got 'n/a'"),
        ("a,0.1,4,5,6,", "a,0.1,4,nan,6,", r"line 3: column 'w2' must be finite"),
        ("a,0.1,4,5,6,", "a,0.1,4,5", r"line 3: 4 cells under 6 names"),
        ("a,0.1,4,5,6,", "a,0,1,4,5,6,7,", r"line 3: 8 cells under 6 names. Where a comma is the"),
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


def test_delimiters(tmp_path):
    text = GOOD.replace("two, or so", "two or so").replace(",", ";")
    a, b = read(tmp_path, text, delimiter=";")
    np.testing.assert_array_equal(a.ts, [0.0, 0.1])
    np.testing.assert_array_equal(b.values[0][2], [3, 3, 3])
    (_, again) = read(tmp_path, text)
    np.testing.assert_array_equal(again.values[0], b.values[0])
    (_, again) = read(tmp_path, text.replace(";", "\u00a6"), delimiter="\u00a6")
    np.testing.assert_array_equal(again.values[0], b.values[0])
    with pytest.raises(ValueError, match=r"line 1: there is only one column, 'run;t;w1;w2;w3;rem"):
        read(tmp_path, text, delimiter=",")
    with pytest.raises(ValueError, match=r"must be one character; got ', '"):
        read(tmp_path, text, delimiter=", ")
    with pytest.raises(TypeError, match="`read_csv` has no argument 'gap'"):
        read(tmp_path, text, gap="mask")


def test_invalid_files_raise(tmp_path):
    with pytest.raises(ValueError, match=r"must name 3 columns for the sensor 'gyroscope'"):
        read_csv(tmp_path / "x.csv", {Gyroscope(): "w1"})
    with pytest.raises(FileNotFoundError, match=re.escape(str(tmp_path / "x.csv"))):
        read_csv(tmp_path / "x.csv", {Gyroscope(): COLUMNS})
    (tmp_path / "bytes.csv").write_bytes(b"t,w1,w2,w3\n\xff\xfe\n")
    with pytest.raises(ValueError, match=r"is not text in UTF-8"):
        read_csv(tmp_path / "bytes.csv", {Gyroscope(): COLUMNS}, time="t")
    with pytest.raises(ValueError, match=r"'time_s'.* Name the column of the times: `time="):
        read(tmp_path, GOOD, time="time_s")


# --- plain files, of any size, and thinned ones


def _lines(gaps):
    """Forty lines of two runs, their numbers with all digits, every fifth sample missing."""
    random = np.random.default_rng(5)
    lines = ["t,run,w1,w2,w3"]
    for k in range(40):
        cells = [repr(float(x)) for x in random.normal(size=3) * 10.0 ** random.integers(-9, 9)]
        cells = ["", "nan", "NaN"] if gaps and k % 5 == 2 else cells
        lines.append(",".join([f"{0.1 * k:.1f}", " ab"[1 + k // 10 % 2], *cells]))
    return lines


@pytest.mark.parametrize("part", [1, 7, 2**18])
@pytest.mark.parametrize("gaps", ["raise", "mask"])
def test_quoted_and_plain_lines_agree(tmp_path, monkeypatch, part, gaps):
    """Results are bit for bit equal for any chunk boundary and position of quotation marks."""
    monkeypatch.setattr("rigidjax.identification.data.csv._CHUNK", part)
    lines = _lines(gaps == "mask")
    plain = read(tmp_path, "\n".join(lines), gaps=gaps)
    for k in (1, 20, 40):
        quoted = [*lines]
        quoted[k] = lines[k].replace(",a,", ',"a",').replace(",b,", ',"b",')
        ends = "\r\n" if k == 20 else "\n"
        for a, b in zip(plain, read(tmp_path, ends.join(quoted) + ends, gaps=gaps), strict=True):
            assert a.name == b.name
            np.testing.assert_array_equal(a.ts, b.ts)
            np.testing.assert_array_equal(a.values[0], b.values[0])
            np.testing.assert_array_equal(a.mask[0], b.mask[0])
    values = np.concatenate([run.values[0] for run in plain])
    expected = [[float(x) for x in line.split(",")[2:]] for line in _lines(False)[1:]]
    if gaps == "raise":
        order = np.argsort(np.concatenate([run.ts for run in plain]))
        np.testing.assert_array_equal(values[order], expected)


@pytest.mark.parametrize("part", [1, 2**18])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("3.1,a,1,2,3,4", "line 33: 6 cells under 5 names"),
        ("3.1,a,1,2,", "line 33: column 'w3' is empty"),
        ("3.1,a,1,2,inf", "line 33: column 'w3' must be a finite number; got 'inf'"),
        ("3.1,a,1,2,1e400", "line 33: column 'w3' must be a finite number; got '1e400'"),
        ("2.0,b,1,2,3", "line 33: the times of run b must increase, .*line 32"),
        ('3.1,a,1,2,"3', "line 41: unexpected end of data"),
    ],
)
def test_errors_in_later_chunks_name_the_line(tmp_path, monkeypatch, part, line, message):
    monkeypatch.setattr("rigidjax.identification.data.csv._CHUNK", part)
    lines = _lines(False)
    lines[32] = line
    with pytest.raises(ValueError, match=message):
        read(tmp_path, "\n".join(lines) + "\n")


def test_subsampling_with_every(tmp_path):
    """Each sensor and each run is sampled from its first sample, with its noise."""
    lines = _lines(False)
    noise = np.arange(1.0, 21.0)[:, None] * np.ones(3)
    runs = read(tmp_path, "\n".join(lines), every=7, noise={Gyroscope(): noise})
    for whole, thin in zip(read(tmp_path, "\n".join(lines)), runs, strict=True):
        np.testing.assert_array_equal(thin.ts, whole.ts[::7])
        np.testing.assert_array_equal(thin.values[0], whole.values[0][::7])
        np.testing.assert_array_equal(thin.noise[0], noise[::7])
        assert thin.mask[0].all()
    # The gyroscope is read at even lines, the encoder at every fifth.
    path = tmp_path / "two.csv"
    rows = [
        f"{k},{f'{k},{k},{k}' if k % 2 == 0 else ',,'},{k if k % 5 == 1 else ''}" for k in range(40)
    ]
    path.write_text("\n".join(["t,w1,w2,w3,q", *rows]))
    sensors = {Gyroscope(): COLUMNS, JointCoordinate("hinge"): ("q",)}
    (run,) = read_csv(path, sensors, time="t", gaps="mask", every=3)
    used = [np.asarray(run.ts)[np.asarray(mask)[:, 0]].tolist() for mask in run.mask]
    assert used == [list(range(0, 40, 6)), [1, 16, 31]]
    assert run.ts.tolist() == sorted({*used[0], *used[1]})


def test_skipped_samples_are_checked(tmp_path):
    for every in (0, 1.5, True):
        with pytest.raises(
            ValueError, match=r"`read_csv\(every=...\)` must be a positive integer, 1"
        ):
            read(tmp_path, GOOD, every=every)
    with pytest.raises(ValueError, match="line 2: `every` = 3 leaves one sample of run a"):
        read(tmp_path, GOOD, every=3)
    with pytest.raises(ValueError, match="line 3: column 'w2' must be a finite number"):
        read(tmp_path, GOOD.replace("4,5,6", "4,inf,6"), every=2)


# --- files as loggers write them

PLAIN = "t,w1,w2,w3\n0,1.5,2,-3\n0.5,1.5,2,-3\n1,1.5,1e1,-3\n"
SEMICOLONS = PLAIN.replace(",", ";")
COMMAS = SEMICOLONS.replace(".", ",")
DIALECTS = {
    "empty last lines": PLAIN + "\n  \n",
    "carriage returns": PLAIN.replace("\n", "\r"),
    "both ends and a mark of order": "\ufeff" + PLAIN.replace("\n", "\r\n") + "\r\n",
    "carriage returns before empty cells": "x," + PLAIN.strip().replace("\n", "\r\r,"),
    "a decimal comma in the last line only": SEMICOLONS.replace("1.5", "15e-1")
    .replace("0.5", "5e-1")
    .replace("1e1", "10,0"),
    "text with number signs, commas and line ends": PLAIN.replace("w3\n", "w3,x\n").replace(
        "-3\n", '-3,"a #1, 2,5\n"\n'
    ),
    "comments": "# logger 3.1\n\n" + PLAIN.replace("\n0.5", "\n# lost\n#\n\n0.5") + "# end\n",
    "names in a comment": "# made by\n# " + PLAIN,
    "units": PLAIN.replace("w3\n", "w3\n# below\n[s],(rad/s), rad/s,\n"),
    "quoted names": PLAIN.replace("t,w1", '"t", "w1"'),
    "a delimiter at the end": PLAIN.replace("-3\n", "-3,\n"),
    "cells without a value at the end": PLAIN + ",,,\n",
    "semicolons": SEMICOLONS,
    "decimal commas": COMMAS,
    "decimal commas between tabs": PLAIN.replace(",", "\t").replace(".", ","),
    "tabs": PLAIN.replace(",", "\t"),
    "blanks": PLAIN.replace(",", "   ").replace("\n", " \n  "),
    "utf-16": PLAIN.replace(",", "\t"),
}


@pytest.mark.parametrize("part", [1, 2**18])
@pytest.mark.parametrize("name", DIALECTS)
def test_csv_dialects(tmp_path, monkeypatch, name, part):
    monkeypatch.setattr("rigidjax.identification.data.csv._CHUNK", part)
    encoding = "utf-16" if name == "utf-16" else "utf-8"
    (tmp_path / "rates.csv").write_text(DIALECTS[name], encoding=encoding, newline="")
    (run,) = read_csv(tmp_path / "rates.csv", {Gyroscope(): COLUMNS}, time="t")
    np.testing.assert_array_equal(run.ts, [0.0, 0.5, 1.0])
    np.testing.assert_array_equal(run.values[0], [[1.5, 2, -3], [1.5, 2, -3], [1.5, 10, -3]])
    assert run.time_zero is None and run.name == ""


def test_units_below_the_names(tmp_path):
    text = PLAIN.replace("w3\n", "w3\nms,deg/s,deg/s,deg/s\n")
    (run,) = read(tmp_path, text, run=None)
    np.testing.assert_allclose(run.ts, [0.0, 0.5e-3, 1e-3])
    np.testing.assert_allclose(run.values[0][0], np.deg2rad([1.5, 2, -3]))
    (same,) = read(tmp_path, text, run=None, units={Gyroscope(): "dps", "time": "ms"})
    np.testing.assert_array_equal(same.ts, run.ts)
    with pytest.raises(ValueError, match="line 2: the column 'w1' is in 'deg/s', and .* 'rad/s'"):
        read(tmp_path, text, run=None, units={"w1": "rad/s"})
    with pytest.raises(ValueError, match="line 2: .* no line of units: 'furlong' below 'w2'"):
        read(tmp_path, PLAIN.replace("w3\n", "w3\ns,deg/s,furlong,deg/s\n"), run=None)


@pytest.mark.parametrize("gap", ["", "NA", "nan", "NaN", "n/a", "N/A", "null", "None", " NA "])
def test_missing_samples(tmp_path, gap):
    text = PLAIN.replace("0.5,1.5", f"0.5,{gap}")
    (run,) = read(tmp_path, text, run=None, gaps="mask")
    assert run.mask[0][:, 0].tolist() == [True, False, True] and run.mask[0][:, 1].all()
    with pytest.raises(ValueError, match="line 3: column 'w1' .* was not taken, read with `gaps="):
        read(tmp_path, text, run=None)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (SEMICOLONS.replace("1;1.5", "1;1,5"), {}, "line 4: .*'1,5'. All .* the same decimal mark"),
        (
            SEMICOLONS.replace("1;1.5", "1;1.234,5"),
            {},
            "line 4: .* '1.234,5'. .* none of thousands",
        ),
        (SEMICOLONS, {"decimal": ","}, "line 2: column 'w1' .* number; got '1.5'. .*`decimal=`"),
        (COMMAS, {"decimal": "."}, "line 2: column 'w1' must be a finite number; got '1,5'"),
        (COMMAS, {"decimal": ",", "delimiter": ","}, r"`read_csv\(decimal=...\)` is"),
    ],
)
def test_mixed_decimal_separators_raise(tmp_path, text, options, message):
    with pytest.raises(ValueError, match=message):
        read(tmp_path, text, run=None, **options)


NANOSECONDS = 1700000000123456789


@pytest.mark.parametrize(("unit", "digits"), [("ns", 0), ("us", 3), ("ms", 6), ("s", 9)])
def test_timestamps_keep_their_resolution(tmp_path, unit, digits):
    """Steps of 1 ns and 3 ns of a clock since 1970, whatever the unit."""
    stamps = [f"{NANOSECONDS + k}" for k in (0, 1, 4)]
    stamps = [f"{x[:-digits]}.{x[-digits:]}" if digits else x for x in stamps]
    text = "t,w1,w2,w3\n" + "".join(f"{x},1,2,3\n" for x in stamps)
    (run,) = read(tmp_path, text, run=None, units={"t": unit})
    np.testing.assert_allclose(run.ts, [0.0, 1e-9, 4e-9], rtol=1e-15)
    assert run.time_zero == "2023-11-14T22:13:20.123456789Z"
    if unit != "s":
        with pytest.raises(ValueError, match=r"line 2: column 't' starts at 17.*2023-11-14T22:13"):
            read(tmp_path, text, run=None)


def test_dates_and_times(tmp_path):
    """With and without a zone; two runs, and another file, on the same clock."""
    text = (
        "t;run;w1;w2;w3\n2023-11-14T23:13:20.5+01:00;a;1;2;3\n2023-11-14T22:13:20,75Z;a;1;2;3\n"
        "2023-11-14 22:14Z;b;1;2;3\n2023-11-14 17:14:00.000000001-0500;b;1;2;3\n"
    )
    a, b = read(tmp_path, text)
    np.testing.assert_array_equal(a.ts, [0.0, 0.25])
    np.testing.assert_allclose(b.ts - 39.5, [0.0, 1e-9], atol=1e-14)
    assert a.time_zero == b.time_zero == "2023-11-14T22:13:20.5Z"
    other = "t,w1,w2,w3\n1700000001000,1,2,3\n1700000002000,1,2,3\n"
    (c,) = read(tmp_path, other, run=None, units={"t": "ms"}, time_zero=a.time_zero)
    np.testing.assert_array_equal(c.ts, [0.5, 1.5])
    (naive,) = read(
        tmp_path, "t,w1,w2,w3\n2024-02-29 01:02:03,1,2,3\n2024-02-29 01:02:04,1,2,3", run=None
    )
    assert naive.ts.tolist() == [0.0, 1.0] and naive.time_zero == "2024-02-29T01:02:03Z"
    wrong = [
        (text.replace(",75Z", ",75"), {}, "line 3: column 't': some times state a zone"),
        (text, {"units": {"t": "ms"}}, "line 2: column 't' holds dates .* leave its unit out"),
        (
            text.replace("2023-11-14 22", "2023-11-31 22"),
            {},
            "line 4: .*'2023-11-31 22.* is no date",
        ),
        (
            text.replace("2023-11-14 22:14Z", "22:14"),
            {},
            "line 4: column 't': a time must be as 2026",
        ),
        (text, {"time_zero": "noon"}, "`time_zero` must be that of another run"),
    ]
    for content, options, message in wrong:
        with pytest.raises(ValueError, match=message):
            read(tmp_path, content, **options)
