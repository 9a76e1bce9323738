"""`rigidjax view`."""

import pytest
from typer.testing import CliRunner

import rigidjax as rj
from rigidjax import io
from rigidjax.cli.app import app


@pytest.fixture
def file(tmp_path):
    """A trajectory in a file, from a model that is at rest."""
    body = rj.Body.box("brick", (0.3, 0.2, 0.1), mass=1.0)
    model = rj.NullSpace(rj.System(body))
    run = rj.simulate(model, rj.State(angular_velocity=(0, 0, 1.0)), 0.1, dt=0.05)
    return io.save(io.to_dataset(run, {"title": "A brick"}), tmp_path / "brick.nc")


def invoke(*words):
    return CliRunner().invoke(app, [str(word) for word in ("view", *words)])


def test_page_is_written_beside_its_file_and_not_overwritten(file):
    done = invoke(file)
    page = file.with_suffix(".html")
    assert done.exit_code == 0 and str(page) in done.output
    assert "<title>A brick</title>" in page.read_text("utf-8")
    again = invoke(file)
    assert again.exit_code == 2 and "--force" in again.stderr
    assert invoke(file, "--force", "--title", "Other", "--theme", "dark").exit_code == 0
    assert "<title>Other</title>" in page.read_text("utf-8")
    assert 'data-theme="dark"' in page.read_text("utf-8")


def test_several_files_are_overlaid(file, tmp_path):
    other = tmp_path / "other.nc"
    other.write_bytes(file.read_bytes())
    out = tmp_path / "both.html"
    assert invoke(file, other, "--out", out).exit_code == 0
    text = out.read_text("utf-8")
    assert '"label":"brick"' in text and '"label":"other"' in text


def test_invalid_input_states_the_remedy(file, tmp_path):
    wrong = tmp_path / "wrong.nc"
    wrong.write_text("no trajectory")
    for words, message in (
        (("absent.nc",), "absent.nc"),
        ((wrong,), "wrong.nc"),
        (("fit.html",), "reads trajectories in NetCDF"),
        (("fit.html",), "got fit.html. Open a page in a browser."),
        ((file, "--out", file), "is an input"),
        ((file, "--out", tmp_path / "page.txt"), "writes .html or .htm"),
        ((file, "--theme", "drak"), "Did you mean 'dark'"),
    ):
        done = invoke(*words)
        assert done.exit_code == 2, words
        assert message in done.stderr.replace("\n", ""), (words, done.stderr)
