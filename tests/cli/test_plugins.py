"""Classes of users: one file each, used from Python, in case files and on the command line."""

import ast
import pathlib
import re

import diffrax
import numpy as np
import pytest
import xarray
from cli.program import assert_refused, good

import rigidjax as rj
from rigidjax.cli.base import choices, plugins
from rigidjax.cli.base.choices import find_kinds
from rigidjax.cli.case import read_case
from rigidjax.cli.case.case import read_run_case

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "extending.md"
BODY = """
body = [{ name = "ball", mass = 0.5, inertia = [2e-3, 2e-3, 2e-3], position = [0, 0, 0.3] }]
[[force]]
type = "Gravity"
vector = [0.0, 0.0, -9.81]
"""
RUN = "[run]\nt1 = 0.2\nsamples = 5\n"


@pytest.fixture(scope="module")
def page():
    return PAGE.read_text("utf-8")


@pytest.fixture(scope="module")
def files(page, tmp_path_factory):
    """One file for each class on the page."""
    folder = tmp_path_factory.mktemp("plugins")
    first, *blocks = re.findall(r"```python[^\n]*\n(.*?)```", page, re.DOTALL)
    for block in blocks:
        for node in ast.parse(block).body:
            if isinstance(node, ast.ClassDef):
                source = ast.get_source_segment(block, node)
                (folder / f"{node.name}.py").write_text(f"{first}\n\n{source}\n")
    return folder


@pytest.fixture(scope="module")
def case(page, files):
    """The tables of the page in a case file."""
    tables = re.search(r"```toml\n(\[\[joint.*?)```", page, re.DOTALL).group(1)
    path = files / "case.toml"
    path.write_text(BODY + tables + RUN)
    return path


def test_joint_and_force_in_python_and_in_a_case_file(files, case):
    options = [x for name in ("PointInPlane", "Wind") for x in ("--plugin", files / f"{name}.py")]
    good(*options, "run", case, "--out", files / "run.nc")
    joint, wind = (plugins.import_plugin(path) for path in options[1::2])
    ball = rj.Body("ball", 0.5, (0.002, 0.002, 0.002), position=(0.0, 0.0, 0.3))
    system = rj.System(
        ball,
        [joint.PointInPlane("ground", "ball", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0))],
        [rj.Gravity((0.0, 0.0, -9.81)), wind.Wind("ball", (0.0, 0.0, 0.4), 0.2, (1.0, 0.0, 0.0))],
    )
    run = rj.simulate(
        rj.NullSpace(system), system.reference_state(), 0.2, ts=np.linspace(0, 0.2, 5),
        solver=diffrax.Dopri8(), rtol=1e-9, atol=1e-9,
    )  # fmt: skip
    with xarray.open_dataset(files / "run.nc", engine="h5netcdf") as data:
        position = data["position"].to_numpy().reshape(5, 3)
    np.testing.assert_allclose(position, run.states.position[:, 0], rtol=0, atol=1e-13)
    assert abs(position[-1, 0]) > 1e-3  # blown away


def test_sensor_and_input(files, tmp_path):
    plugins.import_plugin(files / "Height.py")
    (tmp_path / "thrust.py").write_text(THRUST)
    plugins.import_plugin(tmp_path / "thrust.py")
    (tmp_path / "data.csv").write_text("time_s,z,f\n" + "".join(f"{t},0.3,2\n" for t in range(5)))
    text = SENSOR + BODY + FORCE
    (tmp_path / "case.toml").write_text(text)
    case = read_case(tmp_path / "case.toml")
    assert case.measurements[0].sensors[0].name == "height of ball"
    np.testing.assert_array_equal(case.model.system.forces[1].force(1.5), 2.0)


THRUST = """
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp

from rigidjax.forces import AbstractForce, Loads


class Thrust(AbstractForce):
    body: str = eqx.field(static=True)
    force: Callable | float

    def body_names(self):
        return (self.body,)

    def loads(self, t, bodies, kinematics):
        return Loads(kinematics.rotations[:, :, 2] * self.force(t))
"""
SENSOR = """
data = { file = "data.csv" }
input = [{ name = "engine", columns = ["f"] }]
sensor = [{ type = "Height", body = "ball", floor = 0.0, columns = ["z"] }]
parameter = [{ name = "floor", path = "sensors.0.floor" }]
"""
FORCE = '[[force]]\ntype = "Thrust"\nbody = "ball"\nforce = "engine"\n'


def test_solver_is_an_option():
    class Ralston4(diffrax.Heun):
        pass

    assert isinstance(choices.make_solver("ralston4"), Ralston4)


def test_names_may_be_shortened():
    kinds = choices.rotation_kinds()
    assert choices.pick("rotation", "Rodrigues", kinds) == "rodrigues-parameters"
    kinds = choices.solver_kinds()
    assert choices.pick("solver", "munthe_kaas", kinds) == "munthe-kaas"
    assert choices.pick("solver", "tsit", kinds) == "tsit5"
    with pytest.raises(ValueError, match="no solver 'radau'. Did you mean"):
        choices.make_solver("radau")  # of several orders


def test_classes_with_one_name():
    def define():
        class Spring(rj.forces.AbstractForce):
            pass

        return Spring

    earlier, later = define(), define()  # as in a notebook, whose cell runs twice
    kinds = find_kinds(rj.forces.AbstractForce, rj.forces)
    assert kinds["Spring"] is rj.Spring and earlier is not later
    assert kinds[f"{__name__}.Spring"] is later


def test_broken_files(tmp_path):
    path = tmp_path / "broken.py"
    path.write_text("\n1 / 0\n")
    message = r"broken.py cannot be imported: ZeroDivisionError: .*broken.py, line 2"
    assert_refused(message, "--plugin", path, "list")
    assert_refused("There is no file .*absent.py", "--plugin", tmp_path / "absent.py", "list")
    (tmp_path / "notes.txt").write_text("")
    assert_refused("not a Python file", "--plugin", tmp_path / "notes.txt", "list")


def test_installed_packages(tmp_path, monkeypatch, case):
    (tmp_path / "thrust_of_package.py").write_text(THRUST.replace("Thrust", "Booster"))
    about = tmp_path / "boosters-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: boosters\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[rigidjax]\nbooster = thrust_of_package\n")
    monkeypatch.syspath_prepend(tmp_path)
    plugins.import_installed_plugins.cache_clear()
    (tmp_path / "case.toml").write_text(
        BODY + '[[force]]\ntype = "Booster"\nbody = "ball"\nforce = 1.0\n' + RUN
    )
    forces = read_run_case(tmp_path / "case.toml").model.system.forces
    assert type(forces[1]).__name__ == "Booster"
    (about / "entry_points.txt").write_text("[rigidjax]\nbooster = no_such_module\n")
    plugins.import_installed_plugins.cache_clear()
    assert_refused("plugin 'no_such_module' of boosters cannot be imported", "list")
    plugins.import_installed_plugins.cache_clear()
