"""The view of a system that controllers and events receive."""

import numpy as np
import pytest

import rigidjax as rj
from rigidjax.control import SystemView

ROD = rj.Body.rod(
    "rod", 1.0, 0.02, mass=1.0, position=(0.5, 0, 0), orientation=(0.5**0.5, 0, 0.5**0.5, 0)
)
HINGE = rj.Revolute("ground", "rod", (0, 0, 0), axis=(0, 1, 0), name="hinge")
TIP = rj.Frame("tip", "rod", (0, 0, 0.5))
MODEL = rj.NullSpace(rj.System(ROD, HINGE, rj.Gravity((0, 0, -9.81)), frames=[TIP]))
ANGLE, RATE = 0.3, -0.7


def view_at(angle, rate):
    state = rj.jointed_state(MODEL.system, {"hinge": angle}, {"hinge": rate})
    return SystemView(MODEL, 0.0, MODEL.encode(state))


def test_joints_frames_and_sensors_at_one_time():
    view = view_at(ANGLE, RATE)
    np.testing.assert_allclose(view.coordinates["hinge"], [ANGLE], atol=1e-14)
    np.testing.assert_allclose(view.rates["hinge"], [RATE], atol=1e-14)
    # The rod is along x at first and turns about y.
    tip = np.array([np.cos(ANGLE), 0.0, -np.sin(ANGLE)])
    np.testing.assert_allclose(view.frames["tip"][0], tip, atol=1e-14)
    np.testing.assert_allclose(view.state.position[0], 0.5 * tip, atol=1e-14)
    np.testing.assert_allclose(view.sensors[rj.Gyroscope("rod")], [0, RATE, 0], atol=1e-14)
    np.testing.assert_allclose(view.sensors[rj.JointRate("hinge")], RATE, atol=1e-14)
    assert list(view.coordinates) == ["hinge"] and len(view.rates) == 1


def test_unknown_names():
    view = view_at(ANGLE, RATE)
    with pytest.raises(KeyError, match="no joint called 'hinges'. Did you mean 'hinge'"):
        view.coordinates["hinges"]
    with pytest.raises(KeyError, match="no frame called 'x'. The frames are"):
        view.frames["x"]
    with pytest.raises(TypeError, match="takes a sensor such as"):
        view.sensors["rod"]
    with pytest.raises(ValueError, match="wheel"):
        view.sensors[rj.Gyroscope("wheel")]
    free = rj.NullSpace(rj.System(rj.Body("ball", 0.2, (1e-4,) * 3)))
    with pytest.raises(KeyError, match=r"The joints are \[\]"):
        SystemView(free, 0.0, free.encode(rj.State())).rates["hinge"]


def test_two_points_of_one_body_have_readings_of_their_own():
    body = rj.Body("body", 1.0, (1.0, 1.0, 1.0))
    model = rj.NullSpace(rj.System(body))
    view = rj.SystemView(model, 0.0, model.encode(rj.State()))
    for point in ((0.0, 0.0, 0.0), (1.0, 2.0, 3.0)):
        assert view.sensors[rj.Position("body", point)].tolist() == list(point)


def test_samples_of_a_run():
    start = view_at(ANGLE, RATE).state
    sol = rj.simulate(MODEL, start, 0.2, ts=[0.1, 0.15, 0.2])
    last, view = sol.states[-1], SystemView(MODEL, sol.ts[-1], sol.ys[-1])
    assert (last.orientation == view.state.orientation).all() and [
        s.position.shape for s in sol.states
    ] == 3 * [(1, 3)]
    point = rj.Accelerometer("rod", (0.1, 0.0, 0.0), bias=(1.0, 0.0, 0.0))
    np.testing.assert_allclose(sol.sensors[point][-1], view.sensors[point], atol=1e-12)
    with pytest.raises(IndexError):
        sol.states[3]
    with pytest.raises(TypeError, match="takes the number of a sample"):
        sol.states["rod"]
