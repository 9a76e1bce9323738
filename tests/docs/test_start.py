"""The start page: examples run, and print the values of the page."""

import pathlib
import re

import numpy as np
import pytest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "start.md"


@pytest.mark.exhaustive
def test_examples_print_the_values_of_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text("utf-8")
    defined = {}
    exec("\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)), defined)
    energies, derivative, fit = capsys.readouterr().out.strip().split("\n")
    assert abs(float(energies.split()[1])) < 1e-6 and float(energies.split()[2]) < 1e-14
    found = [float(x) for x in re.findall(r"Array\((-?[\d.]+)", derivative)]
    said = re.search(r"# (-[\d.]+) m, (-[\d.]+) m for", text)
    np.testing.assert_allclose(found, [float(x) for x in said.groups()], atol=5e-5)
    assert f"# {fit}\n" in text
    assert (tmp_path / "run.html").exists() and (tmp_path / "fit.md").exists()
    assert abs(defined["fit"].estimates["damping"] - 0.08) < 3 * defined["fit"].std["damping"]
