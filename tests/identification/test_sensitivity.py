"""Derivatives of trajectories: both modes, every kind of solver, against differences."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.identification import InertiaTensor, Orientation, Parameter, PrincipalInertia
from rigidjax.results import RESULTS

INERTIA = np.array([0.5, 0.4, 0.3])
STATE = rj.State(
    orientation=np.array([0.9, 0.3, -0.2, np.sqrt(1 - 0.94)]), angular_velocity=(1.0, -2.0, 6.0)
)
TS = np.array([0.1, 0.2, 0.3])


def inertia_of(experiment):
    return experiment.model.system.inertia


def first_moment_of(experiment):
    return experiment.model.system.potential.first_moment


def rates_of(experiment):
    return experiment.state0.angular_velocity


def orientation_of(experiment):
    return experiment.state0.orientation


def bias_of(experiment):
    return experiment.sensors[1].bias


def top(formulation, inertia=INERTIA, **options):
    potential = rj.GravityPotential((0.1, -0.05, 0.4), (0.0, 0.0, -9.81))
    return formulation(rj.FixedPointBody(inertia, potential), **options)


def parameters(inertia=None, first_moment=None):
    return (
        Parameter("I", inertia_of, start=inertia, unit="kg m^2"),
        Parameter("mc", first_moment_of, start=first_moment, unit="kg m"),
    )


TIGHT = {"rtol": 1e-13, "atol": 1e-13}
CASES = {
    "explicit": (top(rj.NullSpace), {"solver": diffrax.Dopri8(), **TIGHT}),
    "implicit, index 2": (
        top(rj.Absolute, index=2), {"solver": rj.solvers.Radau5(), "rtol": 1e-11, "atol": 1e-11},
    ),
    "structure": (top(rj.NullSpace), {"solver": rj.solvers.EnergyMomentum(), "dt": 0.02}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_modes_agree_and_are_those_of_differences(case):
    model, options = CASES[case]
    sensors = (rj.Gyroscope(), rj.Accelerometer(point=(0.2, 0.1, -0.1)))

    def run(mode="forward", **starts):
        return rj.sensitivity(
            model, STATE, TS[-1], parameters(**starts), ts=TS, sensors=sensors, mode=mode, **options
        )

    values = {"inertia": INERTIA, "first_moment": np.array([0.1, -0.05, 0.4])}
    forward, reverse = run(**values), run("reverse", **values)
    assert forward.labels == ("I[0]", "I[1]", "I[2]", "mc[0]", "mc[1]", "mc[2]")
    assert forward.units[0] == "kg m^2" and forward.mode == "forward"
    for sensor in sensors:
        J = forward.jacobian[sensor.name]
        assert J.shape == (3, 3, 6) and np.abs(J).max() > 0.1
        scale = np.abs(J).max()
        np.testing.assert_allclose(J, reverse.jacobian[sensor.name], atol=1e-10 * scale)
    direction = {"inertia": [0.2, -0.1, 0.15], "first_moment": [0.1, 0.2, -0.3]}

    def moved(step):
        at = {key: value + step * np.array(direction[key]) for key, value in values.items()}
        return run(**at).readings

    h = 2e-3
    near, far = (
        jax.tree.map(lambda a, b: (a - b) / (2 * k * h), moved(k * h), moved(-k * h))
        for k in (1, 2)
    )
    along = np.concatenate(list(direction.values()))
    for name, J in forward.jacobian.items():
        difference = (4 * near[name] - far[name]) / 3
        error = np.abs(J @ along - difference).max() / np.abs(difference).max()
        assert error < 1e-8, (name, error)
