"""Hybrid runs: times, states, samples and derivatives of transitions, and how they end."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix
import pytest

import rigidjax as rj

G = 9.81
BALL = rj.NullSpace(rj.System(rj.Body("ball", 0.2, (1e-4,) * 3), forces=rj.Gravity((0, 0, -G))))
FALL, E = np.sqrt(2 / G), 0.8
# Times of the impacts of a ball that falls from one metre.
IMPACTS = FALL * (1 + 2 * np.cumsum(np.concatenate([[0], E ** np.arange(1, 30)])))


def height(t, view):
    return view.state.position[0, 2]


def reversed_speed(factor):
    def change(t, state):
        factors = jnp.stack([1.0, 1.0, -factor])
        return eqx.tree_at(lambda s: s.velocity, state, factors * state.velocity)

    return change


FLOOR = rj.Transition(height, reversed_speed(E), name="floor")


def start(z=1.0, speed=0.0):
    return rj.State(position=jnp.stack([0 * z, 0 * z, z]), velocity=jnp.array([0.0, 0.0, speed]))


def flight(z=1.0, speed=0.0, t1=4.0, transitions=(FLOOR,), max_transitions=30, **options):
    return rj.simulate(
        BALL, start(z, speed), t1, transitions=transitions, max_transitions=max_transitions,
        **options,
    )  # fmt: skip


def test_twenty_impacts_of_a_ball():
    ts = jnp.array([0.3, 0.8, 2.0, 3.9])
    sol = flight(t1=4.02, ts=ts)
    record = sol.transitions
    assert record.count == 20 and record.names == ("floor",)
    np.testing.assert_allclose(record.times[:20], IMPACTS[:20], rtol=1e-13)
    assert np.isinf(record.times[20:]).all() and np.isinf(record.before.position[20:]).all()
    np.testing.assert_array_equal(record.kinds, np.where(np.arange(30) < 20, 0, -1))
    speeds = G * FALL * E ** np.arange(20)
    np.testing.assert_allclose(record.before.velocity[:20, 0, 2], -speeds, rtol=1e-11)
    np.testing.assert_allclose(record.after.velocity[:20, 0, 2], E * speeds, rtol=1e-11)
    np.testing.assert_allclose(record.after.position[:20, 0, 2], 0.0, atol=1e-13)
    # Samples of all segments: parabolas between impacts.
    k = np.searchsorted(IMPACTS, ts) - 1
    since = np.where(k < 0, ts, ts - IMPACTS[k])
    expected = np.where(k < 0, 1.0, G * FALL * E ** (k + 1.0) * since) - 0.5 * G * since**2
    np.testing.assert_array_equal(sol.ts, ts)
    np.testing.assert_allclose(sol.states.position[:, 0, 2], expected, atol=1e-12)
    assert sol.stats["num_steps"] < 150
    data = sol.to_xarray()
    np.testing.assert_array_equal(data.transition_time[:20], record.times[:20])
    assert np.isnan(data.transition_time[20:]).all() and data.transition_kind.dims == (
        "transition",
    )


def test_an_event_ends_the_run(capsys):
    """A ball rises through a level after the first impact; the other event would come later."""

    def rise(factor, **options):
        functions = {"late": lambda t, y, args: t - args, "level": lambda t, y, args: y[2] - 0.3}
        event = diffrax.Event(
            functions, optimistix.Newton(1e-10, 1e-10), {"late": None, "level": True}
        )
        transitions = [rj.Transition(height, reversed_speed(factor), name="floor")]
        return flight(transitions=transitions, event=event, args=2.0, max_transitions=1, **options)

    def closed_form(factor):
        speed = factor * G * FALL
        return FALL + (speed - jnp.sqrt(speed**2 - 2 * G * 0.3)) / G

    sol = rise(E, progress=True, ts=jnp.array([0.5, 3.0]))
    assert sol.result == rj.RESULTS.event_occurred and capsys.readouterr().out.endswith("100.00%\n")
    assert not sol.event_mask["late"] and sol.event_mask["level"]
    np.testing.assert_array_equal(sol.ts, [0.5, np.inf])
    assert sol.transitions.count == 1 and sol.transitions.names == ("floor",)
    time, rate = jax.value_and_grad(lambda factor: rise(factor).ts[-1])(E)
    np.testing.assert_allclose(time, closed_form(E), rtol=1e-12)
    np.testing.assert_allclose(rate, jax.grad(closed_form)(E), rtol=1e-9)
    np.testing.assert_allclose(sol.event_state.position[0, 2], 0.3, rtol=1e-12)


def test_transitions_of_failed_runs():
    """They are no results: NaN in an ensemble, an error in a compiled function. Members with fewer
    transitions than others have not failed."""

    def run(p):
        record = flight(p["z"], t1=2.0, max_transitions=3).transitions
        return {"times": record.times, "speeds": record.after.velocity[:, 0, 2]}

    heights = np.array([0.3, 1.0, 5.0])
    ensemble = rj.ensemble(run, {"z": heights}, progress=False)
    assert list(ensemble.result) == ["max_transitions_reached", "successful", "successful"]
    assert np.isnan(ensemble.outputs["times"][0]).all()
    np.testing.assert_allclose(ensemble.outputs["times"][1], IMPACTS[:3], rtol=1e-12)
    speed = E * np.sqrt(10.0 * G)
    np.testing.assert_allclose(ensemble.outputs["speeds"][2], [speed, np.inf, np.inf], rtol=1e-12)
    with pytest.raises(Exception, match="max_transitions"):
        jax.jit(lambda z: run({"z": z}))(0.3)


def test_both_crossings_within_one_step():
    """A long step of free flight touches the ceiling; a start on the floor is no impact."""
    speed = 6.0
    top = speed**2 / (2 * G)
    ceiling = rj.Transition(
        lambda t, view: top * (1 - 1e-4) - view.state.position[0, 2], reversed_speed(1.0)
    )
    sol = flight(0.0, speed, 1.3, [ceiling, FLOOR])
    before = np.sqrt(2 * G * top * 1e-4)
    np.testing.assert_allclose(sol.transitions.times[0], (speed - before) / G, rtol=1e-11)
    np.testing.assert_array_equal(sol.transitions.kinds[:3], [0, 1, -1])
    np.testing.assert_allclose(sol.transitions.times[1], 2 * (speed - before) / G, rtol=1e-11)


def test_simultaneous_transitions_act_in_their_order():
    """In a corner both walls reverse the ball, each from the state that the other leaves."""

    def wall(axis):
        def change(t, state):
            return eqx.tree_at(
                lambda s: s.velocity, state, state.velocity.at[0, axis].multiply(-0.5)
            )

        return rj.Transition(lambda t, view: 1.0 - view.state.position[0, axis], change)

    free = rj.NullSpace(rj.System(rj.Body("ball", 0.2, (1e-4,) * 3)))
    state = rj.State(velocity=jnp.array([1.0, 1.0, 0.0]))
    # The third one is due no more, because the second has turned the ball round.
    sol = rj.simulate(free, state, 2.0, transitions=[wall(0), wall(1), wall(1)], max_transitions=4)
    np.testing.assert_array_equal(sol.transitions.kinds, [0, 1, -1, -1])
    np.testing.assert_allclose(sol.transitions.times[:2], 1.0, rtol=1e-13)
    np.testing.assert_allclose(sol.states.position[0, 0], [0.5, 0.5, 0.0], atol=1e-13)


def test_each_transition_acts_once_at_an_instant():
    """Clocks that agree act in their order, and a transition that another one has undone does not
    act."""

    def kick(axis, speed):
        def change(t, state):
            return eqx.tree_at(lambda s: s.velocity, state, state.velocity.at[0, axis].add(speed))

        return rj.Transition(lambda t, view: 1.0 - t, change, name=f"kick {axis}")

    free = rj.NullSpace(rj.System([rj.Body("ball", 0.2, (1e-4,) * 3)]))
    kicks = [kick(0, 1.0), kick(1, 2.0), kick(2, 3.0)]
    sol = rj.simulate(free, rj.State(), 2.0, transitions=kicks, max_transitions=6)
    np.testing.assert_array_equal(sol.transitions.kinds, [0, 1, 2, -1, -1, -1])
    np.testing.assert_allclose(sol.states.position[0, 0], [1.0, 2.0, 3.0], rtol=1e-12)

    def lift(t, state):
        return eqx.tree_at(lambda s: s.position, state, state.position.at[0, 2].set(5.0))

    fall = 1.0 * FALL
    clock = rj.Transition(lambda t, view: fall - t, lift, name="lift")
    sol = flight(t1=0.6, transitions=[clock, FLOOR], max_transitions=4)
    np.testing.assert_array_equal(sol.transitions.kinds, [0, -1, -1, -1])
    s = 0.6 - fall
    height_at_end = 5.0 - G * fall * s - 0.5 * G * s**2
    np.testing.assert_allclose(sol.states.position[0, 0, 2], height_at_end, rtol=1e-11)
    # In the other order the floor acts before the ball is lifted.
    sol = flight(t1=0.6, transitions=[FLOOR, clock], max_transitions=4)
    np.testing.assert_array_equal(sol.transitions.kinds, [0, 1, -1, -1])


def test_named_results():
    sol = flight(t1=5.0, max_transitions=200, throw=False)
    assert sol.result == rj.RESULTS.transitions_accumulate
    # The impacts accumulate at this time.
    np.testing.assert_allclose(
        sol.transitions.times[sol.transitions.count - 1], FALL * (1 + E) / (1 - E), rtol=1e-7
    )
    long = rj.Transition(
        height, lambda t, s: eqx.tree_at(lambda s: s.orientation, s, 2.0 * s.orientation)
    )
    sol = flight(t1=0.6, transitions=[long], max_transitions=3, throw=False)
    assert sol.result == rj.RESULTS.inadmissible_change
    with pytest.raises(rj.SimulationError, match="raise it"):
        flight(t1=3.0, max_transitions=3)


def test_arguments():
    with pytest.raises(TypeError, match="takes a function `when"):
        rj.Transition(1.0, reversed_speed(E))
    with pytest.raises(TypeError, match="or a law such as"):
        rj.Transition(height, 0.8)
    with pytest.raises(ValueError, match="must be -1"):
        rj.Transition(height, reversed_speed(E), 2)
    with pytest.raises(TypeError, match="must be a string"):
        rj.Transition(height, reversed_speed(E), name=1)
    with pytest.raises(TypeError, match="takes a list of"):
        flight(transitions=FLOOR)
    with pytest.raises(ValueError, match="more than once"):
        flight(transitions=[FLOOR, FLOOR])
    with pytest.raises(ValueError, match="positive integer"):
        flight(max_transitions=0)
    with pytest.raises(ValueError, match="needs a root finder in a run with transitions"):
        flight(event=diffrax.Event(lambda t, y, args, **kwargs: y[2]))
    for name in ("dense", "steps", "solver_state"):
        with pytest.raises(ValueError, match=rf"SaveAt\({name}=...\)"):
            flight(saveat=diffrax.SaveAt(t1=True, **{name: True}))
    switch = rj.Transition(lambda t, view: 1.0 if t > 0.5 else -1.0, reversed_speed(E), name="a")
    with pytest.raises(TypeError, match="name='a'.* needs known numbers, but JAX traces it"):
        flight(transitions=[switch])
    vector = rj.Transition(lambda t, view: view.state.position[0], reversed_speed(E))
    with pytest.raises(ValueError, match=r"real scalar .* got shape \(3,\)"):
        flight(transitions=[vector])
    with pytest.raises(TypeError, match="transition 'a' must return a `State`"):
        flight(transitions=[rj.Transition(height, lambda t, state: None, name="a")])
    two = rj.Transition(height, lambda t, state: rj.State(jnp.zeros((2, 3))))
    with pytest.raises(ValueError, match="of 1 bodies; got 2"):
        flight(transitions=[two])
