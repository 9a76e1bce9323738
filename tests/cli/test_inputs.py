"""Inputs of a case: `[[input]]`."""

from typing import Any

import numpy as np
import pytest
from cli.case_files import ARM, case_of

import rigidjax as rj
from rigidjax.cli.case import read_case
from rigidjax.identification.data.measurements import stack_runs
from rigidjax.identification.search.problem import make_problem

TEXT = """
[fixed_point_body]
inertia = [0.5, 0.4, 0.3]
moment = "wheels"
[data]
file = "run.csv"
time = "t"
run = "toss"
[[input]]
name = "wheels"
columns = ["a", "b", "c"]
unit = "mN m"
interpolation = "hold"
delay = 0.0
extrapolation = "constant"
[[sensor]]
type = "Gyroscope"
columns = ["x", "y", "z"]
noise = 0.01
[[parameter]]
name = "delay"
path = "model.system.moment.delay"
unit = "s"
"""
HEADER = "toss,t,a,b,c,x,y,z\n"
ROWS = "".join(
    f"{n},{t},{k},{2 * k},0,0,0,{n}\n" for n, c in ((1, 3), (2, 4)) for k, t in enumerate(range(c))
)
HINGE = (
    ARM
    + """[[force]]
type = "Motor"
joint = "hinge"
torque = "series"
[[input]]
name = "series"
type = "fourier"
frequency = 2.0
sine = [0.3, 0.1]
"""
)
REST = TEXT[TEXT.index("[data]") : TEXT.index("[[input]]")] + TEXT[TEXT.index("[[sensor]]") :]


def of(folder, text, rows=ROWS):
    (folder / "run.csv").write_text(HEADER + rows)
    return case_of(folder, text)


def test_inputs_are_separate_per_run(tmp_path):
    case = read_case(of(tmp_path, TEXT))
    system: Any = case.model.system
    signal = system.moment
    assert (signal.interpolation, signal.name, float(signal.delay)) == ("hold", "wheels", 0.0)
    assert [len(run.inputs["wheels"][0]) for run in case.measurements] == [3, 4]
    np.testing.assert_allclose(case.measurements[1].inputs["wheels"][1][3], [3e-3, 6e-3, 0.0])
    runs = stack_runs(case.measurements)
    how: Any = None
    problem, *_ = make_problem(case.model, runs, [rj.State()] * 2, case.parameters, how)
    np.testing.assert_array_equal(
        problem.runs.inputs["wheels"].ts, [[0, 1, 2, np.inf], [0, 1, 2, 3]]
    )


def test_a_fourier_series_drives_a_motor(tmp_path):
    text = HINGE + REST.replace("moment.delay", "forces.Motor.torque.sine").replace(
        'type = "Gyroscope"', 'type = "Gyroscope"\nbody = "arm"'
    )
    case = read_case(of(tmp_path, text))
    system: Any = case.model.system
    assert type(system.forces[0].torque) is rj.FourierSeries
    motion = text.replace(
        "[0.0, 0.0, 1.0]\n[[force]]", '[0.0, 0.0, 1.0]\nmotion = "series"\n[[force]]'
    )
    motion = motion.replace('[[force]]\ntype = "Motor"\njoint = "hinge"\ntorque = "series"\n', "")
    motion = motion.replace("forces.Motor.torque", "joints.hinge.motion")
    system = read_case(of(tmp_path, motion)).model.system
    assert type(system.joints[0].motion) is rj.FourierSeries


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"wheels"\n[data', '"wheel"\n[data',
         r"There is no `moment` 'wheel'. Did you mean 'wheels'"),
        ('["a", "b", "c"]', '["a", "b"]',
         r"\[\[input\]\] 1 .'wheels'.: `columns` must be one, or three"),
        ('"mN m"', '"mN n"', r"\[\[input\]\] 1 .'wheels'.: The unit 'mN n' is not known"),
        ('"hold"', '"step"', r"There is no `interpolation` 'step'"),
        ('unit = "mN m"', "gian = 2.0", r"there is no `gian` here. Did you mean `gain`"),
        ("[[sensor]]", '[[input]]\nname = "wheels"\n[[sensor]]', "there are two inputs called 'wh"),
        ('interpolation = "hold"', 'file = "none.csv"', r"There is no file .*none\.csv"),
    ],
)  # fmt: skip
def test_invalid_inputs_are_named(tmp_path, old, new, message):
    assert old in TEXT
    with pytest.raises((ValueError, OSError), match=message):
        read_case(of(tmp_path, TEXT.replace(old, new)))


def test_runs_without_input_raise(tmp_path):
    (tmp_path / "torque.csv").write_text("toss,t,a,b,c\n1,0,0,0,0\n1,3,0,0,0\n")
    text = TEXT.replace('unit = "mN m"', 'file = "torque.csv"')
    with pytest.raises(
        ValueError, match=r"\[\[input\]\] 'wheels' has no run '2', which the sensors"
    ):
        read_case(of(tmp_path, text))
