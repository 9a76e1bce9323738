"""Initial state of a case: from joint coordinates, from first samples, or rejected."""

import numpy as np
import pytest
from cli.case_files import TEXT, case_of
from cli.program import assert_refused

import rigidjax as rj
from rigidjax.cli.case import read_case

START = '\n[[parameter]]\nname = "start"\npath = "start_state"\n'
BEFORE_METHOD = TEXT[: TEXT.index("[method]")]

# A free body in a uniform field: gyroscope and attitude do not depend on its position.
FREE = """
body = [{ name = "hull", mass = 1.0, inertia = [0.01, 0.02, 0.03] }]
[[force]]
type = "Gravity"
vector = [0.0, 0.0, -9.81]
[data]
file = "free.csv"
[[sensor]]
type = "Gyroscope"
body = "hull"
columns = ["a", "b", "c"]
noise = 0.01
[[sensor]]
type = "Attitude"
body = "hull"
columns = ["q0", "q1", "q2", "q3"]
orientation = "wxyz"
noise = 0.01
[[parameter]]
name = "start"
path = "start_state"
"""


def case_with_offset(tmp_path, degrees, text=TEXT):
    """The pendulum's case with an encoder that reads so much more."""
    path = case_of(tmp_path, text)
    head, *lines = (tmp_path / "angle.csv").read_text().splitlines()
    cells = [line.split(",") for line in lines]
    rows = [f"{t},{float(angle) + float(degrees)!r}" for t, angle in cells]
    (tmp_path / "angle.csv").write_text("\n".join([head, *rows]) + "\n")
    return path


def test_initial_state_from_joint_coordinates(tmp_path):
    given = "[state]\njoints = { hinge = 0.44 }\njoint_rates = { hinge = -1.0 }\n"
    case = read_case(
        case_with_offset(tmp_path, np.degrees(0.44), TEXT.replace("[data]", given + "[data]"))
    )
    expected = rj.joint_states(case.model.system, [0.44], [-1.0])
    np.testing.assert_allclose(case.state0.position, expected.position, atol=1e-14)
    np.testing.assert_allclose(case.state0.angular_velocity, expected.angular_velocity, atol=1e-14)


def test_initial_state_from_first_samples(tmp_path):
    """Fitted positions and rates come from joint sensors."""
    case = read_case(case_with_offset(tmp_path, 25.0, BEFORE_METHOD + START))
    angle = float(case.measurements[0].values[0][0])
    assert angle == pytest.approx(np.radians(25.0), abs=0.02)
    (state,) = case.state0
    expected = rj.joint_states(case.model.system, [angle])
    np.testing.assert_allclose(state.orientation, expected.orientation, atol=3e-3)
    # Released at rest.
    assert 0 < np.abs(state.angular_velocity[0, 2]) < 0.2


@pytest.mark.parametrize(
    ("state", "end", "degrees"),
    [
        ("", "", 25.0),
        ("", START + "positions = false\n", 25.0),
        ("[state]\njoints = { hinge = 0.44 }\n", "", -25.0),
    ],
)
def test_initial_state_that_contradicts_sensors_raises(tmp_path, state, end, degrees):
    text = BEFORE_METHOD.replace("[data]", state + "[data]") + end
    assert_refused(
        r"the start is not fitted; the coordinate of hinge first reads \S+ where the start has "
        r"\S+. Set the start, as in `\[state\] joints = { hinge = -?0.4\d+ }`, or fit it",
        "identify",
        case_with_offset(tmp_path, degrees, text),
    )


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("joints = { hing = 0.4 }", r"\[state\]: There is no joint called 'hing'"),
        ("joints = { hinge = [0.4, 1] }", "needs 1 finite coordinates, lengths before angles"),
        ("joints = { hinge = 0.4 }\nposition = [[0, 0, 0]]", "there is no `position` here"),
        ("joints = 0.4", "`joints` must be a table; got 0.4"),
    ],
)
def test_invalid_joint_coordinates_raise(tmp_path, keys, message):
    path = case_of(tmp_path, TEXT.replace("[data]", f"[state]\n{keys}\n[data]"))
    assert_refused(message, "identify", path)


def test_unobserved_initial_state_raises(tmp_path):
    """Accepted if a spring or a sensor depends on the position, or a prior is given."""
    (tmp_path / "free.csv").write_text(
        "time_s,a,b,c,q0,q1,q2,q3,x,y,z\n" + "".join(f"{t},1,0,0,1,0,0,0,0,0,0\n" for t in range(9))
    )
    path = tmp_path / "case.toml"
    path.write_text(FREE)
    message = "start of 'hull' cannot be fitted completely.*Add a sensor of type Position"
    assert_refused(message, "identify", path)
    path.write_text(FREE.replace("[data]", "[state]\njoints = { a = 1.0 }\n[data]"))
    assert_refused("`joints` is set, but this model has no joints", "identify", path)
    position = (
        '[[sensor]]\ntype = "Position"\nbody = "hull"\ncolumns = ["x", "y", "z"]\nnoise = 0.1\n'
    )
    spring = '[[force]]\ntype = "Drag"\nbody = "hull"\nlinear = 0.1\n'
    prior = 'prior = { type = "gaussian", mean = 0.0, std = 1.0 }\n'
    for text in (
        FREE.replace("[[parameter]]", position + "[[parameter]]"),
        FREE.replace("[data]", spring + "[data]"),
        FREE + prior,
    ):
        path.write_text(text)
        assert len(read_case(path).parameters) == 1


def test_initial_state_from_poses_and_unwrapped_angles(tmp_path):
    given = "[state]\nangles = { hinge = 12.6 }\n"
    case = read_case(case_with_offset(tmp_path, 0.0, TEXT.replace("[data]", given + "[data]")))
    y = rj.Relative(case.model.system).encode(case.state0)
    np.testing.assert_allclose(y[0], 4 * np.pi, atol=1e-9)
