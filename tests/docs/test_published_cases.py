"""The pages of published cases: their values are those that their scripts compute."""

import importlib.util
import pathlib
import re

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "examples" / "published_cases"
PAGES = [ROOT / "docs" / "published_cases.md", *(ROOT / "docs" / "published_cases").glob("*.md")]
TEXT = "\n".join(page.read_text("utf-8") for page in sorted(PAGES))


def script(name):
    spec = importlib.util.spec_from_file_location(f"published_{name}", SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def row_values(start):
    """Return the values of the first row that starts with a text."""
    line, *_ = re.findall(rf"^\| {re.escape(start)} \|(.*)\|$", TEXT, re.MULTILINE)
    return [float(x) for x in re.findall(r"-?\d+\.?\d*", line)]


def test_pages_name_every_script():
    for path in SCRIPTS.glob("*.py"):
        assert f"python {path.relative_to(ROOT).as_posix()}`" in TEXT


@pytest.mark.parametrize("name", ["ddp", "direct_collocation"])
def test_inertia_of_the_simple_pendulum_depends_on_the_filter(name):
    pendulum = script("simple_pendulum")
    found = [pendulum.by_cutoff(name, cutoff)[0] for cutoff in (5.0, 10.0, 15.0, 40.0)]
    table = TEXT.split("(least squares)")[1]
    (line,) = re.findall(rf"^\| `{name}` \|(.*)\|$", table, re.MULTILINE)
    np.testing.assert_allclose(found, [float(x) for x in line.split("|")], atol=6e-4)
    assert found[0] > 10 * found[-1]


@pytest.mark.parametrize("model", ["1.0", "3.0"])
def test_published_models_of_the_double_pendulum(model):
    found = script("double_pendulum").published_values(f"model_{model}")
    np.testing.assert_allclose(row_values(f"published {model}"), found, atol=6e-4)


@pytest.mark.exhaustive
def test_regression_of_the_double_pendulum():
    pendulum = script("double_pendulum")
    data = pendulum.joint_data(pendulum.link_frames(), "C1_154220", 10.0)
    values, std = pendulum.estimates(pendulum.ident.regress(data))
    cells = np.array(row_values("low-pass 10 Hz")[:8]).reshape(4, 2)
    np.testing.assert_allclose(cells, np.column_stack([values, std])[:4], atol=6e-4)
