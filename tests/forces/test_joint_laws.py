"""Friction, springs and stops that are arguments of joints, and laws of motors."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from formulations import cases

import rigidjax as rj

Z = (0.0, 0.0, 1.0)


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


def test_brakes_follow_signals_and_policies():
    """Two disks: 0.2 w' = -0.3 t - 0.1 w and 0.2 w' = -0.1 w."""
    ramp = rj.Friction(rj.Signal([0.0, 2.0], [0.0, 0.6]), 0.1, velocity=1e-3)
    parts = []
    for name, brake in (("a", ramp), ("b", rj.Friction(rj.Input("u")))):
        parts.append(rj.Body(name, 1.0, np.diag([0.1, 0.1, 0.2])))
        parts.append(rj.Revolute("ground", name, (0, 0, 0), Z, name=name, friction=brake))
    system = rj.System(*parts)
    state = rj.jointed_state(system, {}, {"a": 9.0, "b": 5.0})
    policy = {"u": lambda t, view: 0.1 * view.rates["b"][0]}
    rates = rj.simulate(system, state, 2.0, inputs=policy).rates
    assert cases.error(rates["a"][0, 0], 3.0 * np.exp(-1.0)) < 1e-7
    assert cases.error(rates["b"][0, 0], 5.0 * np.exp(-1.0)) < 1e-7


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


class Control(eqx.Module):
    """A law with a parameter."""

    gain: jax.Array

    def __call__(self, t, coordinate, rate):
        return -self.gain * rate


def test_arguments_of_motor_laws():
    """Numbers, functions of time or of the state, distinguished by their required parameters."""
    coordinate, rate = jnp.array(0.3), jnp.array(1.2)
    t = jnp.array(0.4)
    value = lambda torque: rj.Motor("j", torque).generalised_force(t, coordinate, rate)  # noqa: E731
    assert value(2.5) == 2.5
    assert value(jnp.sin) == jnp.sin(t)
    assert value(lambda t, scale=3.0: scale * t) == 3.0 * t
    assert value(lambda t, q, w: t + 10 * q + 100 * w) == t + 10 * coordinate + 100 * rate
    assert value(Control(jnp.array(0.5))) == -0.5 * rate
    assert len(jax.tree.leaves(rj.Motor("j", Control(jnp.array(0.5))))) == 1
    assert rj.Motor("j", jnp.sin).is_linear


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
        (lambda: rj.Friction(jnp.cos, sticking=True), ValueError,
         r"`Friction\(coulomb=...\)` must be constant with `sticking` or `stribeck`"),
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
