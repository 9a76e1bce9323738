"""Absolute coordinates of index 1, 2, 3 through `simulate`, all forms of the same equations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj

TOP = rj.problems.heavy_top()
T1 = 0.2
FORMS = {
    # Formulation, solver, error of orientation and angular velocity at tolerance 1e-7.
    "Baumgarte": (
        rj.Absolute(TOP.system, index=1, baumgarte=(10.0, 10.0)), rj.solvers.Radau5(), 1e-5
    ),
    "index 2, stabilized": (
        rj.Absolute(TOP.system, index=2, stabilized=True), rj.solvers.BDF(), 1e-4
    ),
    # Positions of index 3 have errors of the tolerance over h, some hundred.
    "index 3": (rj.Absolute(TOP.system, index=3), rj.solvers.Radau5(), 1e-4),
}  # fmt: skip


@pytest.fixture(scope="module")
def reference():
    model = rj.NullSpace(TOP.system)
    return rj.simulate(model, TOP.state0, T1, rtol=1e-11, atol=1e-11).states


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FORMS)
def test_stabilised_and_plain_forms_agree(name, reference):
    """States as in null-space coordinates; multipliers as in postprocessing of index 0."""
    model, solver, bound = FORMS[name]
    solution = rj.simulate(model, TOP.state0, T1, solver=solver, rtol=1e-7, atol=1e-7)
    states = solution.states
    for got, expected in zip(jax.tree.leaves(states), jax.tree.leaves(reference), strict=True):
        assert np.max(np.abs(got - expected)) < bound
    lam = solution.multipliers[-1]
    assert lam.shape == (1,)
    index_0 = rj.Absolute(TOP.system)
    expected = index_0.multipliers(solution.ts[-1], solution.ys[-1, : index_0.num_unknowns])
    assert np.max(np.abs(lam / expected - 1.0)) < 1e-4
    stats = solution.stats
    assert stats["num_rejected_steps"] <= 0.15 * stats["num_steps"]
    assert 0 < stats["num_rhs"] < 25 * stats["num_steps"]


@pytest.mark.exhaustive
def test_saved_times_and_gradient():
    """Dense output with multipliers, and a derivative by the start through index 2."""
    ts = np.linspace(0.0, 0.05, 6)

    def rates(scale, model, solver, tolerance):
        state = TOP.state0
        start = rj.State(
            orientation=state.orientation, angular_velocity=scale * state.angular_velocity
        )
        return rj.simulate(
            model, start, ts[-1], ts=ts, solver=solver, rtol=tolerance, atol=tolerance,
            projection=False,
        ).states.angular_velocity  # fmt: skip

    def both(*how):
        return jax.jvp(lambda scale: rates(scale, *how), (1.0,), (1.0,))

    got, got_tangent = both(rj.Absolute(TOP.system, index=2), rj.solvers.Radau5(), 1e-9)
    true, tangent = both(rj.NullSpace(TOP.system), None, 1e-11)
    assert np.max(np.abs(got - true)) < 1e-5
    assert np.max(np.abs(got_tangent - tangent)) < 1e-5 * np.max(np.abs(tangent))


@pytest.mark.exhaustive
def test_batch_counts_evaluations():
    """Under `vmap` every trajectory has its own steps and evaluations."""
    model = rj.NullSpace(TOP.system)

    def run(scale):
        start = rj.State(
            orientation=TOP.state0.orientation,
            angular_velocity=scale * TOP.state0.angular_velocity,
        )
        return rj.simulate(
            model, start, 0.05, solver=rj.solvers.Radau5(), rtol=1e-6, atol=1e-6
        ).stats

    stats = jax.vmap(run)(jnp.array([0.1, 1.0]))
    assert stats["num_steps"][0] < stats["num_steps"][1]
    assert stats["num_rhs"][0] < stats["num_rhs"][1]


def test_invalid_arguments_raise():
    with pytest.raises(ValueError, match=r"index=2\)` is a differential-algebraic.*`Dopri8`"):
        rj.simulate(rj.Absolute(TOP.system, index=2), TOP.state0, T1)
    with pytest.raises(ValueError, match=r"`Seulex` .* of index up to 1; got .*3"):
        model = rj.Absolute(TOP.system, index=3)
        rj.simulate(model, TOP.state0, T1, solver=rj.solvers.Seulex())
    with pytest.raises(ValueError, match=r"stabilized=True\)` is a form of index=2; got index=1"):
        rj.Absolute(TOP.system, index=1, stabilized=True)
    with pytest.raises(ValueError, match=r"takes two rates .*; got .* for index=2"):
        rj.Absolute(TOP.system, index=2, baumgarte=(1.0, 1.0))
