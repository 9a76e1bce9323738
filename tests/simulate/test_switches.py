"""Derivatives of runs whose forces jump, against closed forms."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj

MASS, END = 1.7, 2.0
# Acceleration before and behind a place, the place, start rate.
INPUTS = (1.1, -0.6, 0.9, 0.4)


def exact(before, behind, place, rate):
    """Position at the end of a point that is pushed by `before`, from `place` on by `behind`."""
    there = (-rate + jnp.sqrt(rate**2 + 2 * before * place)) / before
    left, speed = END - there, rate + before * there
    return place + speed * left + 0.5 * behind * left**2


def compared(place, x):
    return jnp.where(x > place, 0.0, 1.0)


def signed(place, x):
    return 0.5 * (1.0 - jnp.sign(x - place))


def product(place, x):
    """The same comparison three times, in three forms."""
    return 1.0 - (x > place) * (2 * x >= 2 * place) * (x - place > 0)


class Push(eqx.Module):
    """A force of one size before a place and of another behind it."""

    before: jax.Array
    behind: jax.Array
    place: jax.Array
    share: object = eqx.field(static=True)

    def __call__(self, t, x, rate):
        share = self.share(self.place, x)
        return MASS * (share * self.before + (1.0 - share) * self.behind)


class Ahead(eqx.Module):
    """Positive behind a place; compared inside of a branch."""

    place: jax.Array

    def __call__(self, t, x, rate):
        return jax.lax.cond(t < 1e3, lambda: x - self.place, lambda: jnp.ones_like(x))


class Constant(eqx.Module):
    force: jax.Array

    def __call__(self, t, x, rate):
        return self.force


def declared(before, behind, place):
    return rj.Switch(Ahead(place), Constant(MASS * behind), Constant(MASS * before))


def end(inputs, share=compared, form=rj.NullSpace, **options):
    before, behind, place, rate = inputs
    law = declared(before, behind, place) if share is None else Push(before, behind, place, share)
    slider = rj.Prismatic("ground", "cart", (1, 0, 0), name="s")
    system = rj.System(rj.Body("cart", MASS, (1, 1, 1)), slider, rj.Motor("s", law))
    start = rj.jointed_state(system, {"s": 0.0}, {"s": rate})
    options = ({} if "dt" in options else dict(rtol=1e-8, atol=1e-8)) | options
    return rj.simulate(form(system), start, END, **options).coordinates["s"][-1, 0]


def gradients(**options):
    """By forward and by reverse mode."""
    run = lambda *inputs: end(inputs, **options)  # noqa: E731
    one, x = np.eye(4), tuple(map(jnp.asarray, INPUTS))
    forward = jax.jit(jax.vmap(lambda v: jax.jvp(run, x, tuple(v))[1]))(one)
    return np.array(forward), np.array(jax.grad(run, (0, 1, 2, 3))(*x))


EXACT = np.array(jax.grad(lambda x: exact(*x))(jnp.asarray(INPUTS)))


@pytest.mark.parametrize(
    ("options", "allowed"),
    [
        (dict(), 1e-6),
        (dict(share=signed, form=rj.Relative), 1e-6),
        (dict(share=product, backend="xla"), 1e-6),
        (dict(solver=rj.solvers.Radau5(), form=rj.Absolute), 1e-6),
        (dict(solver=rj.solvers.BDF(), rtol=1e-9, atol=1e-9), 1e-4),
        (dict(solver=rj.solvers.Seulex()), 1e-6),
        (dict(solver=diffrax.Tsit5(), adjoint=rj.AnyMode(controls_derivatives=False)), 1e-5),
        (dict(dt=1e-3), 1e-2),
    ],
    ids=lambda x: "" if isinstance(x, float) else "-".join(map(str, x)) or "default",
)
def test_derivatives_by_what_moves_a_jump(options, allowed):
    forward, reverse = gradients(**options)
    np.testing.assert_allclose(forward, EXACT, atol=allowed * np.abs(EXACT).max())
    np.testing.assert_allclose(reverse, forward, atol=min(allowed, 1e-6))


def test_several_jumps_at_once_and_in_a_batch():
    """Two stops that are reached at almost the same time, for several places."""

    def two(places):
        one = Push(INPUTS[0], INPUTS[1], places[0], compared)
        other = Push(jnp.asarray(0.0), jnp.asarray(0.3), places[1], compared)
        slider = rj.Prismatic("ground", "cart", (1, 0, 0), name="s")
        forces = [rj.Motor("s", one), rj.Motor("s", other)]
        system = rj.System(rj.Body("cart", MASS, (1, 1, 1)), slider, forces)
        start = rj.jointed_state(system, {"s": 0.0}, {"s": INPUTS[3]})
        return rj.simulate(rj.NullSpace(system), start, END).coordinates["s"][-1, 0]

    def by_hand(places):
        first, last = jnp.sort(places)
        a, speed = INPUTS[0], INPUTS[3]
        at_first = jnp.sqrt(speed**2 + 2 * a * first)
        a_between = jnp.where(places[0] < places[1], INPUTS[1], INPUTS[0] + 0.3)
        at_last = jnp.sqrt(at_first**2 + 2 * a_between * (last - first))
        before = (at_first - speed) / a + (at_last - at_first) / a_between
        left = END - before
        return last + at_last * left + 0.5 * (INPUTS[1] + 0.3) * left**2

    # Nine digits apart: one step crosses both.
    places = jnp.array([[0.9, 1.0], [1.0, 0.9], [0.9, 0.9 + 1e-10], [0.9 + 1e-10, 0.9]])
    found = jax.vmap(jax.grad(two))(places)
    np.testing.assert_allclose(found, jax.vmap(jax.grad(by_hand))(places), rtol=1e-5, atol=1e-6)


def hidden(place, x):
    return jax.lax.cond(x < 1e3, lambda: jnp.where(x > place, 0.0, 1.0), lambda: 1.0)


def test_declared_switch_in_the_place_of_a_hidden_comparison():
    with pytest.warns(UserWarning, match="'Push' compares numbers inside of a loop"):
        jax.grad(lambda k: end((k, *INPUTS[1:]), share=hidden))(INPUTS[0])
    forward, reverse = gradients(share=None)
    np.testing.assert_allclose(forward, EXACT, atol=1e-6)
    np.testing.assert_allclose(reverse, EXACT, atol=1e-6)


def test_start_at_the_place_of_a_jump_is_no_jump():
    """From rest on, dry friction has one side; its derivative is that of a constant force."""

    def run(friction):
        law = lambda friction, t, x, rate: 2.0 - friction * jnp.sign(rate)  # noqa: E731
        slider = rj.Prismatic("ground", "cart", (1, 0, 0), name="s")
        motor = rj.Motor("s", jax.tree_util.Partial(law, friction))
        model = rj.NullSpace(rj.System(rj.Body("cart", MASS, (1, 1, 1)), slider, motor))
        start = model.system.reference_state()
        return rj.simulate(model, start, END).coordinates["s"][-1, 0]

    value, slope = jax.value_and_grad(run)(0.5)
    np.testing.assert_allclose(value, 1.5 / MASS * END**2 / 2, rtol=1e-6)
    np.testing.assert_allclose(slope, -(END**2) / 2 / MASS, rtol=1e-6)


def test_undifferentiated_runs_are_those_without_comparisons():
    """The force is the same; so are steps and end, bit by bit, where nothing switches."""
    far = (*INPUTS[:2], 1e3, INPUTS[3])
    plain = end(far, share=lambda place, x: jnp.ones_like(x))
    np.testing.assert_array_equal(end(far), plain)


def test_what_has_no_switching_times_says_so():
    step = rj.solvers.EnergyMomentum()
    with pytest.warns(UserWarning, match="structure-preserving solvers have none"):
        jax.grad(lambda k: end((k, *INPUTS[1:]), solver=step, dt=0.01))(INPUTS[0])
    with pytest.warns(UserWarning, match="second derivatives have none"):
        jax.jit(jax.grad(jax.grad(lambda k: end((k, *INPUTS[1:]), dt=0.5, max_steps=4))))(1.1)


def test_infinite_slope_at_the_start():
    """m x'' = F - c x'^n from rest: the derivative by c is finite, and that of differences."""

    def run(c, n):
        law = lambda c, n, t, x, rate: 1.0 - c * jnp.sign(rate) * jnp.abs(rate) ** n  # noqa: E731
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
