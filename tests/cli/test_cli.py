"""The command line: output, files, and messages for invalid input."""

import re
import sys

import numpy as np
import pytest
from cli.case_files import TOSSES
from cli.program import assert_refused, call, good, refusal

import rigidjax as rj
from rigidjax.cli.app import cache_folder
from rigidjax.cli.base.messages import translate_message

COMMANDS = ("list", "run", "model", "compare", "identify", "regress", "export", "demo")
QUICK = ("run", "free_body", "--samples", "11")


# --- help, version, list


def test_version_is_printed():
    assert good("--version").strip() == f"rigidjax {rj.__version__}"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples(command):
    text = good(command, "--help")
    assert "Example" in text
    assert f"rigidjax {command}" in text
    assert command in good("--help")


def test_list_has_every_problem():
    text = good("list")
    for name, build in rj.problems.all().items():
        assert name in text
        assert f"{build().t1:g} s" in text
    assert "disturbance=0.1" in text


def test_messages_name_command_line_options():
    """Not what is to be written in Python."""
    for message, expected in (
        ("Bad. `throw=False` returns what was reached.", "Bad."),
        (rj.RESULTS[rj.RESULTS.singular_parametrization], "(`--recharting`), or use `quat"),
        ("Use `solver=rj.solvers.BDF()`.", "Use the solver `bdf`."),
        ("Use `rj.NullSpace(system)` or `rj.Absolute(system, index=0)`.", "`null-space` or `abs"),
        ("`Body(mass=...)` must be positive.", "`Body(mass=...)` must be positive."),
    ):
        assert expected in translate_message(message)
        assert "rj." not in translate_message(message) and "throw" not in translate_message(message)


# --- run


def test_run_reports_the_end():
    text = good(*QUICK, "--rtol", "1e-12")
    body = rj.problems.free_body()
    end = body.reference([body.t1])
    printed = re.search(r"angular velocity\s+(.*?)  rad/s, body", text).group(1)
    np.testing.assert_allclose(
        [float(x) for x in printed.split()], end.angular_velocity[0, 0], atol=1e-9
    )
    error = re.search(r"error at the end\s+(\S+) in R, (\S+) rad/s", text)
    assert float(error.group(1)) < 1e-10
    assert float(error.group(2)) < 1e-8
    assert "NullSpace, Quaternion, body rates; 7 unknowns" in text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--rates", "space"), "NullSpace, Quaternion, space rates; 7 unknowns"),
        (("--formulation", "absolute", "--rotation", "directors", "--no-projection"),
         "Absolute, Directors, index 0; 18 unknowns"),
        (("--solver", "dopri5", "--dt", "1e-3"), "dopri5, step 0.001 s"),
        (("--solver", "bdf", "--rtol", "1e-8"), "bdf, rtol 1e-08, atol 1e-08"),
    ],
)  # fmt: skip
def test_run_with_solver_options(arguments, text):
    out = good(*QUICK, *arguments)
    assert text in out
    error = re.search(r"error at the end\s+(\S+) in R", out).group(1)
    assert float(error) < 1e-6


def test_run_writes_a_trajectory_with_its_source(tmp_path):
    path = tmp_path / "body.nc"
    out = good(*QUICK, "--t1", "0.5", "--out", path)
    assert str(path) in out.replace("\n", "")
    data = rj.io.load(path)
    assert data.sizes["time"] == 11
    assert float(data.time[-1]) == 0.5
    assert data.attrs["source"] == rj.problems.free_body().source
    assert data.attrs["solver"] == "dopri8, rtol 1e-09, atol 1e-09"
    path.write_text("old")
    good(*QUICK, "--t1", "0.5", "--out", path, "--force")
    assert rj.io.load(path).sizes["time"] == 11


def test_run_uses_settings_of_the_problem(tmp_path):
    path = tmp_path / "racket.nc"
    arguments = ("--samples", 11, "--t1", 0.1, "--set", "disturbance=0.5", "--out", path)
    good("run", "tennis_racket", *arguments)
    np.testing.assert_array_equal(rj.io.load(path).angular_velocity[0, 0], [50.0, 0.5, 0.5])


def test_run_reports_a_missing_reference():
    text = good("run", "heavy_top", "--samples", 11, "--t1", 0.1)
    assert "no reference for this end time" in text


def test_progress_bar_counts_up():
    from rigidjax.cli.progress import Reporter

    seen = []
    body = rj.problems.free_body()
    rj.simulate(rj.NullSpace(body.system), body.state0, 1.0, progress=Reporter(seen.append))
    seen = np.array(seen, float)
    assert len(seen) > 5
    assert np.all(np.diff(seen) >= 0.01)
    assert 0.9 < seen[-1] <= 1.0


def test_progress_option():
    assert "error at the end" in good(*QUICK, "--progress")


# --- bad input


@pytest.mark.parametrize("command", ["run", "compare"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tenis",), "no problem 'tenis'. Did you mean 'tennis_racket'"),
        (("free_body", "--solver", "dopri6"), "no solver 'dopri6'. Did you mean 'dopri8'"),
        (("free_body", "--solver", "x"), "no solver 'x'. There are: dopri8, dopri5"),
        (("free_body", "--rtol", "1e-17"), "`--rtol 1e-17` is below what double precision reaches"),
        (("free_body", "--rtol", "2"), "`--rtol 2` is not a tolerance; use a number below 1"),
        (("free_body", "--t1", "0"), "`--t1 0` must be positive"),
        (("free_body", "--t1", "inf"), "`--t1 inf` must be positive"),
        (("free_body", "--solver", "euler"), "`--solver euler` has no error estimate"),
        (("free_body", "--set", "x=1"), "'free_body' has no settings; got 'x'"),
        (("tennis_racket", "--set", "disturbance"), "must be NAME=VALUE, such as disturbance=1e-3"),
        (("tennis_racket", "--set", "disturbace=1"),
         "no setting of tennis_racket 'disturbace'. Did you mean 'disturbance'"),
        (("tennis_racket", "--set", "disturbance=big"),
         r"`--set disturbance=` takes a number \(float\); got 'big'"),
        (("symmetric_top", "--set", "case=3"), "must be 1 or 2; got 3"),
        (("free_body", "--plot", "missing/a.png"), "Cannot write missing/a.png: No such file"),
        (("free_body", "--plot", "a.xyz"), "cannot be written as .xyz; take one of .*png"),
    ],
)  # fmt: skip
def test_invalid_input_exits_with_code_two(command, arguments, message):
    assert_refused(message, command, *arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--rotation", "quaternoin"), "no rotation 'quaternoin'. Did you mean 'quaternion'"),
        (("--formulation", "null"), "no formulation 'null'. Did you mean 'null-space'"),
        (("--rates", "bod"), "no kind of rates 'bod'. Did you mean 'body'"),
        (("--rates", "space", "--formulation", "absolute"), "requires `--formulation null-space`"),
        (("--formulation", "euler-parameters", "--rotation", "linear"),
         "requires `--rotation quaternion`"),
        (("--formulation", "hamiltonian", "--rotation", "linear"),
         "`--formulation hamiltonian` requires `--rotation quaternion`"),
        (("--index", "3"), "`--index 3` requires `--formulation absolute` or"),
        (("--index", "5", "--formulation", "absolute"), r"must be 0, 1, 2 or 3; got 5"),
        (("--index", "3", "--formulation", "absolute"), r"Use the solver `radau5`"),
        (("--dt", "0"), "`--dt 0` must be positive"),
        (("--dt", "1e-9"), "`--dt 1e-09` gives more than 10000000 steps"),
        (("--samples", "1"), "`--samples` must be 2 or more; got 1"),
        (("--out", "missing/a.nc"), "Cannot write missing/a.nc: No such file or directory"),
        (("--out", "."), "Cannot write .: it is a folder"),
    ],
)  # fmt: skip
def test_invalid_input_of_run(arguments, message):
    assert_refused(message, "run", "free_body", *arguments)


def test_missing_and_mistyped_arguments():
    for arguments in (("run",), ("run", "free_body", "--rtol", "small")):
        result = call(*arguments)
        assert result.exit_code == 2
        assert "Traceback" not in result.output


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "free_body", "--out", "precious.nc"),
        ("run", "free_body", "--plot", "precious.png"),
        ("compare", "free_body", "--plot", "precious.png"),
    ],
)
def test_existing_output_is_kept_without_force(tmp_path, arguments):
    *arguments, name = arguments
    path = tmp_path / name
    path.write_text("old")
    assert f"{name} exists; use --force to overwrite it." in refusal(*arguments, path)
    assert path.read_text() == "old"


def test_inputs_and_other_formats_are_not_overwritten(tmp_path):
    """Not even with --force; also through a link."""
    data, link = tmp_path / "tosses.md", tmp_path / "link.md"
    data.write_bytes(TOSSES.read_bytes())
    link.symlink_to(data)
    before = data.read_bytes()
    for path in (data, link):
        arguments = ("run", "free_body", "--html", path, "--force")
        assert_refused(r"`--html` writes .html or .htm; got .*\.md", *arguments)
    assert_refused("`--out` writes .nc, .nc4 or .h5; got a.csv", *QUICK, "--out", "a.csv")
    twice = ("--out", tmp_path / "a.nc", "--html", tmp_path / "a.nc")
    assert_refused("Outputs must be different files; .*a.nc is named twice", *QUICK, *twice)
    demo = tmp_path / "racket_fit.md"
    data.rename(demo)
    assert_refused("is an input", "demo", "--out", tmp_path, "--data", demo)
    assert demo.read_bytes() == before


def test_invalid_input_writes_no_file(tmp_path):
    refusal("run", "free_body", "--out", tmp_path / "a.nc", "--plot", tmp_path / "no" / "a.png")
    assert list(tmp_path.iterdir()) == []


def test_missing_matplotlib_is_reported(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    path = tmp_path / "a.png"
    assert_refused(
        r'Figures need matplotlib: pip install "rigidjax\[plot\]"', *QUICK, "--plot", path
    )


def test_run_that_fails_ends_with_code_one():
    arguments = ("--solver", "euler", "--dt", "0.01", "--no-projection", "--samples", "11")
    assert_refused("The state is no longer finite", "run", "heavy_top_fast", *arguments, code=1)


def test_run_reports_a_singularity():
    arguments = ("--rotation", "rodrigues", "--no-recharting", "--samples", "11")
    assert_refused(
        "reached a singularity of its parametrization", "run", "heavy_top", *arguments, code=1
    )


# --- demo


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("describe four_bar", "model NAME --html PAGE"),
        ("view run.nc --out page.html", "run TRAJECTORY.nc --html PAGE"),
        ("fit racket --report fit.md", "demo"),
    ],
)
def test_commands_of_older_versions_name_the_present_ones(old, new):
    name = old.split()[0]
    assert_refused(f"`rigidjax {name}` is gone: use `rigidjax {new}`", *old.split())
    assert f"│ {name} " not in good("--help")


def test_invalid_measurements_name_the_line(tmp_path):
    path = tmp_path / "bad.csv"
    for old, new, message in (
        ("omega2_rad_s", "omega_2", "line 1: there is no column 'omega2_rad_s'.*'omega_2'"),
        ("0.02004", "0.01001", "line 4: the times of run 15 must increase"),
    ):
        assert old in TOSSES.read_text()
        path.write_text(TOSSES.read_text().replace(old, new, 1))
        assert_refused(message, "demo", "--out", tmp_path / "out", "--data", path)


def test_demo_without_writable_folder(tmp_path):
    (tmp_path / "out").write_text("a file")
    assert_refused("Cannot make the folder .*out: File exists", "demo", "--out", tmp_path / "out")
    for arguments, message in (
        (("--data", "nothing.csv"), "There is no file nothing.csv"),
        (("--inertia", "-1", "1", "1"), "`--inertia -1` must be positive"),
    ):
        assert_refused(message, "demo", "--out", tmp_path / "figures", *arguments)


def test_run_with_a_structure_preserving_solver():
    text = good("run", "free_body", "--t1", 0.1, "--solver", "energy-momentum", "--dt", 1e-3)
    change = re.search(r"change of energy\s+(\S+) of", text)
    assert float(change[1]) < 1e-10
    how = ("run", "free_body", "--solver", "energy-momentum")
    assert_refused("has no error estimate: set a fixed step with --dt", *how)


# --- compare


def test_compare_prints_one_row_for_each_formulation(tmp_path):
    path = tmp_path / "work.png"
    words = ("--only", "quaternion", "--only", "zxz")
    text = good("compare", "tennis_racket", "--t1", "0.5", *words, "--plot", path)
    rows = {}
    for line in text.splitlines():
        found = re.match(r"   (\S.*?)\s{2,}(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\S+)", line)
        if found:
            rows.setdefault(found.group(1), []).append(found.groups()[1:])
    assert set(rows) == {"quaternion", "quaternion, space rates", "Euler angles ZXZ"}
    null_space, absolute, hamiltonian = rows["quaternion"]
    assert (null_space[0], absolute[0], hamiltonian[0]) == ("7", "8", "8")
    assert int(null_space[2]) < int(absolute[2])
    assert float(null_space[3]) < float(absolute[3])
    assert "against the closed form" in text
    assert path.stat().st_size > 10_000


def test_compare_rejects_unknown_formulations():
    message = "No formulation has 'octonion' in its name. There are: null space, quaternion;"
    assert_refused(message, "compare", "free_body", "--only", "octonion")


# --- systems of several bodies


def test_run_reports_position_drift():
    text = good("run", "simple_pendulum", "--t1", 0.1, "--samples", 11)
    error = re.search(r"(\S+) m in position, against closed form", text).group(1)
    assert float(error) < 1e-8


def test_compiled_code_is_cached(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder("/here") == "/here"
    assert cache_folder(None) == str(tmp_path / "rigidjax" / "jax")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder(None) == str(tmp_path / ".cache" / "rigidjax" / "jax")


# --- trajectories


@pytest.fixture
def trajectory(tmp_path):
    """A trajectory in a file, from a model that is at rest."""
    body = rj.Body.box("brick", (0.3, 0.2, 0.1), mass=1.0)
    model = rj.NullSpace(rj.System(body))
    run = rj.simulate(model, rj.State(angular_velocity=(0, 0, 1.0)), 0.1, dt=0.05)
    return rj.io.save(rj.io.to_dataset(run, {"title": "A brick"}), tmp_path / "brick.nc")


def test_page_of_trajectories(trajectory, tmp_path):
    """One is written beside its file and not overwritten, several are drawn together."""
    page = trajectory.with_suffix(".html")
    assert str(page) in good("run", trajectory).replace("\n", "")
    assert "<title>A brick</title>" in page.read_text("utf-8")
    assert_refused("--force", "run", trajectory)
    other, out = tmp_path / "other.nc", tmp_path / "both.html"
    other.write_bytes(trajectory.read_bytes())
    good("run", trajectory, other, "--html", out)
    text = out.read_text("utf-8")
    assert '"label":"brick"' in text and '"label":"other"' in text


def test_invalid_trajectories_state_the_remedy(trajectory, tmp_path):
    wrong = tmp_path / "wrong.nc"
    wrong.write_text("no trajectory")
    (tmp_path / "fit.html").write_text("page")
    for words, message in (
        (("absent.nc",), "There is no file absent.nc"),
        ((wrong,), "wrong.nc"),
        ((trajectory, tmp_path / "fit.html"), "fit.html is not a trajectory in NetCDF"),
        ((trajectory, "--html", tmp_path / "page.txt"), "writes .html or .htm"),
        ((trajectory, "--rtol", 1e-3), "`--rtol` is for simulations; .* is a stored trajectory"),
        ((trajectory, "--out", "a.nc"), "`--out` is for simulations"),
        (("free_body", "heavy_top"), "Only trajectories in NetCDF are shown together"),
    ):
        assert_refused(message, "run", *words)
