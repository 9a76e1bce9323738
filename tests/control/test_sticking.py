"""Joints that stick and slip exactly, against closed forms."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from control.test_switched_inputs import BELT, KINETIC, MASS, STATIC, STIFFNESS, TIMES, displacement

import rigidjax as rj

X, Z = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)
TIGHT = {"rtol": 1e-12, "atol": 1e-12}
LEVEL, START = 0.7, 0.5
HALF_SWING = np.pi * np.sqrt(MASS / STIFFNESS)


def names_of(record):
    return [record.names[k] for k in record.kinds[: record.count]]


def box(name, mass=MASS):
    return rj.Body.box(name, (0.1, 0.1, 0.1), mass=mass)


def swing(level=LEVEL, start=START, ts=(2.3, 6.0), **options):
    """A block on a spring, released at `start` on a surface with dry friction."""
    friction = rj.Friction(level, sticking=True)
    slide = rj.Prismatic(
        "ground", "block", axis=X, name="slide", stiffness=STIFFNESS, friction=friction
    )
    model = rj.Relative(rj.System(box("block"), slide))
    state = rj.jointed_state(model.system, {"slide": start})
    options = {"max_transitions": 20, **TIGHT, **options}
    return rj.simulate(model, state, ts[-1], ts=ts, **options)


def turning_points(level=LEVEL, start=START):
    """Displacements at the ends of the half swings; the last one lies within the dead zone."""
    dead, points = level / STIFFNESS, [start]
    while abs(points[-1]) > dead:
        points.append(2 * dead * jnp.sign(points[-1]) - points[-1])
    return points


def position(t, level=LEVEL, start=START):
    """The half swings are harmonic about the centres at plus and minus the dead zone."""
    points, k = turning_points(level, start), int(t // HALF_SWING)
    if k >= len(points) - 1:
        return points[-1]
    centre = level / STIFFNESS * jnp.sign(points[k])
    return centre + (points[k] - centre) * jnp.cos(np.pi * (t / HALF_SWING - k))


@pytest.mark.exhaustive
def test_block_on_a_spring_comes_to_rest_after_half_swings():
    ts = np.linspace(0.0, 6.0, 61)
    sol, points = swing(ts=ts), turning_points()
    count = len(points) - 1
    assert count == 7 and sol.transitions.names == ("slide slips", "slide sticks")
    # It sticks for no time at the ends of the first six half swings.
    assert names_of(sol.transitions) == ["slide slips", "slide sticks"] * count
    times = sol.transitions.times[: 2 * count]
    np.testing.assert_allclose(times[::2], HALF_SWING * np.arange(count), atol=1e-11)
    np.testing.assert_allclose(times[1::2], HALF_SWING * np.arange(1, count + 1), atol=1e-11)
    exact = np.array([position(t) for t in ts])
    np.testing.assert_allclose(sol.coordinates["slide"][:, 0], exact, atol=1e-10)
    resting = ts > HALF_SWING * count
    assert resting.sum() > 20
    np.testing.assert_array_equal(sol.rates["slide"][resting], 0.0)
    swings = np.where(resting | (ts == 0), 0.0, np.sign(np.cos(np.pi * (ts // HALF_SWING))))
    np.testing.assert_array_equal(sol.inputs["slide.sliding"], -swings)
    assert "slide.sliding" in sol.to_xarray().unknown


def values(level, start):
    return swing(level, start).coordinates["slide"][:, 0]


def exact_values(level, start):
    return jnp.stack([position(2.3, level, start), position(6.0, level, start)])


@pytest.mark.exhaustive
def test_derivatives_through_turning_points():
    at, along = (jnp.array(LEVEL), jnp.array(START)), (1.0, 0.3)
    value, slope = jax.jvp(values, at, along)
    exact, exact_slope = jax.jvp(exact_values, at, along)
    np.testing.assert_allclose(value, exact, atol=1e-10)
    np.testing.assert_allclose(slope, exact_slope, atol=1e-9)


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
    assert names_of(sol.transitions) == [*["slide slips", "slide sticks"] * 3, "slide slips"]
    exact = [displacement(t) for t in ts]
    np.testing.assert_allclose(sol.states.position[:, 1, 0], exact, atol=1e-9)
    sticks = np.searchsorted(TIMES, ts) % 2 == 0
    np.testing.assert_array_equal(sol.rates["slide"][sticks, 0], 0.0)


MASSES, PULL, END = (2.0, 1.0), 1.5, 4.0


def pull(t):
    return PULL * t * jnp.array(X)


def pull_stack(lower, upper):
    """A force that grows pulls the lower of two blocks on one another.

    **Arguments:** levels of friction in motion and at rest of `lower` on the ground, and of
    `upper` on the lower one.
    """
    joints = [
        rj.Prismatic(
            parent, child, axis=X, name=child,
            friction=rj.Friction(level, stribeck=(static, 0.0), sticking=True),
        )
        for parent, child, (level, static) in (
            ("ground", "lower", lower), ("lower", "upper", upper)
        )
    ]  # fmt: skip
    force = rj.PointForce("lower", force=pull)
    bodies = [box("lower", MASSES[0]), box("upper", MASSES[1])]
    model = rj.Relative(rj.System(bodies, joints, force))
    return rj.simulate(model, model.system.reference_state(), END, **TIGHT)


@pytest.mark.exhaustive(but=("True",))
@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.exhaustive
def test_blocks_on_one_another_slip(at_once):
    """The upper one follows the lower until its inertia exceeds friction, which may be at once."""
    lower, upper = ((0.2, 1.8), (0.1, 0.4)) if at_once else ((1.0, 1.0), (0.3, 0.3))
    sol = pull_stack(lower, upper)
    first, both = lower[1] / PULL, sum(MASSES)
    second = (lower[0] + both / MASSES[1] * upper[1]) / PULL
    assert (second < first) == at_once
    second = max(first, second)
    assert names_of(sol.transitions) == ["lower slips", "upper slips"]
    np.testing.assert_allclose(sol.transitions.times[:2], [first, second], rtol=1e-12)
    together = uniform_jerk(second, first, PULL, lower[0], both)
    lag = uniform_jerk(END, second, PULL, lower[0] + upper[0], MASSES[0], *together)
    follow = uniform_jerk(END, second, 0.0, -upper[0], MASSES[1], *together)
    np.testing.assert_allclose(sol.states.position[-1, :, 0], [lag[0], follow[0]], rtol=1e-11)


def uniform_jerk(t, start, force, friction, mass, x=0.0, v=0.0):
    """Position and speed under a force that grows, less friction, from `start` on."""
    s, a, jerk = t - start, (force * start - friction) / mass, force / mass
    return x + v * s + a * s**2 / 2 + jerk * s**3 / 6, v + a * s + jerk * s**2 / 2


@pytest.mark.exhaustive
def test_geared_joints_share_their_load():
    levels, ratio, inertias = (0.5, 0.2), 3.0, (0.3, 0.05)
    names = ("one", "two")
    joints = [
        rj.Revolute(
            "ground", name, (k, 0, 0), Z, name=name,
            friction=rj.Friction(levels[k], sticking=True),
        )
        for k, name in enumerate(names)
    ]  # fmt: skip
    bodies = [rj.Body(names[k], 1.0, (0.4, 0.4, inertias[k]), (k, 0, 0)) for k in (0, 1)]
    gear = rj.Coupling("two", by="one", ratio=ratio)
    motor = rj.Motor("one", lambda t, q, v: t)
    model = rj.Relative(rj.System(bodies, [*joints, gear], motor))
    sol = rj.simulate(model, model.system.reference_state(), 2.0, ts=[1.0, 2.0], **TIGHT)
    slip = levels[0] + ratio * levels[1]
    assert names_of(sol.transitions) == ["one slips", "two slips"]
    np.testing.assert_allclose(sol.transitions.times[:2], slip, rtol=1e-12)
    np.testing.assert_array_equal(sol.rates["one"][0], 0.0)
    rate = (2.0 - slip) ** 2 / 2 / (inertias[0] + ratio**2 * inertias[1])
    np.testing.assert_allclose(sol.rates["one"][1, 0], rate, rtol=1e-10)


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
    with pytest.raises(ValueError, match="not both"):
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
