"""The page on models: the example runs, and its derivative agrees with differences."""

import pathlib
import re

import numpy as np
import pytest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "models.md"


@pytest.mark.exhaustive
def test_example_of_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    defined = {"__name__": "models"}
    exec("\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)), defined)
    assert defined["system"].num_dof == 7
    assert (tmp_path / "model.html").is_file()
    height = defined["height"]
    difference = (height(0.0301) - height(0.0299)) / 2e-4
    np.testing.assert_allclose(defined["slope"], difference, rtol=1e-5)
