"""Coefficients that were left out because they are zero, fitted from there."""

import equinox as eqx
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import rigidjax as rj
from rigidjax.formulations.leaf_names import find_leaf
from rigidjax.identification import Measurements, Parameter, identify
from rigidjax.identification.experiment.parameters import Experiment, materialise_parameters

MASS, LENGTH, INERTIA, GRAVITY = 1.3, 0.4, 0.05, 9.81
TS = np.linspace(0.0, 2.0, 41)
ENCODER = rj.JointCoordinate("h")


class Law(eqx.Module):
    """A motor that brakes, with a number of Python in it."""

    coefficient: float = 0.0

    def __call__(self, t, angle, rate):
        return -self.coefficient * rate


def pendulum():
    rod = rj.Body("rod", MASS, (1e-3, INERTIA, INERTIA), (LENGTH, 0, 0))
    hinge = rj.Revolute("ground", "rod", (0, 0, 0), axis=(0, 1, 0), name="h")
    forces = [
        rj.Gravity((0, 0, -GRAVITY)),
        rj.Motor("h", Law()),
        rj.Drag("rod", linear=0.0),
        rj.PointForce("rod", force=rj.Signal([0.0, 2.0], np.zeros((2, 3)))),
    ]
    return rj.NullSpace(rj.System(rod, hinge, forces))


MODEL = pendulum()
STATE = MODEL.system.reference_state()


def angles(damping, armature):
    """By SciPy."""

    def slope(t, y):
        moment = MASS * GRAVITY * LENGTH * np.cos(y[0]) - damping * y[1]
        return [y[1], moment / (INERTIA + MASS * LENGTH**2 + armature)]

    return solve_ivp(slope, (0, 2), [0.0, 0.0], t_eval=TS, rtol=1e-11, atol=1e-11).y[0]


PICKED = {
    "damping": lambda e: e.model.system.joints[0].damping,
    "armature": lambda e: e.model.system.joints[0].armature,
    "law": lambda e: e.model.system.forces[1].torque.coefficient,
    "drag": lambda e: e.model.system.forces[2].angular_linear,
    "delay of a signal": lambda e: e.model.system.forces[3].force.delay,
    "delay of a gyroscope": lambda e: e.sensors[0].delay,
}


@pytest.mark.parametrize(
    ("names", "truth"),
    [(["damping", "armature"], (0.08, 0.02)), (["law"], (0.08, 0.0)), (["drag"], (0.08, 0.0))],
    ids=["joint", "law", "drag"],
)
@pytest.mark.exhaustive
def test_omitted_coefficient_is_fitted_from_zero(names, truth):
    data = Measurements(TS, {ENCODER: angles(*truth)}, {ENCODER: 0.01})
    fit = identify(MODEL, data, [Parameter(n, PICKED[n]) for n in names], state0=STATE)
    np.testing.assert_allclose(fit.values, truth[: len(names)], rtol=1e-5)
    np.testing.assert_array_equal(fit.starts, 0.0)


@pytest.mark.parametrize("name", PICKED)
def test_selected_scalars_become_arrays(name):
    experiment = Experiment(MODEL, STATE, (rj.Gyroscope("rod"),))
    leaf = PICKED[name](materialise_parameters(experiment, [Parameter(name, PICKED[name])]))
    assert eqx.is_inexact_array(leaf) and leaf.dtype == float and not leaf.any()
    assert leaf.shape == ((1,) if name in ("damping", "armature") else ())


def test_case_paths_select_omitted_coefficients():
    experiment = Experiment(MODEL, STATE, (ENCODER,))
    where = find_leaf("model.system.joints.h.damping", experiment)
    assert where(materialise_parameters(experiment, [Parameter("d", where)])).shape == (1,)
    with pytest.raises(ValueError, match="there are: .*damping.*armature"):
        find_leaf("model.system.joints.h.dumping", experiment)


def test_invalid_selections_raise():
    def fit(model, where):
        data = Measurements(TS, {ENCODER: angles(0.0, 0.0)}, {ENCODER: 0.01})
        return identify(model, data, [Parameter("p", where)], state0=STATE)

    with pytest.raises(ValueError, match=r"`motion` of the Revolute 'h', which was left out"):
        fit(MODEL, lambda e: e.model.system.joints[0].motion)
    with pytest.raises(ValueError, match="`Absolute` has the masses of the bodies alone"):
        fit(rj.Absolute(MODEL.system), PICKED["armature"])
    with pytest.raises(ValueError, match="must pick one array of real numbers; got float"):
        fit(MODEL, lambda e: 2 * e.model.system.forces[1].torque.coefficient)
