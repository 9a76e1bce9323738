"""Friction, springs and stops that are arguments of joints."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from forces.multibody import BODIES, POINT
from formulations import cases

import rigidjax as rj
from rigidjax.joints.replacing import FORCE_FIELDS, replace_fields

AXIS = np.array([1.0, 2.0, 2.0]) / 3
X, Z = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)
MASS, SPEED = 2.0, 1.3
TS = np.linspace(0.0, 1.0, 5)
BLOCK = rj.Body("block", MASS, (0.1, 0.2, 0.3))
OPTIONS = {"rtol": 1e-11, "atol": 1e-12}


def slide(body=BLOCK, start=0.0, speed=SPEED, ts=TS, **laws):
    """A block on a slider without gravity."""
    system = rj.System(body, [rj.Prismatic("ground", "block", X, name="slider", **laws)])
    state = rj.jointed_state(system, {"slider": start}, {"slider": speed})
    return rj.simulate(rj.NullSpace(system), state, ts[-1], ts=ts, **OPTIONS)


def rates(sol):
    return sol.states.velocity[:, 0, 0]


@pytest.mark.float32
def test_friction_is_its_formula_with_the_right_slope_at_rest():
    law = rj.Friction(0.7, 0.2, (1.1, 0.3), 0.05)
    v = jnp.linspace(-1.0, 1.0, 41)
    level = 0.7 + 0.4 * np.exp(-((np.asarray(v, float) / 0.3) ** 2))
    expected = -level * np.tanh(np.asarray(v, float) / 0.05) - 0.2 * np.asarray(v, float)
    assert cases.error(jax.vmap(law.force)(v), expected) < cases.round_off(20)
    zero = jnp.zeros(())
    assert law.force(zero) == 0
    for derivative in (jax.jacfwd, jax.jacrev):
        assert cases.error(derivative(law.force)(zero), -(1.1 / 0.05 + 0.2)) < cases.round_off(8)
    # Odd: the second derivative at rest is zero, and the power is never positive.
    assert jax.grad(jax.grad(law.force))(zero) == 0
    assert np.all(np.asarray(jax.vmap(law.force)(v) * v) <= 0)


@pytest.mark.exhaustive
def test_sliding_block_comes_to_rest_as_the_exact_solution():
    r"""$m v' = -F \tanh(v/v_0)$ has the solution $\sinh(v/v_0) = \sinh(V/v_0) e^{-F t / m v_0}$."""
    level, v0 = 3.5, 0.1

    def exact(t, level, v0, mass):
        return v0 * jnp.arcsinh(jnp.sinh(SPEED / v0) * jnp.exp(-level * t / (mass * v0)))

    def run(level, v0, mass):
        body = rj.Body("block", mass, (0.1, 0.2, 0.3))
        return slide(body, friction=rj.Friction(level, velocity=v0))

    sol = run(level, v0, MASS)
    assert sol.stats["backend"] == "native"
    assert np.abs(rates(sol) - exact(TS, level, v0, MASS)).max() < 1e-9
    start = jax.tree.map(lambda leaf: leaf[0], sol.states)
    other = rj.simulate(sol.model, start, TS[-1], ts=TS, backend="xla", **OPTIONS)
    assert np.abs(rates(other) - rates(sol)).max() < 1e-11
    values = [jnp.array(value) for value in (level, v0, MASS)]
    slopes = jax.jacfwd(lambda *a: rates(run(*a))[2], (0, 1, 2))(*values)
    expected = jax.grad(exact, (1, 2, 3))(TS[2], *values)
    assert cases.error(jnp.stack(slopes), jnp.stack(expected)) < 1e-8


@pytest.mark.exhaustive
def test_joint_springs_are_torsion_springs():
    """Several coordinates, and revolutions of a hinge."""
    stiffness, rest = (2.0, 3.0), (0.1, -0.2)
    sleeve = lambda **laws: rj.Cylindrical("ground", "one", POINT, AXIS, "c", **laws)  # noqa: E731
    hinge = lambda **laws: rj.Revolute("one", "two", POINT, AXIS, name="r", **laws)  # noqa: E731
    springs = [rj.TorsionSpring("c", stiffness[k], 0.0, rest[k], k) for k in (0, 1)]
    springs += [rj.TorsionSpring("r", 0.4)]
    systems = [
        rj.System(BODIES, [sleeve(stiffness=stiffness, rest=rest), hinge(stiffness=0.4)]),
        rj.System(BODIES, [sleeve(), hinge()], springs),
    ]
    (f, energy), (f_springs, energy_springs) = map(field_and_energy, systems)
    assert cases.error(f, f_springs) < 1e-13
    assert cases.error(energy, energy_springs) < 1e-13
    assert energy > 0.5 * 0.4 * 9.0**2


def field_and_energy(system):
    """With the hinge wound up by 9 rad."""
    state = rj.jointed_state(system, {"r": 9.0}, {"r": 3.0})
    model = rj.NullSpace(system)
    y = model.encode(state)
    return model.vector_field(0.0, y, None), model.energy(0.0, y)


def rebound(speed, dissipation):
    """The rate at which the block leaves the stop at 0.2."""
    stop = rj.Stop(4000.0, dissipation, 0.005)
    return -rates(slide(speed=speed, limits=(-np.inf, 0.2), stop=stop))[-1]


@pytest.mark.exhaustive
def test_rebound_from_a_stop_is_the_exact_one():
    r"""$m v\,dv = -f(\delta)(1 + c v)\,d\delta$ gives $w$ from $v$, whatever the spring is."""

    def work(v, c):
        return v / c - jnp.log1p(c * v) / c**2

    c = jnp.array(0.3)
    w, slope = jax.jvp(lambda c: rebound(SPEED, c), (c,), (jnp.ones(()),))
    assert abs(work(SPEED, c) - work(-w, c)) < 1e-9
    # Implicit derivative of the relation between the rates.
    gap = lambda w, c: work(SPEED, c) - work(-w, c)  # noqa: E731
    exact = -jax.grad(gap, 1)(w, c) / jax.grad(gap)(w, c)
    assert cases.error(slope, exact) < 1e-7
    assert abs(w / SPEED - (1 - 2 / 3 * c * SPEED)) < 0.1
    # Without dissipation nothing is lost, and the energy in the stop is counted.
    sol = slide(limits=(-1.0, 0.2), stop=rj.Stop(200.0, 0.0, 0.01), ts=np.linspace(0, 0.5, 40))
    assert np.max(sol.states.position[:, 0, 0]) > 0.25
    assert np.ptp(sol.energy) < 1e-8


@pytest.mark.float32
def test_stops_only_push_and_have_continuous_derivatives():
    stop = rj.Stop(300.0, 0.8, 0.02)
    rng = np.random.default_rng(5)
    depths, speeds = rng.normal(size=400) * 0.03, rng.normal(size=400) * 4
    forces = np.asarray(jax.vmap(stop.force)(jnp.asarray(depths), jnp.asarray(speeds)))
    assert np.all(forces >= 0)
    assert np.all(forces[depths <= 0] == 0)
    assert np.all(forces[depths > 0] > 0)
    depth, zero = jnp.array([0.004, 0.02, 0.05]), jnp.zeros(3)
    elastic = np.array([300 * 0.004**2 / 0.04, 300 * 0.01, 300 * 0.04])
    assert cases.error(jax.vmap(stop.force)(depth, zero), elastic) < cases.round_off(8)
    slopes = jax.vmap(jax.grad(stop.energy))(depth)
    assert cases.error(slopes, elastic) < cases.round_off(20)
    # At the limit, at the end of the onset, and where the stop would begin to pull.
    h = float(np.sqrt(np.finfo(jnp.result_type(float)).eps))
    for depth, rate in ((0.0, 1.0), (0.02, 1.0), (0.01, -0.5 / 0.8)):
        sides = [
            jnp.stack(jax.grad(stop.force, (0, 1))(jnp.array(depth + s), jnp.array(rate + s)))
            for s in (-h * 0.02, h * 0.02)
        ]
        # The second derivatives are bounded by twice 300 / 0.02.
        assert cases.error(*sides) < 2 * (300 / 0.02) * 0.04 * h
    far = rj.Stop(300.0)
    limit = lambda q: far.force(-jnp.inf - q, -q)  # noqa: E731
    assert jax.value_and_grad(limit)(jnp.array(0.3)) == (0, 0)


@pytest.mark.exhaustive
def test_energy_of_every_joint_changes_by_the_power_of_its_dissipation():
    r"""At random states, $dE/dt = \sum F \dot q$ of friction, damping and the damped part of
    stops; `inverse_dynamics` contains the same forces."""
    law = rj.Friction(0.5, 0.1, (0.8, 0.4), 0.3)
    stop = rj.Stop(40.0, 0.6, 0.1)
    one = {"friction": law, "damping": 0.3, "stiffness": 4.0, "rest": 0.3}
    one |= {"limits": (-0.2, 0.15), "stop": stop}
    two = one | {"limits": ((-0.2, 0.15), (-np.inf, 0.1))}
    bodies = [rj.Body(name, 1.0 + k, (0.5, 0.4, 0.3)) for k, name in enumerate("abcd")]
    joints = [
        rj.Revolute("ground", "a", POINT, AXIS, name="r", **one),
        rj.Prismatic("a", "b", X, name="p", **one),
        rj.Screw("b", "c", POINT, AXIS, 0.5, name="s", **one),
        rj.Cylindrical("c", "d", POINT, Z, "c", **two),
    ]
    model = rj.Relative(rj.System(bodies, joints))
    without = [replace_fields(joint, **dict.fromkeys(FORCE_FIELDS)) for joint in joints]
    bare = rj.Relative(rj.System(bodies, without))
    rng = np.random.default_rng(8)
    low = np.array([-0.2, -0.2, -0.2, -0.2, -np.inf])
    high = np.array([0.15, 0.15, 0.15, 0.15, 0.1])

    @jax.jit
    def quantities(q, v):
        names = "rpsc"
        state = rj.jointed_state(
            model.system, {n: q[k] for k, n in enumerate(names[:3])} | {"c": q[3:]},
            {n: v[k] for k, n in enumerate(names[:3])} | {"c": v[3:]},
        )  # fmt: skip
        y, t = model.encode(state), jnp.zeros(())
        change = jax.jvp(lambda y: model.energy(t, y), (y,), (model.vector_field(t, y, None),))[1]
        torque = [m.bias_forces(t, m.encode(state)) for m in (model, bare)]
        return change, torque[0] - torque[1]

    for _ in range(3):
        q, v = rng.normal(size=5) * 0.3, rng.normal(size=5)
        friction = -(0.5 + 0.3 * np.exp(-((v / 0.4) ** 2))) * np.tanh(v / 0.3) - 0.4 * v
        elastic, pushes = np.zeros(5), np.zeros(5)
        for sign, depth in ((1, low - q), (-1, q - high)):
            d = np.maximum(depth, 0)
            f = np.where(d < 0.1, 40 * d**2 / 0.2, 40 * (d - 0.05))
            y = -0.6 * sign * v
            phi = np.where(y >= -0.5, 1 + y, -0.25 / np.minimum(y, -0.5))
            elastic, pushes = elastic + sign * f, pushes + sign * f * phi
        change, torque = quantities(q, v)
        assert cases.error(change, np.sum((friction + pushes - elastic) * v)) < 1e-12
        assert cases.error(torque, -(friction + pushes - 4 * (q - 0.3))) < 1e-12


@pytest.mark.exhaustive
def test_friction_loads_the_drive_of_a_prescribed_motion():
    hinge = rj.Revolute(
        "ground", "block", (0, 0, 0), Z, lambda t: 0.7 * t, "h", friction=rj.Friction(0.4)
    )
    model = rj.NullSpace(rj.System(BLOCK, [hinge]))
    y = model.encode(rj.consistent_state(model.system, model.system.reference_state()))
    drive = model.reactions(0.0, y)["h"].drive
    assert abs(drive - 0.4 * np.tanh(0.7 / 0.01)) < 1e-13


def hinge(**laws):
    return rj.Revolute("ground", "block", (0, 0, 0), Z, name="h", **laws)


@pytest.mark.parametrize(
    ("build", "error", "match"),
    [
        (lambda: rj.Friction(-1.0), ValueError,
         r"`Friction\(coulomb=...\)` must not be negative. Got -1"),
        (lambda: rj.Friction(1.0, -0.1), ValueError,
         r"`Friction\(viscous=...\)` must not be negative"),
        (lambda: rj.Friction(1.0, velocity=0.0), ValueError,
         r"`Friction\(velocity=...\)` must be positive. Got 0"),
        (lambda: rj.Friction(1.0, stribeck=2.0), ValueError,
         r"must be the level of friction at rest and the velocity .*; got 2.0"),
        (lambda: rj.Friction(1.0, stribeck=(0.5, 0.1)), ValueError,
         r"The level at rest in `Friction\(stribeck=...\)` must not be below `coulomb`. Got 0.5"),
        (lambda: rj.Friction(1.0, stribeck=(1.5, 0.0)), ValueError,
         r"`Friction\(stribeck=...\)` must be positive"),
        (lambda: rj.Friction([[1.0]]), ValueError,
         r"must be a scalar or have an entry for each coordinate .* got shape \(1, 1\)"),
        (lambda: rj.Stop(-1.0), ValueError, r"`Stop\(stiffness=...\)` must not be negative"),
        (lambda: rj.Stop(width=0.0), ValueError, r"`Stop\(width=...\)` must be positive"),
        (lambda: hinge(friction=0.3), TypeError,
         r"`Revolute\(friction=...\)` takes an object, as in `friction=rj.Friction\(...\)`; got 0"),
        (lambda: hinge(friction=rj.Friction((0.1, 0.2))), ValueError,
         r"constants of `Revolute\(friction=...\)` must be scalars .* got \(2,\)"),
        (lambda: hinge(stiffness=-1.0), ValueError,
         r"`Revolute\(stiffness=...\)` must not be negative"),
        (lambda: hinge(rest=0.5), ValueError,
         r"`Revolute\(rest=...\)` has no effect without `stiffness`"),
        (lambda: hinge(limits=(1.0, -1.0)), ValueError,
         r"`Revolute\(limits=...\)` must be \(low, high\), with the lower .* Got \[1, -1\]"),
        (lambda: hinge(limits=1.0), ValueError, r"`Revolute\(limits=...\)` must have shape"),
        (lambda: hinge(stop=rj.Stop()), ValueError,
         r"`Revolute\(stop=...\)` has no effect without `limits`"),
        (lambda: hinge(limits=(0.0, 1.0), stop=3.0), TypeError, r"`stop=rj.Stop\(...\)`; got 3.0"),
        (lambda: hinge(motion=lambda t: t, stiffness=1.0), ValueError,
         r"`Revolute\(stiffness=...\)` acts on a free coordinate; that of 'h' is prescribed"),
        (lambda: hinge(motion=lambda t: t, limits=(0.0, 1.0)), ValueError,
         r"`Revolute\(limits=...\)` acts on a free coordinate"),
    ],
)  # fmt: skip
def test_invalid_laws_of_joints_raise(build, error, match):
    with pytest.raises(error, match=match):
        build()
