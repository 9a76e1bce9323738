"""The pages of published cases: their values are those that their scripts compute."""

import importlib.util
import pathlib
import re

import jax
import numpy as np
import pytest

import rigidjax as rj

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


def test_driven_robot_arm_needs_the_torques_of_the_regression():
    """Joints 1 to 4, where friction is not smoothed; motor 6 is approximated at joints 5 and 6."""
    script_of_arm = script("robot_arm")
    regression = script_of_arm.regress()
    model = rj.Relative(script_of_arm.driven_arm(regression))
    ts, angles, _ = script_of_arm.recording()
    q, v, a = script_of_arm.smooth_motion(ts, angles)
    rows = np.flatnonzero(np.abs(v[:, :4]).min(axis=1) > 0.6)[::50]
    states = rj.joint_states(model.system, q[rows], v[rows])
    torques = [
        model.inverse_dynamics(0.0, model.encode(jax.tree.map(lambda x, k=k: x[k], states)), a[row])
        for k, row in enumerate(rows)
    ]
    edge = script_of_arm.EDGE
    expected = regression.data.torques_of(regression.parameters)[rows - edge]
    assert len(rows) > 3
    np.testing.assert_allclose(np.array(torques)[:, :4], expected[:, :4], atol=1e-3)


def test_rotors_of_the_crazyflie_case_accelerate_the_drone(tmp_path):
    """Constant commands of a made log, after the lag: moments by the map of the thrust."""
    flight, ts = script("crazyflie"), np.arange(0.0, 33.0, 1e-3)
    commands = np.array([0.7, 0.6, 0.65, 0.72])
    np.savez(
        tmp_path / "log.npz", time=ts, gyro_deg_s=np.zeros((len(ts), 3)),
        motor_cmd_u16=np.tile(65_535 * commands, (len(ts), 1)),
    )  # fmt: skip
    flight.write_data(tmp_path / "log.npz", tmp_path / "data.npz")
    case = rj.read_case(flight.CASE, {"data": {"file": str(tmp_path / "data.npz")}})
    assert [len(run.ts) for run in case.measurements] == [1875, 1875]
    sol = rj.simulate(case.model, case.state0[0], 1.2, ts=[1.0, 1.1, 1.2])
    rates = np.asarray(sol.states.angular_velocity)[:, 0]
    thrust = -0.0123 * commands + 0.1285 * commands**2
    places = 0.028 * np.array([(1, -1), (-1, -1), (-1, 1), (1, 1)])
    moment = np.array([thrust @ places[:, 1], -thrust @ places[:, 0]])
    np.testing.assert_allclose(
        np.diff(rates[:, :2], axis=0) / 0.1, [moment / 1.4e-5] * 2, rtol=1e-3
    )
