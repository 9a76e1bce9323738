"""`rigidjax regress`: an arm from a URDF, its recordings, reports, and the fitted file."""

import csv
import json

import numpy as np
import pytest
from cli.program import assert_refused, good

import rigidjax as rj
from rigidjax import identification as ident
from rigidjax.cli.case.regression import read_regression_case

LINK = """  <link name="{name}"><inertial><origin xyz="{center}" rpy="0 0 0"/><mass value="{mass}"/>
    <inertia ixx="{x}" iyy="{y}" izz="{z}" ixy="0" ixz="0" iyz="0"/></inertial></link>
"""
JOINT = """  <joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>
    <origin xyz="{origin}" rpy="0 0 0"/><axis xyz="{axis}"/>
    <limit lower="-3" upper="3" effort="90" velocity="5"/>
    <dynamics damping="0.0" friction="0.0"/></joint>
"""
# Motor 2 turns with both joints.
GEAR = np.array([[20.0, 0.0], [10.0, -10.0]])
DT = 0.004
FRICTION = {"hip.viscous": 1.5, "knee.viscous": 0.8, "hip.coulomb": 2.0, "knee.coulomb": 1.1}
PAYLOAD = {"mass": 0.9, "center": [0.3, 0.0, 0.02], "inertia": [0.002, 0.003, 0.003]}
CASE = """
title = "Two links"
model = "arm.urdf"

[data]
file = "log.npz"
time = "dt"

[position]
columns = "motor_deg"
unit = "deg"
gear = [[20, 0], [10, -10]]
zero = [0.2, -0.1]

[torque]
columns = ["motor_torque[0]", "motor_torque[1]"]
unit = "N mm"

[filter]
cutoff = 20.0
margin = 0.2
rest = 0.15

[regress]
terms = ["viscous", "coulomb"]
essential = 2.0
consistent = 1e-3
"""


def write_arm(folder, center="0.12 0.01 0"):
    links = [
        '  <link name="base"/>\n',
        LINK.format(name="thigh", center=center, mass=1.3, x=0.004, y=0.02, z=0.021),
        LINK.format(name="shin", center="0.1 0 0.02", mass=0.8, x=0.003, y=0.012, z=0.013),
    ]
    joints = [
        JOINT.format(name="hip", parent="base", child="thigh", origin="0 0 0.5", axis="0 0.6 0.8"),
        JOINT.format(name="knee", parent="thigh", child="shin", origin="0.25 0 0", axis="0 1 0"),
    ]
    path = folder / "arm.urdf"
    path.write_text('<robot name="arm">\n' + "".join(links + joints) + "</robot>\n")
    return path


def coordinates(ts):
    """Slow sums of sines, and their derivatives, (T, 2) each."""
    rates = np.array([[2.0, 3.1, 5.3], [1.7, 3.7, 4.9]])
    sizes = np.array([[0.5, 0.3, 0.15], [0.6, -0.3, 0.2]])
    phases = np.multiply.outer(ts, rates) + 0.3
    return tuple(
        np.sum(sizes * rates**k * wave, axis=2)
        for k, wave in enumerate((np.sin(phases), np.cos(phases), -np.sin(phases)))
    )


def write_log(path, model, loads=None, noise=0.0, count=1500):
    """Motor angles and torques of the arm of a file, with a payload or without."""
    q, v, a = coordinates(DT * np.arange(count))
    system = model.system
    data = ident.joint_data(system, q, v, a, np.zeros_like(q), terms=("viscous", "coulomb"))
    own = np.concatenate([ident.inertial_parameters(system), np.zeros(4)])
    own[[data.labels.index(label) for label in FRICTION]] = list(FRICTION.values())
    tau = data.torques_of(own)
    if loads is not None:
        shin = 10 * [b.name for b in system.bodies].index("shin")
        frame = model.frames["shin"].point
        center = np.asarray(loads["center"]) + np.asarray(frame)
        load = rj.MassProperties(loads["mass"], center, loads["inertia"])
        tau = tau + data.matrix[:, :, shin : shin + 10] @ np.asarray(load.parameters())
    tau = tau + noise * np.random.default_rng(0).normal(size=tau.shape)
    motor = (q - [0.2, -0.1]) @ GEAR.T
    torque = np.linalg.solve(GEAR.T, tau.T).T
    np.savez(path, dt=DT, motor_deg=np.degrees(motor), motor_torque=1000 * torque)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A robot whose file is wrong, and the recordings of the right one."""
    path = tmp_path_factory.mktemp("arm")
    right = rj.models.load(write_arm(path), fixed_base=True)
    write_log(path / "log.npz", right, noise=0.02)
    write_log(path / "loaded.npz", right, PAYLOAD, noise=0.02)
    write_arm(path, center="0.1 0 0.01")
    (path / "case.toml").write_text(CASE)
    return path


@pytest.fixture(scope="module")
def truth(folder):
    """Parameters of the right robot about the origins of its links, and friction."""
    links = [
        (1.3, (0.12, 0.01, 0), (0.004, 0.02, 0.021)),
        (0.8, (0.1, 0, 0.02), (0.003, 0.012, 0.013)),
    ]
    bodies = [np.asarray(rj.MassProperties(*link).parameters()) for link in links]
    return np.concatenate([*bodies, [1.5, 0.8, 2.0, 1.1]])


def test_command_finds_the_robot_and_writes_its_file(folder, truth):
    """Report, values and the URDF with the masses and frictions that made the data."""
    out = folder / "out"
    out.mkdir()
    text = good(
        "regress", folder / "case.toml", "--report", out / "a.md", "--csv", out / "a.csv",
        "--model", out / "fitted.urdf",
    )  # fmt: skip
    assert "of 2 torques" in text and "are essential" in text
    report = (out / "a.md").read_text()
    assert report.startswith("**") and "intervals" in report.splitlines()[0]
    assert "## Essential parameters" in report and "log.npz: " in report
    good("regress", folder / "case.toml", "--report", out / "a.json")
    record = json.loads((out / "a.json").read_text())
    labels = [entry["label"] for entry in record["regression"]["parameters"]]
    rows = list(csv.reader((out / "a.csv").read_text().splitlines()))
    assert [row[0] for row in rows[1:]] == labels
    for label, value in FRICTION.items():
        k = labels.index(label)
        assert float(rows[1 + k][1]) == pytest.approx(value, rel=0.03)
        assert record["consistent"]["terms"][label] == pytest.approx(value, rel=0.03)
    fitted = rj.models.load(out / "fitted.urdf", fixed_base=True).system
    hip = fitted.joints[fitted.joint_index("hip")]
    assert float(hip.damping[0]) == pytest.approx(1.5, rel=0.03)
    assert float(hip.friction.coulomb[0]) == pytest.approx(2.0, rel=0.03)
    # Torques by gravity and inertia of the fitted file (at most 3.3 N m), against the true file.
    # Errors of friction remain: 3 % of 2 N m.
    right = rj.models.load(write_arm(out), fixed_base=True).system
    motion = coordinates(DT * np.arange(0, 1500, 50))
    torques = []
    for system in (fitted, right):
        data = ident.joint_data(system, *motion, np.zeros_like(motion[0]))
        inertial = data.matrix @ np.asarray(ident.inertial_parameters(system))
        torques.append(inertial - data.torques)
    viscous = motion[1] * [1.5, 0.8] + np.tanh(motion[1] / 0.01) * [2.0, 1.1]
    np.testing.assert_allclose(torques[0] - viscous, torques[1], atol=0.05)


def test_known_loads_make_masses_absolute(folder, truth):
    """A recording with a payload and one without: the load is no part of the link."""
    text = CASE.replace('file = "log.npz"\n', "") + (
        '[[recording]]\nfile = "log.npz"\n\n[[recording]]\nfile = "loaded.npz"\n\n'
        f'[[recording.load]]\nbody = "shin"\nmass = {PAYLOAD["mass"]}\n'
        f"center = {PAYLOAD['center']}\ninertia = {PAYLOAD['inertia']}\n"
    )
    (folder / "loads.toml").write_text(text)
    case = read_regression_case(folder / "loads.toml")
    assert len(case.files) == 3
    size = np.sqrt(np.mean(case.data.torques**2, axis=0))
    assert np.all(case.data.rms(truth) < 0.015 * size)
    linear = ident.regress(case.data)
    expected = linear.base.combinations @ truth
    assert np.all(np.abs(linear.values - expected) < 0.02 + 0.05 * np.abs(expected))
    # Without saying so, the payload is missing.
    (folder / "silent.toml").write_text(text[: text.index("[[recording.load]]")])
    silent = read_regression_case(folder / "silent.toml")
    assert np.any(silent.data.rms(truth) > 0.2 * size)


def test_pieces_and_rest(folder):
    """A flag keeps parts of the recording, each filtered alone; slow samples are left out."""
    log = dict(np.load(folder / "log.npz"))
    ts = DT * np.arange(1500)
    np.savez(folder / "flagged.npz", **log, on=((ts > 1) & (ts < 2.5)) | (ts > 4))
    text = CASE.replace("log.npz", "flagged.npz").replace(
        'time = "dt"\n', 'time = "dt"\ncut = { flag = "on" }\n'
    )
    (folder / "cut.toml").write_text(text.replace("rest = 0.15", "rest = 0.3\nevery = 2"))
    with pytest.raises(ValueError, match="the array 'on' must hold real numbers; got bool"):
        read_regression_case(folder / "cut.toml")
    np.savez(folder / "flagged.npz", **log, on=(((ts > 1) & (ts < 2.5)) | (ts > 4)).astype(int))
    data = read_regression_case(folder / "cut.toml").data
    assert 100 < len(data.torques) < (1.1 + 1.6) / DT / 2
    assert np.all(np.abs(data.matrix[:, [0, 1], [20, 21]]) > 0.3)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('model = "arm.urdf"', "", "`file` is missing; name the URDF"),
        ("[position]\n", "[rate]\n", r"there is no `zero` here|\[position\] is missing"),
        ("[[20, 0], [10, -10]]", "[[20, 0], [10, 0]]", "or a regular matrix"),
        ("[[20, 0], [10, -10]]", "[1, 2, 3]", "`gear` must be one ratio, 2 of them"),
        ('"motor_torque[0]", ', "", "`columns` must be 2, one for each joint; got 1"),
        ("cutoff = 20.0", "cutoff = -20.0", "`cutoff` must be 0 or more; got -20.0"),
        ("margin = 0.2", "margin = 20", "has no sample outside of the margins"),
        ("margin = 0.2", "every = 0", "`every` must be 1 or more; got 0"),
        ("essential = 2.0", "essential = -1", "must be true, false, or a positive number"),
        ('"viscous"', '"drag"', "takes of .* got 'drag'"),
        ('title = "Two links"', "[joint]", "there is no `joint` here"),
        ('unit = "deg"', 'unit = "N"', "is one of force, where one of angle or length"),
    ],
)
def test_wrong_cases(folder, old, new, message):
    assert old in CASE
    (folder / "wrong.toml").write_text(CASE.replace(old, new, 1))
    assert_refused(message, "regress", folder / "wrong.toml")


def test_the_fitted_model_keeps_its_format_and_needs_bodies(folder):
    assert_refused(
        "writes .urdf", "regress", folder / "case.toml", "--model", folder / "fitted.xml"
    )
    (folder / "linear.toml").write_text(CASE.replace("consistent = 1e-3\n", ""))
    assert_refused(
        "needs `consistent`", "regress", folder / "linear.toml", "--model", folder / "fit.urdf"
    )
