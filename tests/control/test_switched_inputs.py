"""Transitions that set inputs: stick and slip, and sampled controllers beside transitions."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj

MASS, STIFFNESS, BELT, STATIC, KINETIC = 0.5, 20.0, 0.1, 1.2, 0.7
OMEGA = np.sqrt(STIFFNESS / MASS)
# Displacements at which the block breaks loose, and about which it oscillates while it slips.
LOOSE, CENTRE = STATIC / STIFFNESS, KINETIC / STIFFNESS
SLIP = 2 * (np.pi - np.arctan((LOOSE - CENTRE) * OMEGA / BELT)) / OMEGA
STICK = 2 * (LOOSE - CENTRE) / BELT
TIMES = LOOSE / BELT + np.cumsum(np.concatenate([[0], np.tile([SLIP, STICK], 5)]))


class DryFriction(eqx.Module):
    """Friction of the belt on the block: it balances the spring, or it is kinetic friction."""

    sticks: rj.Input
    kinetic: jax.Array

    def __call__(self, t, x, v):
        return jnp.where(self.sticks(t) > 0.5, STIFFNESS * x, self.kinetic)


def make_model(kinetic):
    block = rj.Body.box("block", (0.1, 0.1, 0.1), mass=MASS)
    slide = rj.Prismatic("ground", "block", axis=(1, 0, 0), name="slide")
    spring = rj.Motor("slide", lambda t, x, v: -STIFFNESS * x)
    friction = DryFriction(rj.Input("sticks", default=1.0), kinetic)
    return rj.Relative(rj.System(block, slide, [spring, rj.Motor("slide", friction)]))


def sticks(view):
    return view.inputs["sticks"] > 0.5


def breaks_loose(t, view):
    return jnp.where(sticks(view), STATIC - STIFFNESS * view.coordinates["slide"][0], 1.0)


def sliding_speed(t, view):
    return jnp.where(sticks(view), -1.0, view.rates["slide"][0] - BELT)


def with_speed_of_belt(t, state):
    velocity = jnp.array([[BELT, 0.0, 0.0]])
    return eqx.tree_at(lambda s: s.velocity, state, velocity), {"sticks": 1.0}


TRANSITIONS = [
    rj.Transition(breaks_loose, lambda t, state: (state, {"sticks": 0.0}), name="slip"),
    rj.Transition(sliding_speed, with_speed_of_belt, direction=1, name="stick"),
]


def run(t1, kinetic=KINETIC, **options):
    model = make_model(jnp.asarray(kinetic))
    state = rj.jointed_state(model.system, {"slide": 0.0}, {"slide": BELT})
    options = {"transitions": TRANSITIONS, "max_transitions": 8, **options}
    return rj.simulate(model, state, t1, rtol=1e-12, atol=1e-12, **options)


def displacement(t):
    k = np.searchsorted(TIMES, t)
    if k == 0:
        return BELT * t
    since = t - TIMES[k - 1]
    if k % 2 == 0:
        return 2 * CENTRE - LOOSE + BELT * since
    swing = (LOOSE - CENTRE) * np.cos(OMEGA * since) + BELT / OMEGA * np.sin(OMEGA * since)
    return CENTRE + swing


def test_stick_and_slip():
    ts = np.linspace(0.0, TIMES[6] + 0.1, 41)
    sol = run(ts[-1], ts=ts)
    np.testing.assert_allclose(sol.transitions.times[:7], TIMES[:7], atol=1e-10)
    np.testing.assert_array_equal(sol.transitions.kinds, [0, 1, 0, 1, 0, 1, 0, -1])
    assert sol.transitions.names == ("slip", "stick")
    expected = [displacement(t) for t in ts]
    np.testing.assert_allclose(sol.coordinates["slide"][:, 0], expected, atol=1e-10)
    is_stuck = np.searchsorted(TIMES, ts) % 2 == 0
    np.testing.assert_array_equal(sol.inputs["sticks"], is_stuck)
    # Static friction holds exactly.
    np.testing.assert_allclose(sol.rates["slide"][is_stuck, 0], BELT, rtol=1e-14)


def test_errors():
    with pytest.raises(ValueError, match="until the first transition, because"):
        run(1.0, inputs={"sticks": lambda t, view: 1.0})
    unknown = rj.Transition(sliding_speed, lambda t, state: (state, {"stick": 1.0}))
    with pytest.raises(ValueError, match="no input called 'stick'. Did you mean 'sticks'"):
        run(1.0, transitions=[unknown])
    vector = rj.Transition(sliding_speed, lambda t, state: (state, {"sticks": jnp.ones(2)}))
    with pytest.raises(ValueError, match=r"must return shape \(\); got \(2,\)"):
        run(1.0, transitions=[vector])
    ball = rj.NullSpace(rj.System(rj.Body("ball", 0.2, (1e-4,) * 3)))
    change = rj.Transition(lambda t, view: 1.0 - t, lambda t, state: (state, {"u": 1.0}))
    with pytest.raises(ValueError, match="sets the input 'u', which the model does not have"):
        rj.simulate(ball, rj.State(), 1.0, transitions=[change])
    with pytest.raises(KeyError, match="no held input called 'sticks'"):
        rj.SystemView(ball, 0.0, ball.encode(rj.State())).inputs["sticks"]
