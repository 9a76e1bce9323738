"""Measurements: what is checked, and runs of different length side by side."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.identification import Attitude, Gyroscope, Measurements
from rigidjax.identification.data.measurements import stack_runs
from rigidjax.rotations import so3

TS = np.array([0.0, 0.1, 0.3])
RATES = np.arange(9.0).reshape(3, 3)
GYRO, GAP, NEVER = Gyroscope(), np.where(RATES == 4, np.nan, RATES), np.zeros((3, 3), bool)


def test_runs_are_padded_with_weight_zero():
    long = Measurements(TS, {GYRO: RATES}, {GYRO: 0.5}, name="long")
    short = Measurements(TS[:2] + 1, {GYRO: RATES[:2]}, {GYRO: [1.0, 2.0, 4.0]})
    runs = stack_runs([long, short])
    np.testing.assert_array_equal(runs.ts, [[0.0, 0.1, 0.3], [1.0, 1.1, 1.1]])
    np.testing.assert_array_equal(runs.values[0][1], RATES[[0, 1, 1]])
    np.testing.assert_array_equal(runs.weights[0][0], np.full((3, 3), 2.0))
    np.testing.assert_array_equal(runs.weights[0][1], [[1, 0.5, 0.25]] * 2 + [[0, 0, 0]])
    assert runs.lengths == (3, 2) and runs.names == ("long", "2")
    assert runs.num_samples == 15 and runs.noise_is_known


def test_gaps_have_weight_zero_and_no_nan():
    values = RATES.copy()
    values[0, 1] = values[2] = np.nan
    mask = np.isfinite(values)
    run = Measurements(TS, {GYRO: values}, mask={GYRO: mask})
    assert np.all(np.isfinite(run.values[0]))
    np.testing.assert_array_equal(stack_runs(run).weights[0][0], mask.astype(float))
    # Where a quaternion has a gap, all channels of its residual do.
    p = np.tile([1.0, 0, 0, 0], (3, 1))
    p[1] = np.nan
    run = Measurements(TS, {Attitude(): p}, mask={Attitude(): np.array([True, False, True])})
    np.testing.assert_array_equal(run.values[0], np.tile([1.0, 0, 0, 0], (3, 1)))
    np.testing.assert_array_equal(run.mask[0], [[True] * 3, [False] * 3, [True] * 3])


def test_attitude_residual_is_a_rotation_vector_whatever_the_sign():
    p = so3.exp_quaternion(jnp.array([0.4, -0.2, 0.9]))
    turn = jnp.array([0.1, 0.02, -0.3])
    q = so3.multiply(p, so3.exp_quaternion(turn))
    for sign in (1, -1):
        np.testing.assert_allclose(Attitude().residual(sign * q, p), turn, rtol=1e-13)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"ts": TS[:1]}, ValueError, r"at least two times"),
        ({"ts": [0.0, 0.3, 0.3]}, ValueError, r"sample 2 is at 0.3 s after 0.3 s"),
        ({"ts": [0.0, np.nan, 1.0]}, ValueError, r"must be finite numbers"),
        ({"values": {}}, ValueError, r"takes a dictionary"),
        ({"values": {"gyroscope": RATES}}, TypeError, r"must be sensors such as"),
        ({"values": {GYRO: RATES[:2]}}, ValueError, r"must have shape \(3, 3\); got \(2, 3\)"),
        ({"values": {GYRO: GAP}}, ValueError, r"'gyroscope' are not finite at sample 1"),
        ({"values": {GYRO: [["a"] * 3] * 3}}, TypeError, r"must be real numbers"),
        ({"values": {GYRO: RATES[..., None]}}, ValueError, r"Pass its column, `values\[..., 0\]`"),
        ({"noise": 0.1}, TypeError, r"is a number by sensor; got 0.1"),
        ({"noise": {GYRO: 0.0}}, ValueError, r"must be positive and finite, in rad/s"),
        ({"noise": {GYRO: [1.0, 2.0]}}, ValueError, r"must have shape"),
        ({"noise": {Attitude(): 1.0}}, ValueError, r"names the sensor 'attitude', which has no"),
        ({"mask": {GYRO: [1, 0, 1]}}, ValueError, r"must be True or False"),
        ({"mask": {GYRO: NEVER}}, ValueError, r"a channel in which every sample is masked"),
        ({"values": {Attitude(): 2 * np.eye(4)[:3]}}, ValueError, r"sample 0 has length 2"),
    ],
)
def test_invalid_arguments_raise(change, error, message):
    arguments = {"ts": TS, "values": {GYRO: RATES}, **change}
    with pytest.raises(error, match=message):
        Measurements(**arguments)


def test_timestamps_beyond_the_precision_raise():
    """Nanoseconds since 1970, as integers, whose steps are exact, and already rounded."""
    stamps = 1_700_000_000_000_000_000 + 300 * np.arange(3)
    for ts in (stamps, stamps.astype(float)):
        with pytest.raises(
            ValueError, match=r"precision of float64 .* to 256 s; .* `ts - ts\[0\]`"
        ):
            Measurements(ts, {GYRO: RATES})
    assert np.ptp(np.diff(Measurements(stamps - stamps[0], {GYRO: RATES}).ts)) == 0
    with pytest.raises(ValueError, match="precision of float64"):
        rj.Signal(stamps, np.zeros(3))


def test_seconds_since_1970_in_single_precision():
    with jax.enable_x64(False), pytest.raises(ValueError, match="precision of float32 .* 128 s"):
        Measurements(1.7e9 + np.asarray(TS), {GYRO: RATES})


def test_invalid_runs_raise():
    plain = Measurements(TS, {GYRO: RATES})
    known = Measurements(TS, {GYRO: RATES}, {GYRO: 1.0})
    attitude = Measurements(TS, {Attitude(): np.eye(4)[:3]})
    with pytest.raises(ValueError, match=r"at least one run"):
        stack_runs([])
    with pytest.raises(TypeError, match=r"or a list of them; got str"):
        stack_runs(["run"])
    with pytest.raises(ValueError, match=r"same sensors in the same order"):
        stack_runs([plain, attitude])
    with pytest.raises(ValueError, match=r"It lacks the gyroscope in the runs \['1'\]\.$"):
        stack_runs([plain, known])
    both = {GYRO: RATES, Attitude(): np.eye(4)[:3]}
    assert stack_runs(Measurements(TS, both, {GYRO: 1.0})).has_noise == (True, False)


def test_sensors_find_their_body():
    fixed = rj.NullSpace(rj.FixedPointBody([1.0, 1.0, 1.0]))
    bodies = [rj.Body("left", 1.0, [1.0, 1.0, 1.0]), rj.Body("right", 1.0, [1.0, 1.0, 1.0])]
    pair = rj.NullSpace(rj.System(bodies))
    state = rj.State(angular_velocity=[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    t = jnp.array(0.0)
    found = Gyroscope("right").predict(pair, t, pair.encode(state))
    np.testing.assert_array_equal(found, [4.0, 5.0, 6.0])
    moved = Gyroscope("left").start(pair, state, jnp.array([7.0, 8.0, 9.0]))
    np.testing.assert_array_equal(moved.angular_velocity, [[7, 8, 9], [4, 5, 6]])
    assert Gyroscope("right").name == "gyroscope of right"
    with pytest.raises(ValueError, match=r"must name one of the bodies \['left', 'right'\]"):
        Attitude().check(pair)
    with pytest.raises(ValueError, match=r"Did you mean 'right'"):
        Gyroscope("rigth").check(pair)
    with pytest.raises(ValueError, match=r"a `FixedPointBody` has no name"):
        Gyroscope("top").check(fixed)
