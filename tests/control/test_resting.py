"""Contacts that stay closed until they would pull, against closed forms and SciPy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import rigidjax as rj

G, MASS = 9.81, 0.2


class Ramp(eqx.Module):
    """A force upwards that grows at a constant rate, N/s."""

    rate: jax.Array

    def __call__(self, t):
        return jnp.stack([0 * t, 0 * t, self.rate * t])


def ball(*forces):
    body = rj.Body("ball", MASS, (1e-4,) * 3)
    return rj.System(body, forces=[rj.Gravity((0, 0, -G)), *forces])


def floor(change=None):
    change = rj.Restitution(0.5) if change is None else change
    return rj.Transition(rj.PlaneContact("ball"), change, name="floor")


def names(record):
    return [record.names[k] for k in record.kinds[: int(record.count)]]


def test_a_bouncing_ball_comes_to_rest():
    """Infinitely many impacts end at the limit of their times, from where the floor carries."""
    model, e = rj.NullSpace(ball()), 0.5

    def end(z):
        state = rj.State(position=jnp.stack([0 * z, 0 * z, z]), velocity=[0.3, 0.0, 0.0])
        sol = rj.simulate(model, state, 3.0, ts=[0.2, 2.0, 3.0], transitions=[floor()])
        last = sol.transitions.count - 1
        return jnp.append(sol.states.position[-1, 0], sol.transitions.times[last]), sol

    _, slopes, sol = jax.jvp(end, (1.0,), (1.0,), has_aux=True)
    limit = np.sqrt(2 / G) * (1 + e) / (1 - e)
    assert names(sol.transitions)[-2:] == ["floor", "floor closes"]
    np.testing.assert_allclose(sol.transitions.times[sol.transitions.count - 1], limit, rtol=1e-6)
    np.testing.assert_allclose(
        sol.states.position[1:, 0], [[0.6, 0, 0], [0.9, 0, 0]], rtol=1e-12, atol=1e-14
    )
    np.testing.assert_array_equal(sol.closed[:, 0], [False, True, True])
    np.testing.assert_allclose(sol.contact_forces["floor"], [0, MASS * G, MASS * G], rtol=1e-12)
    # Twice the derivative of the limit by the height is the limit, for a height of one metre.
    np.testing.assert_allclose(slopes, [0, 0, 0, 0.5 * limit], rtol=1e-6, atol=1e-12)


def test_a_contact_opens_where_its_reaction_would_pull():
    """A ball at rest is lifted by a growing force, with derivatives of time and position."""

    def lift(rate):
        model = rj.NullSpace(ball(rj.PointForce("ball", force=Ramp(rate))))
        sol = rj.simulate(
            model, rj.State(), 1.0, ts=[0.1, 0.4, 1.0], transitions=[floor()],
            rtol=1e-10, atol=1e-10, max_transitions=2,
        )  # fmt: skip
        return jnp.stack([sol.transitions.times[0], sol.states.position[-1, 0, 2]]), sol

    rate = jnp.array(4.0)
    opening = MASS * G / 4.0
    found, slopes, sol = jax.jvp(lift, (rate,), (jnp.ones(()),), has_aux=True)
    assert names(sol.transitions) == ["floor opens"]
    since = 1 - opening
    np.testing.assert_allclose(found, [opening, 4.0 * since**3 / (6 * MASS)], rtol=1e-11)
    np.testing.assert_allclose(
        sol.contact_forces["floor"], [MASS * G - 0.4, MASS * G - 1.6, 0], atol=1e-12
    )
    moved = (since**3 + 12.0 * since**2 * MASS * G / 16.0) / (6 * MASS)
    np.testing.assert_allclose(slopes, [-MASS * G / 16.0, moved], rtol=1e-10)


class Lift(eqx.Module):
    """Twice the weight upwards from 0.1 s on; the state is the first reading."""

    def __call__(self, t, view, state):
        reading = view.sensors[rj.Accelerometer("ball")][2]
        force = jnp.where(t > 0.05, 2 * MASS * G, 0.0) * jnp.array([0, 0, 1.0])
        return force, jnp.where(t > 0.05, state, reading)


@pytest.mark.exhaustive
def test_a_contact_opens_where_a_sampled_force_jumps():
    """The first sample reads the acceleration of the ball at rest, the second one lifts it."""
    model = rj.NullSpace(ball(rj.PointForce("ball", force=rj.Input("force", 3))))
    controller = rj.SampledController(Lift(), 0.1, 0.0)
    ts = np.array([0.05, 0.1, 0.3, 0.5])
    sol = rj.simulate(
        model, rj.State(), 0.5, ts=ts, transitions=[floor()], inputs={"force": controller},
        max_transitions=2,
    )  # fmt: skip
    assert names(sol.transitions) == ["floor opens"]
    np.testing.assert_allclose(sol.transitions.times[0], 0.1, rtol=1e-11)
    heights = 0.5 * G * np.maximum(ts - 0.1, 0.0) ** 2
    np.testing.assert_allclose(sol.states.position[:, 0, 2], heights, rtol=1e-10, atol=1e-15)
    np.testing.assert_allclose(sol.contact_forces["floor"], [MASS * G, MASS * G, 0, 0], rtol=1e-12)
    np.testing.assert_allclose(sol.ys[-1, -1], G, rtol=1e-12)


def test_a_contact_without_a_load_opens_later():
    """A body beside a stop is pulled away some time after the start."""

    def pull(t, view):
        return -jnp.maximum(t - 0.4, 0.0)

    rail = rj.Prismatic("ground", "mass", axis=(1, 0, 0), name="rail")
    motor = rj.Motor("rail", rj.Input("force"))
    model = rj.Relative(rj.System(rj.Body("mass", 2.0, (1.0,) * 3), rail, motor))
    stop = rj.Transition(rj.JointStop("rail", 0.5, "upper"), rj.Restitution(0.5), name="stop")
    sol = rj.simulate(
        model, rj.jointed_state(model.system, {"rail": 0.5}), 1.0, ts=[0.2, 1.0],
        transitions=[stop], inputs={"force": pull}, max_transitions=2,
    )  # fmt: skip
    assert names(sol.transitions) == ["stop opens"]
    np.testing.assert_allclose(sol.contact_forces["stop"], 0.0, atol=1e-12)
    np.testing.assert_allclose(sol.coordinates["rail"][:, 0], [0.5, 0.5 - 0.6**3 / 12], atol=1e-8)


ROD = rj.Body.rod("rod", 1.0, 0.02, mass=1.0)


@pytest.mark.exhaustive
def test_a_rod_slides_down_with_its_tip_on_the_floor():
    """The tip of a rod that falls over on a smooth floor presses on it until the end."""
    theta, half, inertia = 0.5, 0.5, float(np.asarray(ROD.inertia)[1])

    def rates(t, y):
        arm = half * np.sin(y[0])
        return [y[1], arm * (G - half * np.cos(y[0]) * y[1] ** 2) / (inertia + arm**2)]

    ts = np.linspace(0.1, 0.8, 5)
    path = solve_ivp(rates, (0, 0.8), [theta, 0.0], t_eval=ts, rtol=1e-11, atol=1e-12).y
    model = rj.NullSpace(rj.System(ROD, forces=rj.Gravity((0, 0, -G))))
    state = rj.State(
        position=[[0, 0, half * np.cos(theta)]],
        orientation=[[np.cos(theta / 2), 0, np.sin(theta / 2), 0]],
    )
    tip = rj.Transition(rj.PlaneContact("rod", point=(0, 0, -half)), rj.Restitution(0.3))
    sol = rj.simulate(model, state, 0.8, ts=ts, transitions=[tip], rtol=1e-10, atol=1e-10)
    assert sol.transitions.count == 0 and sol.closed.all()
    np.testing.assert_allclose(sol.states.position[:, 0, 2], half * np.cos(path[0]), atol=1e-9)
    turning = np.array([rates(0, y)[1] for y in path.T])
    force = inertia * turning / (half * np.sin(path[0]))
    np.testing.assert_allclose(sol.contact_forces["0"], force, rtol=1e-7)


@pytest.mark.exhaustive
def test_one_of_two_contacts_opens():
    """A rod lies on both ends and is lifted at a quarter of its length: one end opens."""
    flat = [[0.5**0.5, 0, 0.5**0.5, 0]]
    lift = rj.PointForce("rod", point=(0, 0, 0.25), force=Ramp(jnp.array(20.0)))
    model = rj.NullSpace(rj.System(ROD, forces=[rj.Gravity((0, 0, -G)), lift]))
    ends = [
        rj.Transition(rj.PlaneContact("rod", point=(0, 0, z)), rj.Restitution(0.3), name=name)
        for z, name in ((-0.5, "left"), (0.5, "right"))
    ]
    ts = np.array([0.1, 0.3])
    sol = rj.simulate(model, rj.State(orientation=flat), 0.4, ts=ts, transitions=ends)
    assert names(sol.transitions) == ["right opens"]
    np.testing.assert_allclose(sol.transitions.times[0], 0.5 * G / 15.0, rtol=1e-12)
    np.testing.assert_allclose(sol.contact_forces["left"], 0.5 * G - 5.0 * ts, rtol=1e-11)
    np.testing.assert_allclose(sol.contact_forces["right"], 0.5 * G - 15.0 * ts, rtol=1e-11)


def test_a_pendulum_lies_on_its_stop_and_bears_on_its_hinge():
    """The moment of the stop, and the reaction of the hinge as that of a pendulum at rest."""
    rod = rj.Body.rod("rod", 1.0, 0.02, mass=1.0, position=(0.5, 0, 0),
                      orientation=(0.5**0.5, 0, 0.5**0.5, 0))  # fmt: skip
    hinge = rj.Revolute("ground", "rod", (0, 0, 0), axis=(0, 1, 0), name="hinge")
    system = rj.System(rod, hinge, rj.Gravity((0, 0, -G)))
    stop = rj.Transition(rj.JointStop("hinge", 0.3, "upper"), rj.Restitution(0.7), name="stop")
    start = rj.jointed_state(system, {"hinge": 0.3})
    sol = rj.simulate(rj.NullSpace(system), start, 0.3, ts=[0.1, 0.3], transitions=[stop])
    np.testing.assert_allclose(sol.coordinates["hinge"][:, 0], 0.3, atol=1e-12)
    moment = 0.5 * G * np.cos(0.3)
    np.testing.assert_allclose(sol.contact_forces["stop"], moment, rtol=1e-12)
    reactions = sol._along(lambda model, t, y: model.reactions(t, y)["hinge"].force)
    np.testing.assert_allclose(reactions, [[0, 0, G]] * 2, atol=1e-10)


@pytest.mark.parametrize("case", ["function", "friction"])
def test_a_contact_that_cannot_rest_is_an_error(case):
    """The run ends by name where a body at rest would pass through a surface."""
    item, model = floor(rj.Restitution(0.5, friction=0.3)), rj.NullSpace(ball())
    if case == "function":
        item = rj.Transition(
            lambda t, view: view.state.position[0, 2],
            lambda t, s: eqx.tree_at(lambda s: s.velocity, s, -0.5 * s.velocity),
        )

    def drop(t, state):
        return eqx.tree_at(lambda s: (s.position, s.velocity), state, (0 * state.position,) * 2)

    clock = rj.Transition(lambda t, view: 0.1 - t, drop, name="drop")
    lying, above = (
        rj.simulate(
            model, rj.State(position=[[0, 0, z]]), 1.0, transitions=[item, clock], throw=False,
            max_transitions=4,
        ) for z in (0.0, 2.0)
    )  # fmt: skip
    assert lying.result == rj.RESULTS.transition_at_start
    assert above.result == rj.RESULTS.contact_persists
    np.testing.assert_allclose(above.transitions.times[0], 0.1, rtol=1e-12)
