"""`rigidjax model`: tables, JSON, pages, comparison with another program, unusable files."""

import json

import pytest
from cli.case_files import PENDULUM, URDF
from cli.program import assert_refused, call, good

import rigidjax as rj
from rigidjax import plotting
from rigidjax.models import check


def test_tables_and_report():
    text = good("model", URDF)
    words = " ".join(text.split())  # the path of the file decides where the lines are broken
    assert "5 degrees of freedom, 8.05 kg" in words
    assert "└─ forearm (Revolute 'elbow')" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["pitch", "revolute", "-1.8", "to", "2.1", "2.5", "60", "0.3"] in lines
    assert ["yaw_motor", "yaw", "motor", "50"] in lines
    assert "line 139: <transmission name='yaw_drive'>: actuator of 'yaw', reduction 50" in words


def test_json_has_limits_of_the_file_and_all_lines_of_the_report():
    facts = json.loads(good("model", URDF, "--json"))
    joints = {joint["name"]: joint for joint in facts["joints"]}
    # The reference configuration of a mimic joint is at its offset, its limits are those of the
    # file.
    assert joints["right_slide"]["position"] == [0.0, 0.05]
    assert joints["yaw"]["position"] is None and joints["yaw"]["effort"] == 80
    assert joints["yaw"]["armature"] == [pytest.approx(50**2 * 4e-5)]
    assert facts["couplings"] and facts["degrees_of_freedom"] == 5
    assert facts["frames"]["camera"] == "wrist" and facts["frames"]["base"] == "ground"
    subjects = {entry["subject"] for entry in facts["report"]}
    assert {"<link name='wrist'>", "<joint name='flange'>", "<mimic> of 'right_slide'"} <= subjects


def test_loops_and_open_limits():
    facts = json.loads(good("model", URDF.with_name("linkage.sdf"), "--json"))
    joints = {joint["name"]: joint for joint in facts["joints"]}
    assert [name for name, joint in joints.items() if joint["closes_loop"]] == ["cross"]
    assert joints["drive"]["position"] == [-6.0, None]
    assert joints["drive"]["effort"] == 20 and joints["pivot"]["rate"] is None


def test_inertias_without_a_body_are_marked(tmp_path):
    flat = tmp_path / "flat.urdf"
    flat.write_text(URDF.read_text().replace("izz='0.0068'", "izz='0.0168'"))
    text = good("model", flat)
    row = next(line for line in text.splitlines() if line.startswith(" forearm"))
    assert row.rstrip().endswith("not physical") and " -0.00" in row
    assert "warning:" in text
    assert_refused("the inertia is not physical", "model", flat, "--physical", "error")
    assert_refused("Did you mean 'nearest'", "model", flat, "--physical", "nearst")


def test_comparison_decides_the_exit_code(monkeypatch):
    def compare(model, program, path):
        assert program == "pinocchio" and path == URDF
        return deviations

    monkeypatch.setattr("rigidjax.cli.model.compare", compare)
    deviations = check.Deviations(1e-15, 2e-15, 1e-11)
    assert "bias forces 2.0e-15" in good("model", URDF, "--check", "pinocchio")
    for wrong in (1e-9, float("nan")):
        deviations = check.Deviations(1e-15, wrong, 1e-11)
        done = call("model", URDF, "--check", "pinocchio")
        assert done.exit_code == 1 and "deviates from pinocchio by more than 1e-10" in done.stderr
        shown = "undefined" if wrong != wrong else "1.0e-09"
        assert f"bias forces {shown}" in done.stdout
        assert "from pinocchio, without friction and stops of joints" in done.stdout


def test_invalid_input_is_one_line(tmp_path, monkeypatch):
    noise = tmp_path / "noise.urdf"
    noise.write_text("no model")
    sdf = tmp_path / "a.sdf"
    sdf.write_text("<sdf/>")
    for arguments, message in (
        ((tmp_path / "absent.urdf",), "There is no file .*absent.urdf"),
        ((noise,), "noise.urdf:1: no well-formed XML"),
        ((URDF, "--check", "drake"), "There is no program 'drake'"),
        ((sdf, "--check", "pinocchio"), r"reads \.urdf files"),
    ):
        assert_refused(message, "model", *arguments)

    def compare(model, program, path):
        raise ModuleNotFoundError("No module named 'pinocchio'")

    monkeypatch.setattr("rigidjax.cli.model.compare", compare)
    message = "`--check pinocchio`: No module named 'pinocchio'; pip install pin"
    assert_refused(message, "model", URDF, "--check", "pinocchio")


def test_help_keeps_names_of_elements():
    assert "<mimic>" in good("model", "--help")


def test_page_of_a_problem(tmp_path):
    page = tmp_path / "four_bar.html"
    printed = good("model", "four_bar", "--html", page)
    assert "System with 3 bodies, 4 joints" in printed and "└─ coupler" in printed
    text = page.read_text("utf-8")
    for part in (
        "Bodies: 3; joints: 4; degrees of freedom: 1.", "coupler", "closes a loop",
        "principal moments", "Gravity vector (0, ", "<iframe",
    ):  # fmt: skip
        assert part in text, part
    assert_refused("--force", "model", "four_bar", "--html", page)
    assert_refused("no problem 'fourbars'. Did you mean", "model", "fourbars")
    assert_refused("need a model file", "model", "four_bar", "--json")


def test_page_of_a_case_and_of_a_file(tmp_path):
    page, case = tmp_path / "case.html", PENDULUM / "pendulum.toml"
    good("model", case, "--html", page)
    text = page.read_text("utf-8")
    assert "damping" in text and "Unknowns of NullSpace" in text
    assert_refused("is an input", "model", case, "--html", case, "--force")
    good("model", URDF, "--html", page, "--force")
    assert "forearm" in page.read_text("utf-8")


def test_page_of_a_fixed_point_body(tmp_path):
    assert "FixedPointBody" in good("model", "heavy_top")
    top = rj.problems.heavy_top().system
    text = plotting.write_model_page(top, tmp_path / "top.html", title="Top").read_text("utf-8")
    assert "<title>Top</title>" in text and "GravityPotential" in text
    with pytest.raises(TypeError, match="got int"):
        plotting.write_model_page(3, tmp_path / "3.html")  # pyright: ignore[reportArgumentType]
