"""Joints that stick and slip exactly, against closed forms."""

import diffrax
import numpy as np
import pytest
from control.test_switched_inputs import BELT, KINETIC, MASS, STATIC, STIFFNESS, TIMES, displacement

import rigidjax as rj

X = (1.0, 0.0, 0.0)
TIGHT = {"rtol": 1e-12, "atol": 1e-12}


def box(name, mass=MASS):
    return rj.Body.box(name, (0.1, 0.1, 0.1), mass=mass)


def test_block_on_a_belt_sticks_and_slips():
    """Friction drops from its level at rest to that in motion when the block slips."""
    friction = rj.Friction(KINETIC, stribeck=(STATIC, 0.0), sticking=True)
    joints = [
        rj.Prismatic("ground", "belt", axis=X, motion=lambda t: BELT * t),
        rj.Prismatic("belt", "block", axis=X, name="slide", friction=friction),
    ]
    spring = rj.Spring("ground", "block", (-5, 0, 0), (0, 0, 0), stiffness=STIFFNESS, length=5.0)
    model = rj.Relative(rj.System([box("belt"), box("block")], joints, spring))
    ts = np.linspace(0.0, TIMES[6] + 0.1, 41)
    sol = rj.simulate(model, rj.jointed_state(model.system, {}), ts[-1], ts=ts, **TIGHT)
    np.testing.assert_allclose(sol.transitions.times[:7], TIMES[:7], atol=1e-9)
    record = sol.transitions
    names = [record.names[k] for k in record.kinds[: record.count]]
    assert names == [*["slide slips", "slide sticks"] * 3, "slide slips"]
    exact = [displacement(t) for t in ts]
    np.testing.assert_allclose(sol.states.position[:, 1, 0], exact, atol=1e-9)
    sticks = np.searchsorted(TIMES, ts) % 2 == 0
    np.testing.assert_array_equal(sol.rates["slide"][sticks, 0], 0.0)


def test_errors():
    with pytest.raises(TypeError, match="must be True or False; got 1"):
        rj.Friction(0.3, sticking=1)
    with pytest.raises(ValueError, match="must be positive"):
        rj.Friction(0.3, stribeck=(0.4, 0.0))
    friction = rj.Friction(0.3, sticking=True)
    slide = rj.Prismatic("ground", "block", axis=X, name="slide", friction=friction)
    system = rj.System(box("block"), slide)
    state = system.reference_state()
    with pytest.raises(ValueError, match="`NullSpace` and `Relative`; got `Absolute`"):
        rj.simulate(rj.Absolute(system), state, 1.0)
    model = rj.Relative(system)
    with pytest.raises(ValueError, match="only `rj.simulate` knows whether the joint sticks"):
        model.vector_field(0.0, model.encode(state))
    with pytest.raises(ValueError, match="only `rj.simulate` knows whether the joint sticks"):
        rj.linearize(model, 0.0, state)
    with pytest.raises(ValueError, match="only `rj.simulate` knows whether the joint sticks"):
        rj.Stepper(model, 0.1).init(state)
    with pytest.raises(ValueError, match="needs a root finder"):
        event = diffrax.Event(lambda t, y, args, **kwargs: y[0])
        rj.simulate(model, state, 1.0, event=event)
    with pytest.raises(ValueError, match="does not integrate"):
        rj.simulate(model, state, 1.0, dt=0.1, solver=rj.solvers.EnergyMomentum())
    taken = rj.System(box("block"), slide, rj.Motor("slide", rj.Input("slide.sliding")))
    with pytest.raises(ValueError, match="an input called 'slide.sliding'"):
        rj.simulate(rj.Relative(taken), state, 1.0)
    driven = rj.Prismatic(
        "ground", "block", axis=X, name="slide", motion=lambda t: t, friction=friction
    )
    system = rj.System(box("block"), driven)
    with pytest.raises(ValueError, match="motion of the joint 'slide' is prescribed"):
        rj.simulate(rj.Relative(system), rj.jointed_state(system, {}), 1.0)
