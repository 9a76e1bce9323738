"""Changes since an earlier report, and the origin that reports name."""

import csv
import datetime
import json

import numpy as np
import pytest
from identification import oscillator

from rigidjax.identification import Measurements
from rigidjax.identification.data.measurements import stack_runs
from rigidjax.identification.result.previous import changes_since
from rigidjax.identification.result.report import current_date, data_hash, software_versions


def record(estimates, stds, **others):
    parameters = [
        {"label": label, "unit": "kg", "estimate": value, "std": std}
        for (label, value), std in zip(estimates.items(), stds, strict=True)
    ]
    return {"parameters": parameters, "data_sha256": "a", "date": "2026-01-02", **others}


def test_changes_in_standard_errors_of_the_difference(tmp_path):
    path = tmp_path / "old.json"
    path.write_text(json.dumps(record({"m": 1.0, "c": 2.0, "d": 5.0}, [0.03, 0.1, "inf"])))
    new = record({"m": 1.2, "d": 5.1, "k": 3.0}, [0.04, 0.1, 0.1], data_sha256="b")
    result = changes_since(new, path)
    mass, other = result.changes
    assert mass.standard_errors == pytest.approx(0.2 / 0.05)
    assert np.isnan(other.standard_errors)
    assert (result.added, result.removed) == (("k",), ("c",))
    assert result.same_data is False
    assert result.sentence == (
        "Since the fit of 2026-01-02, of other data, these moved by more than 2 standard errors: "
        "m by +4. New: k. No longer fitted: c."
    )
    assert "| m | 1.000 | 1.200 | +0.2 | +4 | kg |" in result.to_markdown()
    path.write_text(json.dumps(record({"m": 1.19}, [0.03])))
    same = changes_since(new | {"data_sha256": "a"}, path)
    assert "of the same data, no estimate moved by more than 2" in same.sentence


def test_reports_name_changes_and_origin(tmp_path):
    fit = oscillator.fit(oscillator.measure(seed=4))
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    record = json.loads(fit.report(old))
    assert record["data_sha256"] == data_hash(fit.optimum.runs) and "changes" not in record
    assert record["versions"] == software_versions() and record["date"][:2] == "20"
    record["parameters"][0]["estimate"] -= 10 * fit.std["stiffness"]
    old.write_text(json.dumps(record))
    changes = json.loads(fit.report(new, previous=old))["changes"]
    assert changes["same_data"] is True
    errors = [p["standard_errors"] for p in changes["parameters"]]
    assert errors == pytest.approx([10 / np.sqrt(2), 0.0])
    text = fit.report(previous=old)
    assert fit.changes_since(old).sentence in text
    assert "stiffness by +7.1" in text and record["data_sha256"] in text and "## Origin" in text
    rows = list(csv.DictReader(fit.report(tmp_path / "fit.csv").splitlines()))
    low, high = fit.confidence_intervals()["damping"]
    assert [row["parameter"] for row in rows] == ["stiffness", "damping"]
    assert float(rows[1]["estimate"]) == fit.values[1] and rows[1]["unit"] == "N m s"
    assert (float(rows[1]["lower"]), float(rows[1]["upper"])) == (low, high)


def test_other_files_raise(tmp_path):
    path = tmp_path / "old.json"
    for text in ("{}", "[1]", "no JSON"):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"previous=...\)` takes a file that .*old.json' is n"):
            changes_since(record({}, []), path)
    with pytest.raises(FileNotFoundError):
        changes_since(record({}, []), tmp_path / "none.json")


def test_origin_is_hash_of_the_data_versions_and_date():
    runs = oscillator.measure()
    original = data_hash(stack_runs(runs))
    assert {"rigidjax", "python", "jax", "numpy"} <= set(software_versions())
    assert datetime.datetime.fromisoformat(current_date()).tzinfo is datetime.UTC
    assert len(original) == 64 and data_hash(stack_runs(oscillator.measure())) == original
    unknown = oscillator.measure(noise=None)
    assert data_hash(stack_runs(unknown)) == original
    assert data_hash(stack_runs(runs[::-1])) != original
    values = np.array(runs[0].values[0])
    values[3] += 1e-12
    changed = Measurements(runs[0].ts, {oscillator.ANGLE: values}, {oscillator.ANGLE: 0.1})
    assert data_hash(stack_runs([changed, *runs[1:]])) != original
    mask = np.ones(len(values), bool)
    mask[3] = False
    masked = [
        Measurements(runs[0].ts, {oscillator.ANGLE: x}, mask={oscillator.ANGLE: mask})
        for x in (values, runs[0].values[0])
    ]
    # A masked sample does not count, whatever its value.
    hashes = {data_hash(stack_runs([run])) for run in masked}
    assert len(hashes) == 1 and original not in hashes
