"""Actions after a step, against explicit calls of diffrax's solvers."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from formulations import cases

import rigidjax as rj
from rigidjax.solvers import Projected, Recharted, Unrolled
from rigidjax.solvers.explicit.unrolled import FieldSize, StageLoop, native_form

TOP = cases.loaded_top()
START = rj.State(orientation=(0.5, -0.5, 0.1, 0.7), angular_velocity=(1.5, -2.0, 2.5))
H, STEPS = 0.05, 6


def by_hand(model, solver, y, after):
    """Make steps of the plain solver, each with a new state, so that none is stale."""
    term = diffrax.ODETerm(model.vector_field)
    h = jnp.asarray(H)

    @jax.jit
    def step(t, y):
        state = solver.init(term, t, t + h, y, None)
        y, *_ = solver.step(term, t, t + h, y, None, state, jnp.array(False))
        return after(t + h, y)

    ys = [y]
    for i in range(STEPS):
        ys.append(step(jnp.asarray(i * H), ys[-1]))
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *ys)


def solve(model, solver, y, saveat):
    return diffrax.diffeqsolve(
        diffrax.ODETerm(model.vector_field), solver, 0.0, STEPS * H, H, y, saveat=saveat
    )


def test_projection_after_each_step():
    """A method that keeps its last evaluation makes the same steps as one that starts afresh."""
    model, inner = rj.Absolute(TOP, rj.Directors()), diffrax.Dopri5()
    projection = rj.projection.Explicit()
    y0 = model.encode(START)
    expected = by_hand(model, inner, y0, lambda t, y: projection(model, t, y)[0])
    solver = Projected(inner, model, projection)
    times = np.array([0.3, 0.42, 0.7]) * H + np.array([0, 2, 4]) * H
    saveat = diffrax.SaveAt(t0=True, steps=True, dense=True)
    solution = solve(model, solver, y0, saveat)
    assert cases.error(solution.ys[: STEPS + 1], expected) < 1e-14
    # Dense output starts and ends at the projected values, on both sides of every step.
    evaluate = jax.vmap(lambda t: solution.evaluate(t, left=True))
    inside = H * np.arange(1, STEPS)
    assert cases.error(evaluate(inside), expected[1:-1]) < 1e-13
    right = jax.vmap(lambda t: solution.evaluate(t, left=False))(inside)
    assert cases.error(right, expected[1:-1]) < 1e-13
    # The drift inside a step is that of the interpolant of the plain solver.
    drift = jax.vmap(model.drift)(times, evaluate(times))
    assert 0 < float(jnp.max(drift[0])) < 1e-6
    increment = solution.evaluate(times[0], times[1])
    assert cases.error(increment, evaluate(times)[1] - evaluate(times)[0]) < 1e-14


def test_recharting_after_each_step():
    model = rj.NullSpace(TOP, rj.LinearParameters())
    y0 = model.chart(START)
    expected = by_hand(model, diffrax.Dopri5(), y0, lambda t, y: model.rechart(t, y)[0])
    changes = np.any(np.diff(expected.reference[:, 0], axis=0) != 0, axis=1)
    assert 0 < np.sum(changes) < STEPS
    solution = solve(
        model, Recharted(Unrolled(diffrax.Dopri5()), model), y0,
        diffrax.SaveAt(t0=True, steps=True),
    )  # fmt: skip
    assert cases.error(solution.ys.values[: STEPS + 1], expected.values) < 1e-13
    assert cases.error(solution.ys.reference[: STEPS + 1], expected.reference) < 1e-13


@pytest.mark.parametrize("solver", [diffrax.Heun(), diffrax.Dopri5(), diffrax.Dopri8()])
def test_stages_of_the_wrapped_method_are_kept(solver):
    """Unrolled, and as a loop over a table; first-same-as-last methods over two steps."""
    model = rj.NullSpace(TOP)
    term, y0 = diffrax.ODETerm(model.vector_field), model.encode(START)
    t0, t1 = jnp.asarray(0.2), jnp.asarray(0.3)

    def two_steps(method):
        state = method.init(term, t0, t1, y0, None)
        y, error, info, state, _ = method.step(term, t0, t1, y0, None, state, jnp.array(False))
        interpolation = method.interpolation_cls(t0=t0, t1=t1, **info)
        middle = interpolation.evaluate(0.5 * (t0 + t1))
        after, *_ = method.step(term, t1, t1 + 0.1, y, None, state, jnp.array(False))
        return y, error, middle, after

    plain = two_steps(solver)
    for form in (Unrolled, StageLoop):
        for first, second in zip(plain, two_steps(form(solver)), strict=True):
            assert cases.error(first, second) < 1e-15
    wrapped = Unrolled(solver)
    assert wrapped.order(term) == solver.order(term)
    assert wrapped.error_order(term) == solver.error_order(term)


def test_native_form_gives_equal_steps():
    """Small fields are unrolled, large ones are a loop, also inside wrappers."""
    model = rj.NullSpace(TOP)
    wrapped = Recharted(diffrax.Dopri8(), model)
    assert type(native_form(wrapped, FieldSize(400, False)).solver) is Unrolled
    # Two bodies, in which the derivatives of unrolled stages are long.
    assert (
        type(native_form(Recharted(diffrax.Dopri5(), model), FieldSize(533, False)).solver)
        is StageLoop
    )
    assert type(native_form(wrapped, FieldSize(4_000, False)).solver) is StageLoop
    assert native_form(diffrax.Kvaerno5(), FieldSize(400, False)) == diffrax.Kvaerno5()


def test_unrolled_requires_explicit_methods():
    with pytest.raises(TypeError, match=r"`Unrolled\(solver=...\)` takes an explicit Runge-Kutta"):
        Unrolled(diffrax.Kvaerno5())
    with pytest.raises(TypeError, match="got Euler"):
        Unrolled(diffrax.Euler())
