"""Reports name the fault of a model or of data, and sign no wrong estimate."""

import numpy as np
import planted_faults
import pytest
import systems

import rigidjax as rj

CASES = [pytest.param(fault, id=f"{fault.system}-{fault.name}") for fault in planted_faults.FAULTS]
# One fault of the data, of a sensor and of the model.
DEFAULT = ("free body-exchanged axes", "free body-bias", "free body-viscous drag")


@pytest.mark.exhaustive(but=DEFAULT)
@pytest.mark.parametrize("fault", CASES)
def test_first_lines_name_the_fault(fault):
    row = planted_faults.measure(fault, seed=1)
    assert row["named"] and not row["signed"], row


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", systems.SYSTEMS)
def test_causes_of_every_system(name):
    """Rates three times as large as predicted have a cause, unless they are zero."""
    case = systems.case(name)
    body = None if isinstance(case.system, rj.FixedPointBody) else case.system.bodies[0].name
    gyroscope = rj.Gyroscope(body)
    ts = case.t0 + np.linspace(0.0, 0.3, 31)
    run = rj.simulate(case.system, case.state, ts[-1], t0=ts[0], ts=ts)
    noise = 1e-3 * np.random.default_rng(0).normal(size=(31, 3))
    data = rj.Measurements(
        ts, {gyroscope: 3 * np.asarray(run.sensors[gyroscope]) + noise}, {gyroscope: 1e-3}
    )
    moves = np.ptp(run.sensors[gyroscope]) > 0
    bias = rj.Parameter(f"{gyroscope.name}.bias")
    fit = rj.identify(case.system, data, bias, state0=case.state, throw=False)
    assert bool(fit.causes) == moves and all(np.isfinite(cause.explained) for cause in fit.causes)
