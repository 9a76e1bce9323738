"""The page on models from files: its case is read."""

import pathlib
import re
import shutil

import pytest

import rigidjax as rj
from rigidjax.cli.case import read_run_case

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "robots.md").read_text("utf-8")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    shutil.copy(ROOT / "tests" / "models" / "data" / "arm.urdf", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_case_of_the_page(folder):
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.S)
    (folder / "case.toml").write_text(text)
    (folder / "volts.csv").write_text("time_s,u\n0.0,6.0\n0.5,3.0\n1.0,3.0\n")
    case = read_run_case(folder / "case.toml")
    assert isinstance(case.model, rj.Relative) and case.settings["samples"] == 201
    assert [type(force).__name__ for force in case.model.system.forces][-3:] == [
        "PointForce", "DCMotor", "Motor",
    ]  # fmt: skip
