"""Encoders that wrap after a revolution, that count revolutions, and that are calibrated."""

import equinox as eqx
import jax
import numpy as np
import pytest
from identification.pendulum import ENCODER, angles, pendulum

import rigidjax as rj
from rigidjax.identification.data.measurements import stack_runs
from rigidjax.identification.starts.first_samples import align_revolutions

DAMPING, TURN = 0.08, 2 * np.pi
TS = np.linspace(0.0, 2.0, 101)
MODEL = pendulum(damping=0.05)
START = rj.jointed_state(MODEL.system, {"hinge": 0.3}, {"hinge": 9.0})


@pytest.fixture(scope="module")
def angle():
    """Return the angle of a pendulum that passes the top."""
    return angles(TS, (0.3, 9.0), damping=DAMPING)


def wrap(angle, lowest):
    return (angle - lowest) % TURN + lowest


def read(*samples, encoder=ENCODER):
    """The encoder as `identify` takes it, with its notes."""
    return encoder.in_range(MODEL, [np.asarray(x, float) for x in samples])


@pytest.mark.parametrize("lowest", [-np.pi, 0.0, -1.0])
@pytest.mark.parametrize("every", [1, 7])
def test_encoder_range_is_detected(angle, lowest, every):
    """Readings within a revolution are compared modulo a revolution; counted revolutions are
    kept.
    """
    gaps = np.where((TS > 0.5) & (TS < 0.7), np.nan, wrap(angle, lowest))[::every]
    encoder, (note,) = read(gaps)
    assert encoder.period == pytest.approx(TURN) and encoder.name == ENCODER.name
    assert "coordinate of hinge lie within one turn" in note and "quarter turn apart" in note
    r = jax.vmap(encoder.residual)(angle + 0.1, wrap(angle, lowest))
    np.testing.assert_allclose(r, 0.1, atol=1e-12)
    assert read(angle[::every]) == (ENCODER, [])
    counting = rj.JointCoordinate("hinge", period=np.inf)
    assert read(gaps, encoder=counting) == (counting, [])
    late, _ = read(gaps, encoder=rj.Delayed(ENCODER, 0.1))
    assert late.sensor.period == pytest.approx(TURN)


def test_swings_within_a_revolution_are_not_wrapped():
    """Unambiguous readings are unchanged; beyond half a revolution they are noted."""
    swing = 3.0 * np.sin(5 * TS)
    assert read(swing) == (ENCODER, [])
    encoder, (note,) = read(0.5 * swing + TURN)
    assert encoder.period == pytest.approx(TURN) and "they reach 7.78" in note
    twisted = np.where(TS > 1.0, swing + TURN, swing) + 3 * TS
    encoder, (note,) = read(twisted)
    assert (
        encoder.period is None
        and "jump by whole turns" in note
        and "sample 51 of the run 1" in note
    )
    with pytest.raises(ValueError, match=r"period=...\)` must be positive, rad; got 0"):
        rj.JointCoordinate("hinge", period=0.0)


def test_revolutions_before_the_run_are_subtracted(angle):
    """A counter that turned three times before the run is counted from the start state."""
    data = rj.Measurements(TS, {ENCODER: angle + 3 * TURN}, {ENCODER: 0.01}, name="a")
    model = MODEL.__class__(MODEL.system.tracking(["hinge"]))
    runs, (note,) = align_revolutions(model, stack_runs(data), [START])
    np.testing.assert_allclose(runs.values[0][0], angle, atol=1e-12)
    assert "+3 revolutions from the start state in the run 'a'" in note
    plain = stack_runs(rj.Measurements(TS, {ENCODER: angle}, {ENCODER: 0.01}))
    assert align_revolutions(model, plain, [START])[1] == []


def test_fit_of_sparse_readings_modulo_a_revolution(angle):
    """Damping, bias and scale from 26 samples of an encoder from 0 to 2 pi with a gap."""
    rng = np.random.default_rng(1)
    read = 1.02 * angle + 0.15 + 0.005 * rng.normal(size=angle.size)
    rows = np.flatnonzero((np.arange(101) % 4 == 0) & ((TS < 0.9) | (TS > 1.3)))
    data = rj.Measurements(TS[rows], {ENCODER: wrap(read, 0.0)[rows]}, {ENCODER: 0.005})
    parameters = [
        rj.Parameter("damping", lambda e: e.model.system.joints[0].damping),
        rj.Parameter("bias", lambda e: e.sensors[0].bias),
        rj.Parameter("scale", lambda e: e.sensors[0].scale),
    ]
    fit = rj.identify(MODEL, data, parameters, state0=START)
    std = np.array(list(fit.std.values()))
    assert np.all(np.abs(fit.values - [DAMPING, 0.15, 1.02]) < 3.5 * std)
    assert np.all(std < [1e-3, 0.01, 0.01]) and fit.chi_square < 2.0
    assert any("compared modulo a turn" in note for note in fit.notes)


def test_initial_state_is_not_changed():
    for sensor in (ENCODER, rj.Position("rod")):
        assert sensor.start(MODEL, START, np.ones(sensor.value_shape)) is START


def test_calibration_of_joint_sensors():
    """Every sensor reads scale times its ideal value plus bias, and undoes it."""
    model = pendulum(forces=[rj.Motor("hinge", lambda t: 2.0)])
    y = model.encode(rj.jointed_state(model.system, {"hinge": 0.4}, {"hinge": 2.0}))
    turn = np.array([0.02, -0.03, 0.01])
    plain, calibrated = [], []
    for kind in (rj.JointCoordinate, rj.JointRate, rj.JointTorque):
        plain.append(kind("hinge"))
        calibrated.append(kind("hinge", bias=0.3, scale=1.1, name="second"))
    vector = {"bias": (0.1, -0.2, 0.3), "scale": (1.1, 0.9, 1.2), "misalignment": turn}
    for kind in (rj.Position, rj.ReactionForce, rj.ReactionMoment):
        of = "rod" if kind is rj.Position else "hinge"
        plain.append(kind(of))
        calibrated.append(kind(of, **vector, name="second"))
    plain.append(rj.Attitude("rod"))
    calibrated.append(rj.Attitude("rod", bias=turn, name="second"))

    @eqx.filter_jit
    def readings(y):
        pairs = [[s.predict(model, np.array(0.0), y) for s in part] for part in (plain, calibrated)]
        again = calibrated[-1].start(model, model.decode(0.0, y), pairs[1][-1])
        return *pairs, again.orientation[0]

    ideal, found, orientation = readings(y)
    C = rj.Quaternion().to_matrix(rj.RotationVector().to_quaternion(turn)).T
    for k in range(3):
        np.testing.assert_allclose(found[k], 1.1 * ideal[k] + 0.3, rtol=1e-14)
        np.testing.assert_allclose(calibrated[k].ideal_value(found[k]), ideal[k], rtol=1e-13)
    for k in range(3, 6):
        read = np.array(vector["scale"]) * (C @ ideal[k]) + np.array(vector["bias"])
        np.testing.assert_allclose(found[k], read, rtol=1e-12, atol=1e-13)
    R, turned = (rj.Quaternion().to_matrix(x[-1]) for x in (ideal, found))
    np.testing.assert_allclose(turned, R @ C.T, atol=1e-14)
    np.testing.assert_allclose(orientation, ideal[-1], atol=1e-14)
    assert all(sensor.name == "second" for sensor in calibrated)
    with pytest.raises(ValueError, match=r"ReactionForce\(scale=...\)` must not be zero"):
        rj.ReactionForce("hinge", scale=(1.0, 0.0, 1.0))
    with pytest.raises(ValueError, match=r"JointTorque\(scale=...\)` must not be zero"):
        rj.JointTorque("hinge", scale=0.0)
