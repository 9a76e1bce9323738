"""The example cases of the repository, and changed copies of one of them."""

import pathlib
import shutil

import rigidjax as rj
from rigidjax.identification import Experiment

ROOT = pathlib.Path(__file__).resolve().parents[2]
PENDULUM = ROOT / "examples" / "pendulum"
RACKET = ROOT / "examples" / "racket" / "racket.toml"
TOSSES = ROOT / "datasets" / "racket_flips" / "flips.csv"
# A model file, and the tables of an arm on a hinge.
URDF = ROOT / "tests" / "models" / "data" / "arm.urdf"
ARM = """
body = [{ name = "arm", mass = 1.0, inertia = [0.5, 0.4, 0.3] }]
[[joint]]
name = "hinge"
type = "Revolute"
parent = "ground"
child = "arm"
point = [0.0, 0.0, 0.0]
axis = [0.0, 0.0, 1.0]
"""
TEXT = (PENDULUM / "pendulum.toml").read_text()


def case_of(tmp_path, text):
    """The pendulum's case with another text, beside its data."""
    for name in ("angle.csv", "rates.csv"):
        shutil.copy(PENDULUM / name, tmp_path / name)
    path = tmp_path / "case.toml"
    path.write_text(text)
    return path


def replace_text(old, new):
    assert old in TEXT
    return TEXT.replace(old, new, 1)


def experiment_of(case):
    """The experiment that paths of parameters are read from."""
    return Experiment(case.model, case.state0 or rj.State(), case.measurements[0].sensors)
