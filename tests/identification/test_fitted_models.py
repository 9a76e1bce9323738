"""Fits of tops, parts of models, several bodies and charts that move."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from identification import cases

import rigidjax as rj
from rigidjax.identification import (
    Attitude,
    Bounded,
    Gyroscope,
    InertiaTensor,
    Measurements,
    Orientation,
    Parameter,
    PrincipalInertia,
    Unconstrained,
    identify,
)
from rigidjax.rotations import so3


@pytest.mark.exhaustive
def test_fit_of_a_top_from_attitude_and_rates():
    """Full tensor and start attitude of a heavy top, two sensors with their own noise and gaps."""
    tensor = np.array([[0.030, 0.002, -0.001], [0.002, 0.025, 0.0015], [-0.001, 0.0015, 0.012]])
    potential = rj.GravityPotential([0.02, -0.01, 0.10], [0.0, 0.0, -9.81])
    top = rj.NullSpace(rj.FixedPointBody(tensor, potential))
    p0 = np.array([0.9, 0.3, -0.2, 0.1]) / np.sqrt(0.95)
    state = rj.State(orientation=p0, angular_velocity=[1.0, -2.0, 12.0])
    ts = np.linspace(0.0, 1.2, 61)
    exact = rj.simulate(top, state, ts[-1], ts=ts, rtol=1e-10, atol=1e-10).states
    rng = np.random.default_rng(5)
    turn = jax.vmap(so3.exp_quaternion)(jnp.asarray(0.01 * rng.normal(size=(61, 3))))
    attitude = jax.vmap(so3.multiply)(exact.orientation[:, 0], turn)
    rates = np.asarray(exact.angular_velocity[:, 0]) + 0.05 * rng.normal(size=(61, 3))
    rates[10:14] = np.nan
    run = Measurements(
        ts,
        {Gyroscope(): rates, Attitude(): attitude},
        {Gyroscope(): 0.05, Attitude(): 0.01},
        mask={Gyroscope(): np.isfinite(rates)},
    )
    start = rj.NullSpace(rj.FixedPointBody(np.diag([0.02, 0.02, 0.015]), potential))
    fit = identify(
        start,
        run,
        [
            Parameter("I", cases.inertia_of, InertiaTensor(), unit="kg m^2"),
            Parameter("p", cases.orientation_of, Orientation(), unit="rad"),
            Parameter("omega", cases.rates_of, unit="rad/s"),
        ],
    )
    assert fit.labels[:3] == ("I.I11", "I.I22", "I.I33") and fit.labels[6] == "p[0]"
    assert fit.identifiability.identifiable
    assert abs(fit.chi_square - 1) < 0.3
    assert np.all(np.isnan(fit.residuals[0]["gyroscope"][10:14]))
    assert fit.num_residuals == 61 * 6 - 12
    components = np.array([tensor[i] for i in ((0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1))])
    error = np.concatenate(
        [
            fit.values[:6] - components,
            so3.log_quaternion(
                so3.multiply(so3.conjugate(jnp.asarray(p0)), fit.states[0].orientation[0])
            ),
            fit.values[9:] - [1.0, -2.0, 12.0],
        ]
    )
    assert error @ np.linalg.solve(fit.covariance, error) < 32.9


@pytest.mark.exhaustive
def test_fit_of_run_parameters_bounds_and_components():
    """A moment for each run within bounds; two of three start rates; the rest is held."""
    torques = np.array([0.01, -0.02])
    ts = np.linspace(0.0, 1.0, 21)
    omega0 = np.array([1.0, 2.0, 3.0])

    def spinning_body(torque):
        moment = rj.ConstantMoment([torque, 0.0, 0.0])
        return rj.NullSpace(rj.FixedPointBody(np.array(cases.INERTIA), moment=moment))

    runs = [
        Measurements(ts, {Gyroscope(): cases.simulated_rates(spinning_body(x), omega0, ts)})
        for x in torques
    ]
    torque = Parameter(
        "torque",
        lambda e: e.model.system.moment.value,
        Bounded(-0.05, 0.05, which=(0,)),
        per_run=True,
        unit="N m",
    )
    rates = Parameter("omega", cases.rates_of, Unconstrained(which=(0, 2)), start=[[0.8, 2.0, 3.2]])
    fit = identify(spinning_body(0.0), runs, [torque, rates], horizons=(0.5, 1.0))
    assert fit.labels == ("omega[0]", "omega[2]", "torque[0][1]", "torque[0][2]")
    np.testing.assert_allclose(fit.values, [1.0, 3.0, *torques], rtol=1e-6)
    np.testing.assert_allclose([m.system.moment.value[0] for m in fit.models], torques, rtol=1e-6)


@pytest.mark.exhaustive
def test_fit_of_one_body_in_absolute_coordinates():
    """Any formulation of any system."""
    ts = np.linspace(0.0, 1.0, 15)

    def pair(second, third):
        first = rj.Body("first", 1.0, [2.0, second, third], angular_velocity=(1.0, 5.0, -2.0))
        return rj.Absolute(rj.System([first, rj.Body("second", 2.0, [1.0, 1.0, 1.0])]))

    truth = pair(3.0, 4.0)
    start = truth.system.reference_state()
    states = rj.simulate(truth, start, 1.0, ts=ts, rtol=1e-10, atol=1e-10).states
    gyroscope, attitude = Gyroscope("first"), Attitude("first")
    run = Measurements(
        ts,
        {gyroscope: states.angular_velocity[:, 0], attitude: states.orientation[:, 0]},
        {gyroscope: 0.01, attitude: 0.01},
    )
    inertia = Parameter(
        "inertia", lambda e: e.model.system.bodies[0].inertia, PrincipalInertia(fixed=("I1",))
    )
    fit = identify(pair(2.5, 3.8), run, inertia, horizons=(0.2, 1.0))
    np.testing.assert_allclose(fit.values, [3.0, 4.0], rtol=1e-6)
    assert fit.labels == ("inertia.I2", "inertia.I3")
    np.testing.assert_array_equal(fit.model.system.bodies[0].inertia[1:], fit.values)


@pytest.mark.exhaustive
def test_fit_with_recharting():
    """A minimal parametrization whose reference moves on while it is measured."""
    ts = np.linspace(0.0, 1.0, 15)

    def turning(drag):
        body = rj.FixedPointBody(np.array(cases.INERTIA), moment=rj.QuadraticDrag(drag))
        return rj.NullSpace(body, rj.RotationVector())

    values = cases.simulated_rates(cases.model(), cases.RATES[0], ts)
    fit = identify(
        turning(1e-4),
        Measurements(ts, {Gyroscope(): values}),
        Parameter("drag", cases.drag_of),
        horizons=(1.0,),
    )
    np.testing.assert_allclose(fit.values, cases.DRAG, rtol=1e-5)
