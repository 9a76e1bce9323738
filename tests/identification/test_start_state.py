"""Start states of systems with joints as parameters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import systems

import rigidjax as rj
from rigidjax.identification import Measurements, Parameter, identify, start_state
from rigidjax.identification.data.measurements import stack_runs
from rigidjax.identification.starts.first_samples import first_samples, first_valid_values
from rigidjax.initial.local_coordinates import retract, selection


@pytest.fixture(scope="module")
def four_bar():
    problem = rj.problems.four_bar()
    return rj.NullSpace(problem.system), problem.state0


def test_unclosable_loop_fails(four_bar):
    """A rocker beyond its workspace fails by its flag, and is not moved."""
    model, state = four_bar
    far, okay = jax.jit(
        lambda c: retract(model, state, jnp.zeros(()), selection((2,), 3), c, 0 * c)
    )(jnp.array([2.0]))
    assert not okay
    np.testing.assert_array_equal(far.position, state.position)


def test_start_of_a_model_with_states_of_actuators():
    """The currents of a motor are no part of the start; it may still be changed."""
    arm = systems.case("arm with actuators")
    model, change = rj.Relative(arm.system), selection((0,), 2)
    moved, okay = retract(model, arm.state, jnp.zeros(()), change, jnp.array([0.1]), jnp.zeros(1))
    expected = rj.jointed_state(arm.system, {"hinge of upper": 1.1, "hinge of lower": -0.4})
    assert okay
    np.testing.assert_allclose(moved.position, expected.position, atol=1e-7)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda m: start_state(m, positions=False, rates=False), "needs `positions=True`"),
        (lambda m: start_state(1.0), "takes a system or a formulation"),
        (lambda m: start_state(welded_plate()), "leave no degree of freedom"),
    ],
)
def test_invalid_arguments_raise(four_bar, call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call(four_bar[0])


def welded_plate():
    body = rj.Body("plate", 1.0, (0.1, 0.1, 0.1))
    return rj.NullSpace(rj.System(body, [rj.Weld("ground", "plate")]))


def test_initial_state_of_another_system_raises():
    model = rj.NullSpace(rj.FixedPointBody((0.5, 0.4, 0.2)))
    run = Measurements([0.0, 1.0], {rj.Gyroscope(): np.zeros((2, 3))})
    with pytest.raises(ValueError, match="called with a system of 3 generalised velocities"):
        free = rj.NullSpace(rj.System(rj.Body("brick", 1.2, (0.02, 0.03, 0.04))))
        identify(free, run, start_state(model))
    with pytest.raises(ValueError, match="must be one unit or 3"):
        unit = ("rad", "rad")
        identify(
            model, run, Parameter("r", lambda e: e.state0.angular_velocity, per_run=True, unit=unit)
        )


def test_initial_state_from_first_samples():
    """Samples count from the first that is not masked, each channel its own, moved by delays."""
    ts = np.linspace(0.0, 1.0, 101)
    rates = np.stack([5.0 * ts, 0.0 * ts, 0.1 * ts], axis=1)
    gaps = np.ones((101, 3), bool)
    gaps[:3, 0] = gaps[:30, 2] = False
    rates[:30, 2] = 99.0  # a reading that does not count
    gyro, late = rj.Gyroscope(), rj.Gyroscope(delay=0.1, name="late")
    values = {gyro: rates, late: 5.0 * np.ones((101, 3)) * (ts - 0.1)[:, None]}
    for noise, is_late in ((0.2, False), (0.1, True)):
        data = Measurements(ts, values, {gyro: noise, late: 0.01}, mask={gyro: gaps})
        runs = stack_runs(data)
        (of_gyro,), (of_late,) = first_samples(runs, 0), first_samples(runs, 1)
        np.testing.assert_allclose(of_gyro.value, [0.15, 0.0, 0.03])
        # The third channel begins after more than half of the time of ten samples.
        assert of_gyro.late and of_gyro.gap == pytest.approx(0.3)
        gaps[:30, 2] = True
        rates[:30, 2] = 0.1 * ts[:30]
        (of_gyro,) = first_samples(
            stack_runs(Measurements(ts, values, {gyro: noise, late: 0.01}, mask={gyro: gaps})), 0
        )
        assert of_gyro.late == is_late
        gaps[:30, 2], rates[:30, 2] = False, 99.0
        # The sample at 0.1 s determines the initial state.
        assert not of_late.late
        np.testing.assert_allclose(of_late.value, 0.0, atol=1e-12)
    found = first_valid_values(np.asarray(runs.values[0]), np.asarray(runs.weights[0]))
    np.testing.assert_allclose(found, [[0.15, 0.0, 0.03]])


def test_late_first_sample_is_not_the_initial_state():
    """A steady turn: an attitude that begins after 0.4 s is not the attitude at the start."""
    ts, rate = np.linspace(0.0, 1.0, 51), np.array([0.0, 0.0, 1.5])
    half = 0.5 * rate[2] * ts + 0.3
    attitude = np.stack([np.cos(half), 0 * ts, 0 * ts, np.sin(half)], axis=1)
    gyro, turn = rj.Gyroscope("body"), rj.Attitude("body")
    # The other body is not measured.
    bodies = [rj.Body(name, 1.0, (0.5, 0.4, 0.2)) for name in ("other", "body")]
    model = rj.NullSpace(rj.System(bodies))
    bias = Parameter("bias", lambda e: e.sensors[0].bias)
    data = Measurements(
        ts,
        {gyro: rate + np.tile([0.02, -0.01, 0.03], (51, 1)), turn: attitude},
        {gyro: 1e-3, turn: 1e-3},
        mask={turn: ts > 0.4},
    )
    fit = identify(model, data, bias)
    np.testing.assert_allclose(fit.states[0].orientation[1], attitude[0], atol=1e-6)
    np.testing.assert_allclose(fit.sensors[0].bias, [0.02, -0.01, 0.03], atol=1e-6)
    (note,) = [note for note in fit.notes if "first sample" in note]
    assert (
        "first sample of the attitude of body is not at the start" in note and "0.42 s away" in note
    )
    with pytest.raises(
        ValueError, match="first sample of the attitude.* is not fitted. Give `state0`"
    ):
        identify(model, data, [bias, start_state(model, positions=False)])
