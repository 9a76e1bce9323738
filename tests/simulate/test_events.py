"""Where events and limits of steps end runs, whatever is saved; summaries."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
import pytest

import rigidjax as rj

GRAVITY = 9.81
BALL = rj.System(rj.Body("ball", 0.2, (1e-4,) * 3), forces=rj.Gravity((0, 0, -GRAVITY)))
MODEL = rj.NullSpace(BALL)


def height(t, y, args, **kwargs):
    return MODEL.decode(t, y).position[0, 2]


TOUCH = diffrax.Event(height, optx.Newton(1e-12, 1e-12))


def drop_body(z, **options):
    state = rj.State(position=jnp.array([0.0, 0.0, 1.0]) * z)
    return rj.simulate(MODEL, state, 0.6, event=TOUCH, **options)


@pytest.mark.parametrize("ts", [None, [0.1, 0.2, 0.6]])
def test_event_time_and_state_do_not_depend_on_saveat(ts):
    sol = eqx.filter_jit(drop_body)(1.0, ts=ts)
    fall = np.sqrt(2 / GRAVITY)
    np.testing.assert_allclose(sol.event_time, fall, rtol=1e-9)
    np.testing.assert_allclose(sol.event_state.position[0], 0.0, atol=1e-9)
    np.testing.assert_allclose(sol.event_state.velocity[0, 2], -GRAVITY * fall, rtol=1e-9)
    assert sol.ts.shape == (1 if ts is None else 3,)
    data = sol.to_xarray()
    np.testing.assert_array_equal(data.event_time, sol.event_time)
    np.testing.assert_array_equal(data.event_velocity, sol.event_state.velocity)


def test_runs_without_events():
    sol = rj.simulate(MODEL, rj.State(), 0.1)
    assert sol.event_time is None and sol.event_state is None
    assert "event_time" not in sol.to_xarray()


def test_boolean_condition_ends_at_the_end_of_the_step():
    event = diffrax.Event(lambda t, y, args, **kwargs: height(t, y, args) < 0)
    state = rj.State(position=[0.0, 0.0, 1.0])
    sol = rj.simulate(MODEL, state, 0.6, event=event, dt=0.05, solver=diffrax.Dopri5())
    np.testing.assert_allclose(sol.event_time, 0.5, rtol=1e-12)
    np.testing.assert_allclose(sol.event_state.position[0, 2], 1 - 0.125 * GRAVITY, rtol=1e-9)


def test_state_at_an_event_satisfies_the_joints():
    rod = rj.Body("rod", 1.3, (1e-2, 0.05, 0.06), (0.4, 0, 0))
    hinge = rj.Revolute("ground", "rod", (0, 0, 0), axis=(0, 1, 0), name="h")
    system = rj.System(rod, hinge, [rj.Gravity((0, 0, -GRAVITY))])
    model = rj.NullSpace(system)
    crossing = diffrax.Event(
        lambda t, y, args, **kwargs: model.decode(t, y).position[0, 0], optx.Newton(1e-10, 1e-10)
    )
    start = system.reference_state()
    options = {"event": crossing, "rtol": 1e-4, "atol": 1e-4, "ts": [0.1]}
    sol = rj.simulate(model, start, 2.0, **options)
    assert model.drift(sol.event_time, sol.event_y)[0] < 1e-12
    # Released from the horizontal, the rod passes its lowest point with the energy of the fall.
    speed = np.sqrt(2 * 1.3 * GRAVITY * 0.4 / (0.05 + 1.3 * 0.16))
    np.testing.assert_allclose(sol.event_state.angular_velocity[0, 1], speed, rtol=1e-3)


def test_summaries_have_at_most_twelve_lines():
    bodies = [rj.Body(f"body {k}", 1.0, (1.0, 1.0, 1.0), (k, 0, 0)) for k in range(30)]
    hinges = [
        rj.Revolute(f"body {k}", f"body {k + 1}", (k, 0, 0), (0, 0, 1), name=f"h{k}")
        for k in range(29)
    ]
    system = rj.System(bodies, hinges)
    model = rj.Relative(system)
    state = system.reference_state()
    many = jax.tree.map(lambda x: jnp.stack([x, x]), state)
    sol = jax.vmap(lambda z: drop_body(z, ts=[0.1, 0.5]))(jnp.array([1.0, 5.0]))
    shapes = jax.tree.map(lambda x: 0, (state, sol, model))
    for item in (system, model, state, many, sol, *shapes):
        assert len(repr(item).splitlines()) <= 12
    assert "System with 30 bodies, 29 joints" in repr(system)
    assert "... and 21 more lines" in repr(system) and len(system.draw().splitlines()) == 31
    expected = "Relative(rotation=Quaternion(), recharting=False) of System with 30 bodies"
    assert repr(model).startswith(expected) and repr(model).endswith("; 71 unknowns")
    assert "State of 30 bodies" in repr(state) and "[2., 0., 0.]], ..." in repr(state)
    assert "batch (2,)" in repr(many)
    text = repr(sol)
    assert "1 successful, 1 event_occurred" in text and "batch (2,), 2 from 0.1 to 0.5 s" in text
    assert "1 not reached" in text
    jax.eval_shape(lambda s, x: (repr(s), repr(x), 0)[2], state, sol)


def test_step_limit_message_has_the_time_reached():
    """A stiff spring: 20 steps of fixed length lead to t = 0.2 s."""
    spring = rj.Spring("ground", "ball", (0, 0, 1), (0, 0, 0), stiffness=1e5)
    model = rj.NullSpace(rj.System(BALL.bodies, forces=[spring]))
    options = {"dt": 0.01, "solver": diffrax.Dopri5(), "max_steps": 20}
    message = (
        r"maximum number of solver steps was reached.*stiff.*Radau5.*sign\(rate\).*tanh.*rotor.*"
        r"Relative.*t = 0.2 s of 1 s in 20 accepted and 0 rejected steps; the last step took 0.01 s"
    )
    with pytest.raises(rj.SimulationError, match=message):
        rj.simulate(model, rj.State(), 1.0, ts=[0.5, 1.0], **options)
    with pytest.raises(rj.SimulationError, match=r"reached t = 0.0\d* s of 1 s in \d+ accepted"):
        rj.simulate(model, rj.State(position=[0.0, 0.0, 0.3]), 1.0, max_steps=20)
    sol = rj.simulate(model, rj.State(), 1.0, throw=False, **options)
    assert sol.result == rj.RESULTS.max_steps_reached and sol.stats["num_steps"] == 20
    assert "Radau5" in rj.RESULTS[sol.result]
