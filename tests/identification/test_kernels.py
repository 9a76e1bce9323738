"""Tangents of fits are kernels, and equal XLA's forward mode."""

import diffrax
import numpy as np
import pytest
from identification.cases import inertia_of

import rigidjax as rj
from rigidjax.adjoints import traced_solve

TS = np.linspace(0.0, 1.0, 6)
STATE = rj.State(angular_velocity=(1.0, 2.0, 0.5))
INERTIA = np.array([0.5, 0.4, 0.3])


@pytest.fixture
def backends(monkeypatch):
    """Record the selected backend of every compiled solve."""
    seen, choose_backend = [], traced_solve.choose_backend

    def note_backend(*args):
        seen.append(choose_backend(*args))
        return seen[-1]

    monkeypatch.setattr(traced_solve, "choose_backend", note_backend)
    return seen


def body(moment, scale=1.0):
    return rj.NullSpace(rj.FixedPointBody(scale * INERTIA, moment=moment))


def test_fit_with_a_measured_torque_is_a_kernel(rng, backends):
    torque = rj.Signal(np.linspace(0.0, 1.0, 9), rng.normal(size=(9, 3)), "hold")
    run = rj.simulate(body(torque), STATE, 1.0, ts=TS)
    rates = np.asarray(run.states.angular_velocity[:, 0])
    data = rj.Measurements(TS, {rj.Gyroscope(): rates + 0.01 * rng.normal(size=(6, 3))})
    parameters = (
        rj.Parameter("J", inertia_of, rj.identification.Positive()),
        rj.Parameter("gain", lambda e: e.model.system.moment.gain),
    )
    arguments = body(torque, 1.1), data, parameters
    how = {"solver": diffrax.Bosh3(), "rtol": 1e-6, "atol": 1e-6, "horizons": (1.0,)}
    by_xla = rj.identify(*arguments, state0=STATE, backend="xla", **how)
    backends.clear()
    fit = rj.identify(*arguments, state0=STATE, **how)
    # Values and tangents are one kernel.
    assert backends and set(backends) == {"native"}
    np.testing.assert_allclose(fit.values, by_xla.values, rtol=1e-8)
    std = [by_xla.std[label] for label in fit.labels]
    np.testing.assert_allclose([fit.std[label] for label in fit.labels], std, rtol=1e-7)
