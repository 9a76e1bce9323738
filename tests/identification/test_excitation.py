"""Information of planned runs, and runs that are designed to have much of it."""

import numpy as np
import pytest

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
INERTIA, NOISE = (0.02, 0.017, 0.006), 0.01
STATE = rj.State(angular_velocity=(1.0, 5.0, -3.0))


def inertia_of(experiment):
    return experiment.model.system.inertia


def rates_of(experiment):
    return experiment.state0.angular_velocity


def moment_of(experiment):
    return experiment.model.system.moment.value


def body(inertia=INERTIA):
    return rj.NullSpace(rj.FixedPointBody(inertia))


MOMENTS = Parameter(
    "inertia",
    inertia_of,
    PrincipalInertia(fixed=("I3",)),
    labels=("I1", "I2", "I3"),
    unit="kg m^2",
)
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
        (torque, Parameter("I", inertia_of, Positive(which=(2,)), labels=("I1", "I2", "I3"))),
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


def test_invalid_arguments_raise():
    model = body()
    with pytest.raises(TypeError, match=r"`excitation\(model, ...\)` takes a formulation"):
        excitation(model.system, STATE, TS, SENSORS, MOMENTS)
    with pytest.raises(ValueError, match=r"takes a dictionary such as \{rj.Gyroscope\(\): 0.01\}"):
        excitation(model, STATE, TS, {}, MOMENTS)
    with pytest.raises(TypeError, match="must be sensors such as"):
        excitation(model, STATE, TS, {"gyroscope": 0.1}, MOMENTS)
    with pytest.raises(ValueError, match="Every sensor needs a name of its own"):
        excitation(
            model, STATE, TS, {rj.Position(): 1.0, rj.Position(None, (1, 0, 0)): 1.0}, MOMENTS
        )
    with pytest.raises(
        ValueError, match=r"`excitation\(ts=...\)` must be strictly increasing; sample 1 is at"
    ):
        excitation(model, STATE, TS[::-1], SENSORS, MOMENTS)
    with pytest.raises(ValueError, match="noise of the sensor 'gyroscope' must be positive"):
        excitation(model, STATE, TS, {Gyroscope(): 0.0}, MOMENTS)
    with pytest.raises(TypeError, match=r"`excitation\(parameters=...\)` takes `rj.Parameter`"):
        excitation(model, STATE, TS, SENSORS, (inertia_of,))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="needs parameters of different names"):
        excitation(model, STATE, TS, SENSORS, ())
    with pytest.raises(ValueError, match=r"Parameters need different labels; got \['I1'\]"):
        other = Parameter("other", rates_of, labels=("I1", "x", "y"))
        excitation(model, STATE, TS, SENSORS, (MOMENTS, other))
    with pytest.raises(ValueError, match="4 scalar readings cannot determine 5 parameters"):
        noise = np.full((2, 3), np.inf)
        noise.ravel()[:4] = 1.0
        excitation(model, STATE, TS[:2], {Gyroscope(): noise}, (MOMENTS, RATES))


def test_failed_simulation_raises():
    with pytest.raises(rj.SimulationError, match="maximum number of"):
        excitation(body(), STATE, TS, SENSORS, MOMENTS, max_steps=2)
