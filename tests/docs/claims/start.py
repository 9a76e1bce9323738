"""The examples print the values of the page."""

import pathlib
import re

import numpy as np

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "start.md"


def check_1(defined, printed):
    text = PAGE.read_text("utf-8")
    energies, derivative, verdict, fit = printed.strip().split("\n")
    assert abs(float(energies.split()[1])) < 1e-6 and float(energies.split()[2]) < 1e-14
    found = [float(x) for x in re.findall(r"Array\((-?[\d.]+)", derivative)]
    said = re.search(r"# (-[\d.]+) m, (-[\d.]+) m for", text)
    np.testing.assert_allclose(found, [float(x) for x in said.groups()], atol=5e-5)
    assert f"# {verdict}\n# {fit}\n" in text
    assert pathlib.Path("run.html").exists() and pathlib.Path("fit.md").exists()
    fit = defined["fit"]
    assert abs(fit.estimates["hinge.damping"] - 0.08) < 3 * fit.std["hinge.damping"]
