"""Messages of prediction-error fits for arguments that do not fit."""

import diffrax
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.identification import Huber, identify_batch

HINGE = rj.JointCoordinate("hinge")
NOISE = {"hinge": 0.1}


def fit(process_noise=NOISE, sensor=HINGE, torque=0.0, entry=rj.identify, **options):
    body = rj.Body("arm", 1.0, (0.1, 0.1, 0.1), (0.5, 0.0, 0.0))
    hinge = rj.Revolute("ground", "arm", (0, 0, 0), (0, 0, 1), name="hinge")
    model = rj.NullSpace(rj.System(body, [hinge], [rj.Motor("hinge", torque)]))
    ts = np.linspace(0, 1, 11)
    samples = np.zeros((11, *sensor.value_shape))
    data = rj.Measurements(ts, {sensor: samples}, {sensor: 0.1})
    mass = rj.Parameter("mass", lambda e: e.model.system.bodies[0].mass)
    data = [data] if entry is identify_batch else data
    return entry(
        model, data, mass, state0=model.system.reference_state(), process_noise=process_noise,
        **{"method": "prediction-error"} | options,
    )  # fmt: skip


@pytest.mark.parametrize(
    "options, message",
    [
        ({"process_noise": None}, r"needs `process_noise=`, standard deviations by the names"),
        ({"method": "gauss-newton"}, r"process_noise=...\)` needs `method=\"prediction-error\"`"),
        ({"starts": 2}, r"needs neither `starts` nor `segments`; got 2 and 1"),
        ({"noise": "ar1"}, r"takes white noise of the sensors, `noise=\"white\"`; a slow"),
        ({"loss": Huber()}, r"takes `loss=None`: the filter corrects its state by every sample"),
        ({"solver": diffrax.Kvaerno5()}, r"explicit Runge-Kutta methods .* got `solver=Kvaerno5"),
        ({"sensor": rj.Delayed(HINGE, 0.1)}, r"has no sensors with a delay; got"),
        ({"sensor": rj.Accelerometer("arm")}, r"reads accelerations or forces, of which white"),
        ({"process_noise": {"hnge": 0.1}}, r"names 'hnge', which is no joint.*'hinge'\?"),
        ({"process_noise": {"hinge": -1.0}}, r"of 'hinge' must be a standard deviation.* got -1"),
        ({"process_noise": {"hinge": "much"}}, r"must be a standard deviation.* got 'much'"),
        ({"process_noise": {"hinge": 0.0}}, r"is zero everywhere"),
        ({"process_noise": {"arm": (0.1, 0.1, 0.1)}}, r"of 'arm' must be one value or 2; got"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        fit(**options)


def test_options_of_other_types_and_of_batches():
    with pytest.raises(TypeError, match=r"takes a dict of standard deviations by the names"):
        fit(process_noise=0.1)
    with pytest.raises(ValueError, match=r"needs `process_noise=`"):
        fit(process_noise=None, entry=identify_batch)


def test_noise_of_an_input_that_prescribes_a_motion():
    body = rj.Body("arm", 1.0, (0.1, 0.1, 0.1), (0.5, 0.0, 0.0))
    ts = np.linspace(0, 1, 11)
    motion = rj.Signal(ts, np.sin(ts), "cubic", name="angle")
    hinge = rj.Revolute("ground", "arm", (0, 0, 0), (0, 0, 1), motion, "hinge")
    tip = rj.Revolute("arm", "tip", (1, 0, 0), (0, 0, 1), name="elbow")
    bodies = [body, rj.Body("tip", 1.0, (0.1, 0.1, 0.1), (1.5, 0.0, 0.0))]
    model = rj.NullSpace(rj.System(bodies, [hinge, tip]))
    sensor = rj.JointCoordinate("elbow")
    data = rj.Measurements(ts, {sensor: np.zeros(11)}, {sensor: 0.1})
    mass = rj.Parameter("mass", lambda e: e.model.system.bodies[0].mass)
    with pytest.raises(ValueError, match=r"'angle', which prescribes the motion .* 'hinge'"):
        rj.identify(model, data, mass, method="prediction-error", process_noise={"angle": 0.1})
