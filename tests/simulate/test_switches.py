"""Derivatives of runs with forces that jump, compared with closed-form solutions."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj

MASS, END = 1.7, 2.0
# Acceleration before and after the jump, position of the jump, start rate.
INPUTS = (1.1, -0.6, 0.9, 0.4)


def exact(before, behind, place, rate):
    """Final position of a mass, accelerated by `before` up to `place`, by `behind` after it."""
    there = (-rate + jnp.sqrt(rate**2 + 2 * before * place)) / before
    left, speed = END - there, rate + before * there
    return place + speed * left + 0.5 * behind * left**2


def step_by_comparison(place, x):
    return jnp.where(x > place, 0.0, 1.0)


class Push(eqx.Module):
    """A force that jumps at a given position."""

    before: jax.Array
    behind: jax.Array
    place: jax.Array
    share: object = eqx.field(static=True)

    def __call__(self, t, x, rate):
        share = self.share(self.place, x)
        return MASS * (share * self.before + (1.0 - share) * self.behind)


class Ahead(eqx.Module):
    """Distance from the jump, computed in a branch of `jax.lax.cond`."""

    place: jax.Array

    def __call__(self, t, x, rate):
        return jax.lax.cond(t < 1e3, lambda: x - self.place, lambda: jnp.ones_like(x))


class Constant(eqx.Module):
    force: jax.Array

    def __call__(self, t, x, rate):
        return self.force


def declare_switch(before, behind, place):
    return rj.Switch(Ahead(place), Constant(MASS * behind), Constant(MASS * before))


def end(inputs, share=step_by_comparison, **options):
    before, behind, place, rate = inputs
    law = (
        declare_switch(before, behind, place)
        if share is None
        else Push(before, behind, place, share)
    )
    slider = rj.Prismatic("ground", "cart", (1, 0, 0), name="s")
    system = rj.System(rj.Body("cart", MASS, (1, 1, 1)), slider, rj.Motor("s", law))
    start = rj.jointed_state(system, {"s": 0.0}, {"s": rate})
    options = ({} if "dt" in options else dict(rtol=1e-8, atol=1e-8)) | options
    return rj.simulate(rj.NullSpace(system), start, END, **options).coordinates["s"][-1, 0]


def gradients(**options):
    """Gradient in forward and in reverse mode."""

    def run(*inputs):
        return end(inputs, **options)

    x = tuple(map(jnp.asarray, INPUTS))
    forward = jax.jit(jax.vmap(lambda v: jax.jvp(run, x, tuple(v))[1]))(np.eye(4))
    return np.array(forward), np.array(jax.grad(run, (0, 1, 2, 3))(*x))


EXACT = np.array(jax.grad(lambda x: exact(*x))(jnp.asarray(INPUTS)))


@pytest.mark.parametrize(("options", "allowed"), [({}, 1e-6), ({"dt": 1e-3}, 1e-2)])
def test_gradients_contain_the_derivative_of_the_switching_time(options, allowed):
    forward, reverse = gradients(**options)
    np.testing.assert_allclose(forward, EXACT, atol=allowed * np.abs(EXACT).max())
    np.testing.assert_allclose(reverse, forward, atol=1e-6)


def step_in_branch(place, x):
    return jax.lax.cond(x < 1e3, lambda: jnp.where(x > place, 0.0, 1.0), lambda: 1.0)


def test_hidden_comparisons_warn_and_a_declared_switch_replaces_them():
    """The warning is an error in tests, and ends the compilation."""
    with pytest.raises(UserWarning, match="the law 'Push' compares values inside a loop"):
        options = dict(share=step_in_branch, solver=diffrax.Heun(), backend="xla")
        jax.jit(jax.jacfwd(lambda before: end((before, *INPUTS[1:]), **options))).lower(1.1)
    forward, reverse = gradients(share=None)
    np.testing.assert_allclose(forward, EXACT, atol=1e-6)
    np.testing.assert_allclose(reverse, EXACT, atol=1e-6)


def test_a_comparison_does_not_change_runs_that_are_not_differentiated():
    """Bit by bit, compared with a law without the comparison."""
    far = (*INPUTS[:2], 1e3, INPUTS[3])
    plain = end(far, share=lambda place, x: jnp.ones_like(x))
    np.testing.assert_array_equal(end(far), plain)


def test_unsupported_solvers_and_second_derivatives_warn():
    """The warnings are errors in tests, and end the compilation."""
    step = rj.solvers.EnergyMomentum()
    with pytest.raises(UserWarning, match="structure-preserving solvers do not support them"):
        options = dict(solver=step, dt=0.01, backend="xla")
        by_place = jax.jacfwd(lambda place: end((*INPUTS[:2], place, INPUTS[3]), **options))
        jax.jit(by_place).lower(0.9)
    with pytest.raises(UserWarning, match="second derivatives do not contain them"):
        options = dict(solver=diffrax.Heun(), dt=0.5, max_steps=4, backend="xla")
        second = jax.jacfwd(jax.jacfwd(lambda before: end((before, *INPUTS[1:]), **options)))
        jax.jit(second).lower(1.1)


def test_seulex_recovers_from_a_step_that_diverges_at_a_stop():
    """The projection maps the end of such a step to anywhere; the next step must not be zero."""
    arm = rj.Body("arm", 1.0, (0.12, 0.12, 0.12))
    hinge = rj.Revolute("ground", "arm", (0, 0, 0), axis=(0, 0, 1), name="h", damping=0.02)

    def stops(t, q, v):
        over, under = q - 3.9, -0.2 - q
        push = jnp.where(over > 0, jnp.maximum(900.0 * over + 3.0 * v, 0.0), 0.0)
        pull = jnp.where(under > 0, jnp.maximum(900.0 * under - 3.0 * v, 0.0), 0.0)
        return pull - push + 0.6 * jnp.cos(1.1 * t)

    model = rj.NullSpace(rj.System(arm, hinge, rj.Motor("h", stops)))
    start = rj.jointed_state(model.system, {"h": 1.0}, {"h": 2.0})
    options = dict(rtol=1e-7, atol=1e-7, max_steps=2000)
    found = rj.simulate(model, start, 8.0, solver=rj.solvers.Seulex(), **options)
    expected = rj.simulate(model, start, 8.0, **options)
    np.testing.assert_allclose(found.coordinates["h"][-1], expected.coordinates["h"][-1], atol=3e-4)


@pytest.mark.exhaustive
def test_infinite_slope_of_a_power_law_at_rest():
    """m x'' = F - c x'^n from rest, n < 1, compared with finite differences."""

    def run(c, n):
        def law(c, n, t, x, rate):
            return 1.0 - c * jnp.sign(rate) * jnp.abs(rate) ** n

        slider = rj.Prismatic("ground", "cart", (1, 0, 0), name="s")
        motor = rj.Motor("s", jax.tree_util.Partial(law, c, n))
        system = rj.System(rj.Body("cart", MASS, (1, 1, 1)), slider, motor)
        sol = rj.simulate(
            rj.NullSpace(system), system.reference_state(), END, rtol=1e-10, atol=1e-10,
        )  # fmt: skip
        return sol.coordinates["s"][-1, 0]

    c, n, h = 0.4, 0.6, 1e-4
    by_differences = [
        (run(c + h, n) - run(c - h, n)) / (2 * h), (run(c, n + h) - run(c, n - h)) / (2 * h)
    ]  # fmt: skip
    np.testing.assert_allclose(jax.grad(run, (0, 1))(c, n), by_differences, rtol=1e-4)
