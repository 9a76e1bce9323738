"""Information of planned runs, and runs that are designed to have much of it."""

import numpy as np
import pytest
from identification.cases import INERTIA, LABELS, inertia_of, rates_of

import rigidjax as rj
from rigidjax.identification import (
    Gyroscope,
    Parameter,
    Positive,
    PrincipalInertia,
    Unconstrained,
    excitation,
)

TS = np.linspace(0.0, 1.0, 21)
NOISE = 0.01
STATE = rj.State(angular_velocity=(1.0, 5.0, -3.0))


def moment_of(experiment):
    return experiment.model.system.moment.value


def body(inertia=INERTIA):
    return rj.NullSpace(rj.FixedPointBody(inertia))


MOMENTS = Parameter("inertia", inertia_of, PrincipalInertia(fixed=("I3",)), labels=LABELS)
RATES = Parameter("rates", rates_of, unit="rad/s")
SENSORS = {Gyroscope(): NOISE}


def test_scores_from_eigenvalues():
    planned = excitation(body(), STATE, TS, SENSORS, (MOMENTS, RATES))
    F = planned.relative_information
    eigenvalues = np.linalg.eigvalsh(F)
    np.testing.assert_allclose(planned.d_score, np.log(eigenvalues).sum(), rtol=1e-8)
    np.testing.assert_allclose(planned.a_score, np.trace(np.linalg.inv(F)), rtol=1e-6)
    np.testing.assert_allclose(planned.e_score, eigenvalues[0], rtol=1e-6)
    np.testing.assert_allclose(
        planned.modified_e_score, eigenvalues[-1] / eigenvalues[0], rtol=1e-6
    )
    assert "I1 = 0.02 +- " in str(planned) and "All 5 fitted parameters" in str(planned)


def test_spin_up_against_hand_calculation():
    """A wheel under a constant moment: its rate is m t / I, with derivatives t / I and -m t / I^2.

    Without knowing I only m / I is determined; with I held, the information is sum t^2 / (I s)^2.
    """
    I, m = 0.4, 0.3
    moment = rj.ConstantMoment((0.0, 0.0, m))
    model = rj.NullSpace(rj.FixedPointBody((0.3, 0.3, I), moment=moment))
    still = rj.State(angular_velocity=(0.0, 0.0, 0.0))
    torque = Parameter(
        "m", moment_of, Unconstrained(which=(2,)), labels=("m1", "m2", "m"), unit="N m"
    )
    alone = excitation(model, still, TS, SENSORS, torque)
    expected = np.sum(TS**2) / (I * NOISE) ** 2
    np.testing.assert_allclose(alone.information, [[expected]], rtol=1e-8)
    np.testing.assert_allclose(alone.std["m"], expected**-0.5, rtol=1e-8)
    np.testing.assert_allclose(alone.d_score, np.log(expected * m**2), rtol=1e-8)
    both = excitation(
        model,
        still,
        TS,
        SENSORS,
        (torque, Parameter("I", inertia_of, Positive(which=(2,)), labels=LABELS)),
    )
    assert both.d_score == -np.inf and both.a_score == np.inf and both.e_score == 0
    assert not both.identifiability.identifiable and both.std == {"m": np.inf, "I3": np.inf}
    assert "only the ratios of m and I3" in str(both)


def test_sensor_without_samples_has_no_information():
    noise = np.full((len(TS), 3), NOISE)
    noise[10:] = np.inf
    shorter = excitation(body(), STATE, TS[:10], SENSORS, MOMENTS)
    masked = excitation(body(), STATE, TS, {Gyroscope(): noise}, MOMENTS)
    np.testing.assert_allclose(masked.information, shorter.information, rtol=1e-6)
    assert masked.num_readings == shorter.num_readings == 30


OTHER = Parameter("other", rates_of, labels=("I1", "x", "y"))
TWICE = {rj.Position(): 1.0, rj.Position(None, (1, 0, 0)): 1.0}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"model": 3}, TypeError, r"`excitation\(model, ...\)` takes a system"),
        ({"noise": {}}, ValueError, r"takes a dictionary such as \{rj.Gyroscope\(\): 0.01\}"),
        ({"noise": {"gyroscope": 0.1}}, TypeError, "must be sensors such as"),
        ({"noise": TWICE}, ValueError, "Every sensor needs a name of its own"),
        ({"ts": TS[::-1]}, ValueError, r"excitation\(ts=...\)` must be strictly incr.*ple 1 is at"),
        ({"noise": {Gyroscope(): 0.0}}, ValueError, "of the sensor 'gyroscope' must be positive"),
        ({"parameters": (inertia_of,)}, TypeError, r"`excitation\(parameters=...\)` takes `rj.P"),
        ({"parameters": ()}, ValueError, "needs parameters of different names"),
        ({"parameters": (MOMENTS, OTHER)}, ValueError, r"need different labels; got \['I1'\]"),
    ],
)
def test_invalid_arguments_raise(change, error, message):
    arguments = {
        "model": body(), "state0": STATE, "ts": TS, "noise": SENSORS, "parameters": MOMENTS,
        **change,
    }  # fmt: skip
    with pytest.raises(error, match=message):
        excitation(*arguments.values())


def test_too_few_readings_raise():
    noise = np.full((2, 3), np.inf)
    noise.ravel()[:4] = 1.0
    with pytest.raises(ValueError, match="4 scalar readings cannot determine 5 parameters"):
        excitation(body(), STATE, TS[:2], {Gyroscope(): noise}, (MOMENTS, RATES))


def test_failed_simulation_raises():
    with pytest.raises(rj.SimulationError, match="maximum number of"):
        excitation(body(), STATE, TS, SENSORS, MOMENTS, max_steps=2)
