"""`rigidjax describe`: pages of models."""

import pathlib

import pytest
from typer.testing import CliRunner

import rigidjax as rj
from rigidjax import plotting
from rigidjax.cli.app import app

PENDULUM = pathlib.Path(__file__).resolve().parents[2] / "examples" / "pendulum" / "pendulum.toml"


def invoke(*words):
    return CliRunner().invoke(app, [str(word) for word in ("describe", *words)])


def test_page_lists_bodies_joints_and_forces(tmp_path):
    page = tmp_path / "four_bar.html"
    done = invoke("four_bar", "--html", page)
    assert done.exit_code == 0 and str(page) in done.output
    text = page.read_text("utf-8")
    assert "Bodies: 3; joints: 4; degrees of freedom: 1." in text
    for part in (
        "coupler",
        "closes a loop",
        "principal moments",
        "Revolute",
        "Gravity vector (0, ",
        "<iframe",
    ):
        assert part in text, part
    again = invoke("four_bar", "--html", page)
    assert again.exit_code == 2 and "--force" in again.stderr


def test_describe_a_case_and_a_formulation(tmp_path):
    page = tmp_path / "case.html"
    assert invoke(PENDULUM, "--html", page).exit_code == 0
    text = page.read_text("utf-8")
    assert "damping" in text and "Unknowns of NullSpace" in text
    kept = invoke(PENDULUM, "--html", PENDULUM, "--force")
    assert kept.exit_code == 2


def test_describe_a_fixed_point_body_and_reject_other_objects(tmp_path):
    top = rj.problems.heavy_top().system
    text = plotting.write_model_page(top, tmp_path / "top.html", title="Top").read_text("utf-8")
    assert "<title>Top</title>" in text and "GravityPotential" in text
    with pytest.raises(TypeError, match="got int"):
        plotting.write_model_page(3, tmp_path / "3.html")
