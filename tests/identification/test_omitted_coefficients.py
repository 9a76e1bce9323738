"""Coefficients that were left out because they are zero, fitted from there."""

import equinox as eqx
import numpy as np
import pytest
from identification.pendulum import ENCODER, angles, pendulum

import rigidjax as rj
from rigidjax.formulations.leaves import find_leaf
from rigidjax.identification import Measurements, Parameter, identify
from rigidjax.identification.experiment.parameters import Experiment, materialise_parameters

TS = np.linspace(0.0, 2.0, 41)


class Law(eqx.Module):
    """A motor that brakes, with a number of Python in it."""

    coefficient: float = 0.0

    def __call__(self, t, angle, rate):
        return -self.coefficient * rate


FORCES = [
    rj.Motor("hinge", Law()),
    rj.Drag("rod", linear=0.0),
    rj.PointForce("rod", force=rj.Signal([0.0, 2.0], np.zeros((2, 3)))),
]
MODEL = pendulum(forces=FORCES)
STATE = MODEL.system.reference_state()
PICKED = {
    "damping": lambda e: e.model.system.joints[0].damping,
    "armature": lambda e: e.model.system.joints[0].armature,
    "law": lambda e: e.model.system.forces[1].torque.coefficient,
    "drag": lambda e: e.model.system.forces[2].angular_linear,
    "delay of a signal": lambda e: e.model.system.forces[3].force.delay,
    "delay of a gyroscope": lambda e: e.sensors[0].delay,
}


def test_omitted_coefficient_is_fitted_from_zero():
    truth = {"damping": 0.08, "armature": 0.02}
    data = Measurements(TS, {ENCODER: angles(TS, **truth)}, {ENCODER: 0.01})
    fit = identify(MODEL, data, [Parameter(n, PICKED[n]) for n in truth], state0=STATE)
    np.testing.assert_allclose(fit.values, list(truth.values()), rtol=1e-5)
    np.testing.assert_array_equal(fit.starts, 0.0)


@pytest.mark.parametrize("name", PICKED)
def test_selected_scalars_become_arrays(name):
    experiment = Experiment(MODEL, STATE, (rj.Gyroscope("rod"),))
    leaf = PICKED[name](materialise_parameters(experiment, [Parameter(name, PICKED[name])]))
    assert eqx.is_inexact_array(leaf) and leaf.dtype == float and not leaf.any()
    assert leaf.shape == ((1,) if name in ("damping", "armature") else ())


def test_case_paths_select_omitted_coefficients():
    experiment = Experiment(MODEL, STATE, (ENCODER,))
    where = find_leaf("model.system.joints.hinge.damping", experiment)
    assert where(materialise_parameters(experiment, [Parameter("d", where)])).shape == (1,)
    with pytest.raises(ValueError, match="there are: .*damping.*armature"):
        find_leaf("model.system.joints.hinge.dumping", experiment)


def test_invalid_selections_raise():
    def fit(model, where):
        data = Measurements(TS, {ENCODER: angles(TS)}, {ENCODER: 0.01})
        return identify(model, data, [Parameter("p", where)], state0=STATE)

    with pytest.raises(ValueError, match=r"`motion` of the Revolute 'hinge', which was left out"):
        fit(MODEL, lambda e: e.model.system.joints[0].motion)
    with pytest.raises(ValueError, match="`Absolute` has the masses of the bodies alone"):
        fit(rj.Absolute(MODEL.system), PICKED["armature"])
    with pytest.raises(ValueError, match="must pick one array of real numbers; got float"):
        fit(MODEL, lambda e: 2 * e.model.system.forces[1].torque.coefficient)
