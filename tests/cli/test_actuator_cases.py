"""Fits of friction, and of thrust, torque and lag of rotors, that case files describe."""

import csv
import json

import numpy as np
import pytest
from cli.program import good

import rigidjax as rj
from rigidjax.cli.case import read_case

# An arm on a vertical axis: one rotor pushes it, the torque of the other turns it.
CASE = """
[model]
formulation = "relative"
[[body]]
name = "arm"
mass = 0.5
inertia = [1e-3, 0.03, 0.03]
[[joint]]
type = "Revolute"
name = "hinge"
parent = "ground"
child = "arm"
point = [0.0, 0.0, 0.0]
axis = [0.0, 0.0, 1.0]
friction = { coulomb = 0.05, viscous = 0.02, stribeck = [0.09, 0.3], velocity = 0.05 }
[[frame]]
name = "push"
body = "arm"
point = [0.4, 0.0, 0.0]
[[force]]
type = "Rotor"
body = "push"
axis = [0.0, 1.0, 0.0]
command = { input = "speeds", size = 2, entry = 0 }
thrust = 1e-5
time_constant = 0.06
[[force]]
type = "Rotor"
body = "arm"
command = { input = "speeds", size = 2, entry = 1 }
thrust = 1e-5
torque = 2e-6
time_constant = 0.06
[inputs]
speeds = { columns = ["u1", "u2"], interpolation = "hold", extrapolation = "constant" }
[data]
file = "bench.csv"
time = "t"
[[sensor]]
type = "JointCoordinate"
joint = "hinge"
columns = ["angle"]
noise = 1e-3
[method]
horizons = [1.0]
"""
FRICTION, ROTORS = "model.system.joints.hinge.friction", "model.system.forces"
# Planted values, and those from which the fit starts.
PARAMETERS = {
    "coulomb": (f"{FRICTION}.coulomb", 0.05, 0.035),
    "viscous": (f"{FRICTION}.viscous", 0.02, 0.03),
    "static": (f"{FRICTION}.stribeck.static", 0.09, 0.07),
    "decay": (f"{FRICTION}.stribeck.velocity", 0.3, 0.4),
    "thrust": (f'{ROTORS}["Rotor push"].thrust', 1e-5, 0.8e-5),
    "torque": (f'{ROTORS}["Rotor arm"].torque', 2e-6, 1.5e-6),
    "lag": (f'{ROTORS}["Rotor push"].time_constant', 0.06, 0.09),
}
NOISE, TS = 1e-3, np.linspace(0.0, 4.0, 101)


def write_table(folder, speeds, angles):
    rows = np.column_stack([TS, speeds, angles]).tolist()
    with (folder / "bench.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["t", "u1", "u2", "angle"], *rows])


@pytest.mark.exhaustive
def test_fit_finds_friction_and_rotors(tmp_path):
    """From values that are wrong by 20 to 50 %; the data have white noise."""
    text, path = CASE, tmp_path / "bench.toml"
    for name, (place, _, start) in PARAMETERS.items():
        text += f"[[parameter]]\nname = '{name}'\npath = '{place}'\nstart = {start}\n"
        text += 'transform = "positive"\n'
    text += f"tied = ['{ROTORS}[\"Rotor arm\"].time_constant']\n"
    path.write_text(text)
    speeds = 400 * np.stack([np.sin(5.0 * TS), np.sin(2.3 * TS) + 0.4 * np.sin(12 * TS)], axis=1)
    write_table(tmp_path, speeds, np.zeros(len(TS)))
    case = read_case(path)
    run = rj.simulate(case.model, case.state0, TS[-1], ts=TS)
    exact = run.coordinates["hinge"][:, 0]
    write_table(tmp_path, speeds, exact + NOISE * np.random.default_rng(4).normal(size=exact.shape))
    good("identify", path, "--report", tmp_path / "fit.json")
    report = json.loads((tmp_path / "fit.json").read_text())
    estimates = {p["label"]: (p["estimate"], p["std"]) for p in report["parameters"]}
    for name, (_, planted, _) in PARAMETERS.items():
        value, std = estimates[name]
        # No deviation is so large that it hides a wrong estimate.
        assert abs(value - planted) < 3 * std and std < 0.1 * planted
