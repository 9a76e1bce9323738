"""Start states of systems with joints as parameters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.identification import Measurements, Parameter, Positive, identify, start_state
from rigidjax.identification.data.measurements import stack_runs
from rigidjax.identification.starts.first_samples import first_samples, first_valid_values
from rigidjax.initial.local_coordinates import independent_rates, retract, selection

CRANK = "revolute ground-crank"


def coordinate(name):
    """Coordinate and rate of a joint as functions of a state."""
    sensors = (rj.JointCoordinate(name), rj.JointRate(name))

    def read(model, state):
        y = model.pack(state)
        return jnp.stack([s.predict(model, jnp.zeros(()), y) for s in sensors])

    return read


@pytest.fixture(scope="module")
def four_bar():
    problem = rj.problems.four_bar()
    return rj.NullSpace(problem.system), problem.state0


@pytest.fixture(scope="module")
def displace_start(four_bar):
    """Compiled displacement of the four-bar by changes of the crank's angle and rate."""
    model, state = four_bar
    directions = selection(independent_rates(model, state), 3)

    def function(change):
        return retract(model, state, jnp.zeros(()), directions, change[:1], change[1:])

    return jax.jit(function)


@pytest.mark.exhaustive
def test_retraction_onto_a_loop(four_bar, displace_start):
    """The crank moves by the requested change, the loop is closed, and a zero change has no
    effect.
    """
    model, state = four_bar
    change = jnp.array([0.7, 1.5])
    new, okay = displace_start(change)
    assert okay
    assert np.max(np.asarray(model.drift(0.0, model.encode(new)))) < 1e-14
    read = jax.jit(lambda s: coordinate(CRANK)(model, s))
    # A Runge-Kutta step of 1/8 of 0.7 rad is off by (0.7/16)^5/60.
    np.testing.assert_allclose(read(new) - read(state), change, atol=3e-7)
    same, _ = displace_start(jnp.zeros(2))
    for name in ("position", "orientation", "velocity", "angular_velocity"):
        np.testing.assert_allclose(getattr(same, name), getattr(state, name), atol=1e-13)


def test_unclosable_loop_fails():
    """A rocker beyond its workspace fails by its flag, and is not moved."""
    problem = rj.problems.four_bar()
    model, state = rj.NullSpace(problem.system), problem.state0
    far, okay = jax.jit(
        lambda c: retract(model, state, jnp.zeros(()), selection((2,), 3), c, 0 * c)
    )(jnp.array([2.0]))
    assert not okay
    np.testing.assert_array_equal(far.position, state.position)


def readings(model, state, sensors, ts, displace_start=None):
    """Exact readings from a start that is moved by a change of the generalised velocities."""
    if displace_start is not None:
        count = len(displace_start) // 2
        directions = selection(independent_rates(model, state), len(displace_start) // 2)
        change = jnp.asarray(displace_start)
        state, _ = jax.jit(retract)(
            model, state, jnp.zeros(()), directions, change[:count], change[count:]
        )
    solution = rj.simulate(model, state, ts[-1], ts=ts, rtol=1e-11, atol=1e-11)
    read = jax.jit(jax.vmap(lambda t, y: tuple(s.predict(model, t, y) for s in sensors)))
    return state, dict(zip(sensors, read(solution.ts, solution.ys), strict=True))


def mass_of(experiment):
    return experiment.model.system.bodies[2].mass


@pytest.mark.exhaustive
def test_initial_state_of_a_loop_is_fitted(four_bar, displace_start):
    """Start of a closed loop and a mass in it, from one encoder."""
    model, state = four_bar
    true, _ = displace_start(jnp.array([0.3, 1.5]))
    sensors = (rj.JointCoordinate("revolute ground-rocker"),)
    ts = np.linspace(0.0, 0.5, 26)
    _, values = readings(model, true, sensors, ts)
    start = start_state(model)
    assert start.labels == (
        f"start: change of angle of {CRANK}",
        f"start: change of rate of angle of {CRANK}",
    )
    heavier = Parameter("mass", mass_of, Positive(), start=1.0, unit="kg")
    fit = identify(
        model,
        Measurements(ts, values, {sensors[0]: 1e-3}),
        [start, heavier],
        state0=state,
        horizons=(1.0,),
    )
    assert fit.converged and fit.identifiability.identifiable
    assert fit.units == ("kg", "rad", "rad/s")
    np.testing.assert_allclose(fit.values, [0.7, 0.3, 1.5], rtol=1e-6)
    np.testing.assert_allclose(fit.states[0].orientation, true.orientation, atol=1e-7)
    np.testing.assert_allclose(fit.states[0].angular_velocity, true.angular_velocity, atol=1e-5)


@pytest.mark.exhaustive
def test_initial_state_of_a_free_body_is_fitted():
    """All of the start of a tossed body, in absolute coordinates."""
    body = rj.Body("brick", 1.2, (0.02, 0.03, 0.04))
    model = rj.Absolute(rj.System(body, forces=rj.Gravity((0.0, 0.0, -9.81))))
    sensors = (rj.Position(), rj.Attitude())
    change = [0.1, -0.2, 0.3, 0.4, -0.5, 0.6, 1.0, 2.0, 3.0, -2.0, 1.5, 4.0]
    ts = np.linspace(0.0, 0.4, 9)
    state = model.system.reference_state()
    true, values = readings(model, state, sensors, ts, change)
    fit = identify(
        model,
        Measurements(ts, values, {s: 1e-3 for s in sensors}, name="toss"),
        start_state(model),
        state0=state,
        horizons=(1.0,),
    )
    assert fit.converged and fit.identifiability.identifiable
    assert fit.labels[3] == "start: change of phi1 of brick[toss]"
    np.testing.assert_allclose(fit.values, change, atol=1e-6)
    np.testing.assert_allclose(fit.states[0].angular_velocity, true.angular_velocity, atol=1e-6)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda m: start_state(m, positions=False, rates=False), "needs `positions=True`"),
        (lambda m: start_state(m.system), "takes a formulation such as"),
        (lambda m: start_state(welded_plate()), "leave no degree of freedom"),
    ],
)
def test_invalid_arguments_raise(four_bar, call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call(four_bar[0])


def welded_plate():
    body = rj.Body("plate", 1.0, (0.1, 0.1, 0.1))
    return rj.NullSpace(rj.System(body, [rj.Weld("ground", "plate")]))


def test_initial_state_of_another_system_raises(four_bar):
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


@pytest.mark.exhaustive
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
