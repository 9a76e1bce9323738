"""Reading measurements from files: every fault is named with its line."""

import re
import subprocess
import sys

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


@pytest.mark.parametrize("part", [1, 100, 2**24])
@pytest.mark.parametrize("gaps", ["raise", "mask"])
def test_plain_and_quoted_lines_are_read_alike(tmp_path, monkeypatch, part, gaps):
    """To the last bit, wherever the part ends that is read at once, and a quotation mark comes."""
    monkeypatch.setattr("rigidjax.identification.data.csv._PART", part)
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


@pytest.mark.parametrize("part", [1, 2**24])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("3.1,a,1,2", "line 33: 4 cells under 5 names"),
        ("3.1,a,1,2,3,4", "line 33: 6 cells under 5 names"),
        ("3.1,a,1,2,", "line 33: column 'w3' is empty"),
        ("3.1,a,1,2,inf", "line 33: column 'w3' must be finite; got 'inf'"),
        ("3.1,a,1,2,True", "line 33: column 'w3' must be a number; got 'True'"),
        ("3.1,a,1,2,NA", "line 33: column 'w3' must be a number; got 'NA'"),
        ("3.1,a,1,2,1e400", "line 33: column 'w3' must be finite; got '1e400'"),
        ("", "line 33: the line is empty"),
        ("2.0,b,1,2,3", "line 33: the times of run b must increase, .*line 32"),
        ('3.1,a,1,2,"3', "line 41: unexpected end of data"),
    ],
)
def test_faults_of_later_parts_name_the_line(tmp_path, monkeypatch, part, line, message):
    monkeypatch.setattr("rigidjax.identification.data.csv._PART", part)
    lines = _lines(False)
    lines[32] = line
    with pytest.raises(ValueError, match=message):
        read(tmp_path, "\n".join(lines) + "\n")


def test_one_of_several_samples(tmp_path):
    """Of each sensor its own; of runs each from its first sample; noise with them."""
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


def test_samples_that_are_left_out_are_checked(tmp_path):
    for every in (0, 1.5, True):
        with pytest.raises(ValueError, match=r"`read_csv\(every=...\)` must be a whole number, 1"):
            read(tmp_path, GOOD, every=every)
    with pytest.raises(ValueError, match="line 2: `every` = 3 leaves one sample of run a"):
        read(tmp_path, GOOD, every=3)
    with pytest.raises(ValueError, match="line 3: column 'w2' must be finite"):
        read(tmp_path, GOOD.replace("4,5,6", "4,inf,6"), every=2)


@pytest.mark.exhaustive
def test_two_million_lines_in_little_memory(tmp_path):
    path = tmp_path / "long.csv"
    with open(path, "w") as file:
        file.write("t,w1,w2,w3,a1,a2,a3\n")
        numbers = ",".join(f"{x:.7f}" for x in np.random.default_rng(1).normal(size=6))
        file.writelines(f"{k * 1e-3:.3f},{numbers}\n" for k in range(2_000_000))
    code = f"""if True:
        from rigidjax.identification import Accelerometer, Gyroscope, read_csv
        sensors = {{Gyroscope(): ("w1", "w2", "w3"), Accelerometer(): ("a1", "a2", "a3")}}
        (run,) = read_csv({str(path)!r}, sensors, time="t")
        assert len(run.ts) == 2_000_000
        # Not `ru_maxrss`, which begins at what the parent process held.
        (line,) = [x for x in open("/proc/self/status") if x.startswith("VmHWM")]
        print(line.split()[1])
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 1_000_000  # kB
