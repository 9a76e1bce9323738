"""The measured racket: the known optimum, from the pendulum values."""

import pathlib

import pytest

from rigidjax.cli import demo as command


def test_missing_data_file_raises(monkeypatch, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no file .*flips\.csv"):
        command.racket_case(tmp_path / "flips.csv")
    monkeypatch.setattr(command, "_DATA_FILE", pathlib.Path("datasets", "nowhere", "flips.csv"))
    with pytest.raises(FileNotFoundError, match=r"not part of an installed package.*`--data FILE`"):
        command.racket_case()
