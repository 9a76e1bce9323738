"""Recorded runs: pieces, filters, rates, clocks, and estimated starts."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rigidjax as rj
from rigidjax import identification as ident
from rigidjax.identification.data.filtering import lowpass_orientation, resample_orientation

GYRO, ATTITUDE, ANGLE = rj.Gyroscope(), rj.Attitude(), rj.JointCoordinate("hinge")
TS = np.arange(0.0, 4.0, 0.01)


def rates(ts=TS):
    return np.stack([np.sin(3 * ts), np.cos(2 * ts), 0.3 * ts], axis=1)


def steady(ts, omega=(1.0, -2.0, 0.5)):
    """A steady rotation about a body axis."""
    turns = Rotation.from_rotvec(np.outer(ts, omega))
    return (Rotation.from_rotvec([0.3, 0.2, -1.0]) * turns).as_quat(scalar_first=True)


# --- pieces


def test_pieces_at_gaps_flags_and_lengths():
    """Every sample in a piece is the one of the run at its time; the rest is what was asked."""
    ts = np.concatenate([TS[:100], TS[150:]])
    inputs = {"u": (TS, np.sin(TS))}
    run = rj.Measurements(ts, {GYRO: rates(ts)}, {GYRO: 0.1}, name="a", inputs=inputs)
    first, second = ident.cut_run(run, gap=0.05)
    assert (len(first.ts), len(second.ts), first.name, second.name) == (100, 250, "a/1", "a/2")
    np.testing.assert_array_equal(second.ts, TS[150:])
    np.testing.assert_array_equal(second.inputs["u"][0], TS)
    assert second.noise[0].shape == (250, 3)

    flying = (ts % 1.0) > 0.305
    flights = ident.cut_run(run, where=flying, shortest=0.5)
    assert [round(float(x.ts[0]), 9) for x in flights] == [0.31, 2.31, 3.31]
    for piece in flights:
        np.testing.assert_array_equal(piece.values[0], rates(np.asarray(piece.ts)))

    pieces = ident.cut_run(run, gap=0.05, length=0.4)
    # 1.0 s is two pieces, the rest of 0.2 s is too short; 2.5 s is six and 0.1 s.
    assert [len(x.ts) for x in pieces] == [40] * 2 + [40] * 6
    assert len(ident.cut_run(run, gap=0.05, length=0.4, shortest=0.0)) == 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs `length`, `gap` or `where`"),
        ({"length": 0.0}, r"`cut_run\(length=...\)` must be positive, s; got 0.0"),
        ({"where": TS}, r"must be True or False, shape \(400,\); got float64"),
        ({"where": TS < 0}, "no piece of the run 'a', 3.99 s long, is at least 0 s long"),
        ({"length": 0.01, "shortest": 0.005}, "no piece of the run"),
    ],
)
def test_wrong_pieces(options, message):
    run = rj.Measurements(TS, {GYRO: rates()}, name="a")
    with pytest.raises(ValueError, match=message):
        ident.cut_run(run, **options)


def test_a_piece_without_a_sample_of_a_sensor():
    run = rj.Measurements.merged({GYRO: (TS, rates()), ANGLE: (TS[::200], TS[::200])})
    with pytest.raises(ValueError, match="from 0.5 to 0.99 s has no sample of the coordinate of"):
        ident.cut_run(run, length=0.5)


# --- filters, derivatives, other rates


def test_lowpass_has_the_gain_of_two_passes_and_no_delay():
    """Steady sines against the transfer function of the Butterworth filter."""
    ts = np.arange(0, 20, 0.002)
    for frequency in (2.0, 10.0, 25.0):
        x = np.sin(2 * np.pi * frequency * ts)
        y = ident.lowpass(ts, x, 10.0)
        warped = np.tan(np.pi * frequency * 0.002) / np.tan(np.pi * 10.0 * 0.002)
        middle = slice(2000, 8000)
        gain = (y[middle] @ x[middle]) / (x[middle] @ x[middle])
        assert gain == pytest.approx(1 / (1 + warped**8), rel=1e-6)
        np.testing.assert_allclose(y[middle], gain * x[middle], atol=1e-6)


def test_derivatives_are_exact_for_polynomials():
    x = np.stack([TS**3, 1 - TS**2], axis=1)
    found = ident.differentiate(TS, x, window=0.1)
    np.testing.assert_allclose(found, np.stack([3 * TS**2, -2 * TS], axis=1), atol=1e-9)
    found = ident.differentiate(TS, x, window=0.1, derivative=2)
    np.testing.assert_allclose(found[:, 0], 6 * TS, atol=1e-7)


def test_steady_rotations_pass_filters_and_interpolation():
    q = steady(TS)
    flipped = q * np.where(np.arange(len(TS)) % 3 == 0, -1, 1)[:, None]
    for found in (lowpass_orientation(TS, flipped, 5.0), resample_orientation(TS, flipped, TS)):
        agreement = np.abs(np.sum(found * q, axis=1))[20:-20]
        np.testing.assert_allclose(agreement, 1.0, atol=1e-12)
    omega = ident.differentiate_orientation(TS, flipped, window=0.05)
    np.testing.assert_allclose(omega, np.tile([1.0, -2.0, 0.5], (len(TS), 1)), atol=1e-6)
    new = TS[:-1] + 0.003
    found = resample_orientation(TS, flipped, new)
    np.testing.assert_allclose(np.abs(np.sum(found * steady(new), axis=1)), 1.0, atol=1e-12)


def test_filtered_and_resampled_runs():
    """A sensor at its own rate is filtered by its own samples; orientations stay rotations."""
    slow = TS[::4]
    run = rj.Measurements.merged(
        {ATTITUDE: (TS, steady(TS)), GYRO: (slow, rates(slow))}, {ATTITUDE: 0.1, GYRO: 0.2}
    )
    filtered = ident.filter_run(run, 8.0)
    np.testing.assert_allclose(filtered.sample_mask(1)[::4], ident.lowpass(slow, rates(slow), 8.0))
    assert not np.asarray(filtered.mask[1])[1].any()
    new = np.arange(0.0, 3.95, 0.03)
    again = ident.resample_run(run, new)
    np.testing.assert_allclose(again.values[1], rates(new), atol=1e-5)
    assert again.noise[1].shape == (len(new), 3)
    moved = ident.shift_run(run, 0.25)
    np.testing.assert_allclose(moved.ts, np.asarray(run.ts) + 0.25)


def test_gaps_stay_gaps_in_resampled_runs():
    ts = np.concatenate([TS[:100], TS[150:]])
    again = ident.resample_run(rj.Measurements(ts, {GYRO: rates(ts)}), TS[:300])
    used = np.asarray(again.mask[0])[:, 0]
    np.testing.assert_array_equal(np.flatnonzero(~used), np.arange(100, 150))
    np.testing.assert_allclose(np.asarray(again.values[0])[used], rates(TS[:300])[used], atol=1e-12)


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (ident.lowpass, (TS, TS, 60.0), "below half of the sampling rate, 50 Hz; got 60.0"),
        (ident.lowpass, (TS[:5], TS[:5], 5.0), "needs more than 12 samples for order 4; got 5"),
        (ident.lowpass, (TS**2, TS, 5.0), "takes uniform samples; they are 0.03.* Resample first"),
        (ident.lowpass, (TS, TS + np.nan, 5.0), "must be finite; leave gaps out"),
        (ident.lowpass, (TS[::-1], TS, 5.0), "must be strictly increasing"),
        (ident.lowpass, (TS, TS[1:], 5.0), r"got \(400,\) and \(399,\)"),
        (ident.resample, (TS, TS, [4.5]), "must be within the data, 0 to 3.99 s; got 4.5 to 4.5"),
        (ident.resample, (TS, TS, []), r"must be times \(S,\), s; got \(0,\)"),
        (ident.differentiate_orientation, (TS, rates()), r"must be unit quaternions \(T, 4\)"),
        (lowpass_orientation, (TS, steady(TS, (0, 0, 90.0)), 5.0), "rotates as fast as the filter"),
    ],
)
def test_wrong_signals(function, arguments, message):
    options = {"window": 0.1} if function is ident.differentiate_orientation else {}
    with pytest.raises(ValueError, match=message):
        function(*arguments, **options)


def test_wrong_options_of_signals():
    with pytest.raises(ValueError, match="must be from 0 to the degree, 3; got 4"):
        ident.differentiate(TS, TS, window=0.1, derivative=4)
    with pytest.raises(ValueError, match="must be from 0.04 to 3.99 s, for polynomials of degree"):
        ident.differentiate(TS, TS, window=0.01)
    with pytest.raises(ValueError, match='"linear" or "cubic"; got \'spline\''):
        ident.resample(TS, TS, TS, interpolation="spline")


def test_wrong_runs():
    wrapped = rj.Measurements(TS, {ANGLE: (6 * TS) % (2 * np.pi)})
    with pytest.raises(ValueError, match=r"jumps by 6\.\d+ at sample 105.* Unwrap it first"):
        ident.filter_run(wrapped, 5.0)
    mask = np.ones((len(TS), 3), bool)
    mask[5, 1] = False
    gaps = rj.Measurements(TS, {GYRO: rates()}, mask={GYRO: mask})
    with pytest.raises(ValueError, match="have gaps at different times"):
        ident.filter_run(gaps, 5.0)
    run = rj.Measurements(TS, {GYRO: rates()}, {GYRO: 0.1 + np.abs(rates())})
    with pytest.raises(
        ValueError, match=r"The gyroscope: `lowpass\(cutoff=...\)` must be positive"
    ):
        ident.filter_run(run, 0.0)
    with pytest.raises(ValueError, match="the noise of the gyroscope differs from sample to"):
        ident.resample_run(run, TS)
    with pytest.raises(ValueError, match="must be within the run, 0 to 3.99 s; got 0 to 4 s"):
        ident.resample_run(run, [0.0, 4.0])
    with pytest.raises(ValueError, match="must be finite, s; got nan"):
        ident.shift_run(run, np.nan)
    with pytest.raises(ValueError, match=r"got \['gyroscope'\] twice"):
        ident.merge_runs([run, run])


# --- clocks


def motion(t):
    return np.sin(3 * t) + 0.5 * np.sin(7.3 * t + 1) + 0.3 * np.cos(1.1 * t)


@pytest.mark.parametrize("shift", [0.4321, -1.2345, 0.003])
def test_shift_of_a_clock(shift):
    """Two recordings at different rates, gains and offsets, known to a twentieth of a sample."""
    rng = np.random.default_rng(3)
    a, b = np.arange(0, 20, 0.01), np.arange(3, 15, 0.013)
    noisy = 2 * motion(a) + 100 + 0.02 * rng.normal(size=len(a))
    found = ident.find_time_shift(a - shift, noisy, b, motion(b), max_shift=2.0)
    assert found.shift == pytest.approx(shift, abs=5e-4)
    assert found.correlation > 0.999


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_shift": 0.35}, "the best shift is at the limit"),
        ({"max_shift": -1.0}, "must be positive, s; got -1.0"),
        ({"reference": np.random.default_rng(0).normal(size=2000)}, "do not agree at any shift"),
        ({"values": np.zeros(2000)}, "do not agree at any shift"),
        ({"reference_ts": TS[0] + 100 + np.arange(0, 20, 0.01)}, "share too little time"),
        ({"values": np.zeros((2000, 2))}, r"one signal of each recording.*got \(2000, 2\)"),
    ],
)
def test_wrong_recordings(change, message):
    ts = np.arange(0, 20, 0.01)
    arguments = {"ts": ts, "values": motion(ts), "reference_ts": ts, "reference": motion(ts - 0.5)}
    with pytest.raises(ValueError, match=message):
        ident.find_time_shift(**{**arguments, "max_shift": 1.0, **change})


# --- starts


def test_rates_of_starts_use_as_many_samples_as_a_parabola_describes():
    """The error of a rate from a noisy encoder: of the order that a long window allows."""
    rng = np.random.default_rng(1)
    body = rj.Body("arm", 1.0, (0.1, 0.1, 0.1), position=(0.5, 0, 0))
    hinge = rj.Revolute("ground", "arm", (0, 0, 0), (0, 0, 1), name="hinge")
    model = rj.NullSpace(rj.System([body], [hinge]))
    ts, errors = np.arange(0.0, 1.0, 0.002), []
    for _ in range(40):
        angle = 0.4 + 1.5 * ts + 0.8 * ts**2 + 2e-3 * rng.normal(size=len(ts))
        (state,) = ident.estimate_starts(model, rj.Measurements(ts, {ANGLE: angle}))
        errors.append(float(state.angular_velocity[0, 2]) - 1.5)
    # The standard error of the slope at the end of a parabola through 500 samples.
    expected = np.sqrt(192 / 500) * 2e-3
    assert np.sqrt(np.mean(np.square(errors))) < 1.5 * expected
