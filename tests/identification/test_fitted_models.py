"""Fits of tops, parts of models, several bodies and charts that move."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from identification import cases

import rigidjax as rj
from rigidjax.identification import (
    Attitude,
    Gyroscope,
    InertiaTensor,
    Measurements,
    Orientation,
    Parameter,
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
