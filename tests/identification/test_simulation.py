"""Settings of simulations: one object, or its settings one by one, in every function."""

import diffrax
import equinox as eqx
import numpy as np
import pytest
from identification import cases

import rigidjax as rj
from rigidjax.identification import identify_batch

MODEL, STATE, TS = cases.model(), rj.State(angular_velocity=cases.RATES[0]), np.linspace(0, 0.4, 9)
DRAG = cases.parameters()[1]
DATA = cases.measurements(cases.NOISE, known=True)[:1]
NOISE = {rj.Gyroscope(): cases.NOISE}


ENTRIES = {
    "identify": lambda **options: rj.identify(MODEL, DATA, DRAG, **options),
    "identify_batch": lambda **options: identify_batch(MODEL, [DATA], DRAG, **options),
    "excitation": lambda **options: rj.excitation(MODEL, STATE, TS, NOISE, DRAG, **options),
    "design_experiment": lambda **options: rj.design_experiment(
        MODEL, STATE, TS, NOISE, DRAG, DRAG, **options
    ),
    "sensitivity": lambda **options: rj.sensitivity(MODEL, STATE, 0.4, DRAG, **options),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_settings_are_checked(entry):
    call = ENTRIES[entry]
    with pytest.raises(ValueError, match=rf"`{entry}` takes .* not both; got \['rtol'\] besides"):
        call(simulation=rj.Simulation(), rtol=1e-6)
    with pytest.raises(TypeError, match=rf"`{entry}\(simulation=...\)` takes an `rj.Simulation`"):
        call(simulation=diffrax.Tsit5())
    with pytest.raises(TypeError, match=rf"{entry}\(\) got an unexpected keyword argument 'rtoll'"):
        call(rtoll=1e-6)
    with pytest.raises(ValueError, match=r"The tolerances rtol = 1e-30 and atol = 1e-30 are below"):
        call(rtol=1e-30, atol=1e-30)


def test_batch_equals_single_fits():
    """Three sets in two lanes, each as fitted alone; what is held fixed costs no derivative."""
    parameter = cases.parameters(fixed=("I1",))[:2]
    runs = cases.measurements(cases.NOISE, known=True)[1:2]
    data = [[_shift_values(runs[0], 0.01 * k)] for k in range(3)]
    start = rj.State(angular_velocity=cases.RATES[1])
    how = {"state0": start, "horizons": (0.5, 1.0)}
    found = identify_batch(MODEL, data, parameter, batch_size=2, **how)
    assert found.converged.all() and len(found.labels) == 3
    for k, measured in enumerate(data):
        alone = rj.identify(MODEL, measured, parameter, **how)
        values = [alone.estimates[label] for label in found.labels]
        np.testing.assert_allclose(found.values[k], values, rtol=1e-9)
        std = [alone.std[label] for label in found.labels]
        np.testing.assert_allclose(found.std[k], std, rtol=1e-9)
    sensor = rj.Gyroscope(name="other")
    values = {sensor: runs[0].values[0]}
    other = rj.Measurements(runs[0].ts, values, {sensor: cases.NOISE})
    with pytest.raises(ValueError, match="sets of the same sensors"):
        identify_batch(MODEL, [data[0], [other]], parameter, **how)


def _shift_values(run, change):
    return eqx.tree_at(lambda r: r.values[0], run, run.values[0] + change)
