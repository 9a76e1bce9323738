"""Fourier series as torques, moments and motions."""

import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj

TS = np.linspace(0.0, 2.0, 9)


def test_values_against_the_series():
    series = rj.FourierSeries(1.5, sine=(0.3, -0.2), cosine=(0.1, 0.4), offset=0.7)
    expected = (
        0.7
        + 0.3 * np.sin(1.5 * TS)
        - 0.2 * np.sin(3 * TS)
        + 0.1 * np.cos(1.5 * TS)
        + 0.4 * np.cos(3 * TS)
    )
    np.testing.assert_allclose([series(jnp.asarray(t)) for t in TS], expected, rtol=1e-14)
    # Further arguments are ignored, and sines or cosines alone are sufficient.
    alone = rj.FourierSeries(1.5, cosine=(0.1, 0.4))
    t = jnp.asarray(0.3)
    expected = 0.1 * np.cos(0.45) + 0.4 * np.cos(0.9)
    np.testing.assert_allclose(alone(t, jnp.eye(3), jnp.ones(3)), expected, rtol=1e-14)


def test_vector_series_as_a_moment():
    profile = rj.FourierSeries(2.0, sine=np.eye(3)[:2])
    assert profile(jnp.asarray(0.1)).shape == (3,)
    system = rj.System(rj.Body("box", 1.0, (1.0, 1.0, 1.0)), forces=rj.Torque("box", profile))
    model = rj.NullSpace(system)
    solution = rj.simulate(model, system.reference_state(), TS[-1], ts=TS)
    rate = solution.states.angular_velocity[:, 0]
    np.testing.assert_allclose(rate[:, 0], (1 - np.cos(2 * TS)) / 2, atol=1e-6)
    np.testing.assert_allclose(rate[:, 1], (1 - np.cos(4 * TS)) / 4, atol=1e-6)


def test_invalid_arguments_raise():
    with pytest.raises(ValueError, match="needs `sine`, `cosine`, or both; got neither"):
        rj.FourierSeries(1.0)
    with pytest.raises(ValueError, match=r"must have the same shape; got \(2,\) and \(3,\)"):
        rj.FourierSeries(1.0, (1.0, 2.0), (1.0, 2.0, 3.0))
    with pytest.raises(ValueError, match=r"must have shape \(K,\) or \(K, 3\); got \(2, 2\)"):
        rj.FourierSeries(1.0, np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"FourierSeries\(offset=...\)` must have shape \(\)"):
        rj.FourierSeries(1.0, (1.0,), offset=(1.0, 2.0, 3.0))
