"""`simulate` under jit and vmap, compiled once, and in single precision."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from formulations import cases

import rigidjax as rj

LOOSE = dict(rtol=1e-7, atol=1e-7)


def top(inertia, weight):
    return rj.FixedPointBody(inertia, rj.AxialGravityPotential(weight))


@pytest.mark.exhaustive("RodriguesParameters")
@pytest.mark.parametrize(
    "rotation", [rj.Quaternion(), rj.RodriguesParameters()], ids=cases.rotation_name
)
def test_batch_over_all_inputs(rotation):
    """States, leaves of the model and times at once: each trajectory as if it were alone."""

    def run(inertia, weight, orientation, omega, t1):
        model = rj.NullSpace(top(inertia, weight), rotation)
        state = rj.State(orientation=orientation, angular_velocity=omega)
        solution = rj.simulate(model, state, t1, solver=diffrax.Tsit5(), **LOOSE)
        return solution.ys, solution.ts, solution.stats, solution.states

    rng = np.random.default_rng(17)
    states = cases.random_states(rng, top(np.ones(3), 1.0), 4)
    batch = (
        jnp.asarray(rng.uniform(2.0, 3.0, (4, 3))),
        jnp.asarray(rng.uniform(1.0, 5.0, 4)),
        states.orientation,
        4.0 * states.angular_velocity,
        jnp.asarray(rng.uniform(0.5, 2.0, 4)),
    )
    ys, ts, stats, found = jax.jit(jax.vmap(run))(*batch)
    assert np.array_equal(ts[:, 0], batch[-1])
    single = jax.jit(run)
    for i in range(4):
        ys_i, _, stats_i, found_i = single(*(x[i] for x in batch))
        for key in ("num_steps", "num_accepted_steps", "num_rejected_steps", "num_rhs"):
            assert int(stats[key][i]) == int(stats_i[key])
        # Round-off in the choice of steps shows in the error of the steps, which is 1e-6.
        assert cases.error(jax.tree.leaves(ys)[0][i], jax.tree.leaves(ys_i)[0]) < 1e-9
        assert cases.error(cases.attitude(found)[i], cases.attitude(found_i)) < 1e-9


def test_batch_of_stacked_models_outside_jit():
    """`filter_vmap` over the leaves of a model and of a state, without `jit`."""
    models = eqx.filter_vmap(lambda weight: rj.NullSpace(top((3.0, 2.0, 1.0), weight)))(
        jnp.array([1.0, 2.0])
    )
    states = jax.vmap(lambda w: rj.State(angular_velocity=w))(jnp.ones((2, 3)))
    run = lambda model, state: rj.simulate(model, state, 0.5, **LOOSE)  # noqa: E731
    batch = eqx.filter_vmap(run)(models, states)
    one = run(jax.tree.map(lambda x: x[1], models), jax.tree.map(lambda x: x[1], states))
    assert cases.error(batch.ys[1], one.ys) < 1e-13
    assert batch.energy.shape == (2, 1)


def test_compiled_once():
    """New values, saved times and tolerances do not compile again; new shapes do.

    The forces are traced once for all compiled functions that contain them.
    """
    traces = []

    def moment(t, R, omega):
        traces.append(1)
        return -0.1 * omega

    def run(weight, omega, t1, ts, inertia=(3.0, 2.0, 1.0), **tolerances):
        body = rj.FixedPointBody(inertia, rj.AxialGravityPotential(weight), moment)
        state = rj.State(angular_velocity=omega)
        before = len(traces)
        rj.simulate(rj.NullSpace(body), state, t1, ts=ts, solver=diffrax.Tsit5(), **tolerances)
        return len(traces) - before

    assert run(1.0, (0.1, 0.2, 3.0), 1.0, [0.2, 0.5], rtol=1e-6, atol=1e-6) > 0
    assert run(2.0, (0.3, 0.2, 3.0), 1.0, [0.2, 0.5], rtol=1e-6, atol=1e-6) == 0
    assert run(2.0, (0.3, 0.2, 3.0), 2.0, [0.7, 1.5], rtol=1e-6, atol=1e-6) == 0
    assert run(2.0, (0.3, 0.2, 3.0), 2.0, [0.7, 1.5], rtol=1e-7, atol=1e-8) == 0
    assert run(2.0, (0.3, 0.2, 3.0), 2.0, [0.7, 1.5, 1.6], rtol=1e-7, atol=1e-8) == 0
    tensor = np.diag((3.0, 2.0, 1.0))
    assert run(2.0, (0.3, 0.2, 3.0), 2.0, [0.7, 1.5], tensor, rtol=1e-7, atol=1e-8) > 0


def test_simulate_inside_jit():
    """Results do not depend on whether `simulate` is called from compiled code."""
    model = rj.NullSpace(top((3.0, 2.0, 1.0), 2.0))
    state = rj.State(angular_velocity=(0.1, 0.2, 3.0))
    outside = rj.simulate(model, state, 1.0, **LOOSE)
    inside = eqx.filter_jit(rj.simulate)(model, state, 1.0, **LOOSE)
    assert inside.result == rj.RESULTS.successful
    assert cases.error(inside.ys, outside.ys) < 1e-13
    assert int(inside.stats["num_steps"]) == int(outside.stats["num_steps"])


@pytest.mark.exhaustive(but=("NullSpace-Quaternion-zero-body",))
@pytest.mark.float32
@pytest.mark.parametrize(
    "model",
    [
        rj.NullSpace(top((3.0, 2.0, 1.0), 2.0)),
        rj.Absolute(top((3.0, 2.0, 1.0), 2.0), rj.Directors()),
        rj.NullSpace(top((3.0, 2.0, 1.0), 2.0), rj.EulerAngles("ZXZ")),
    ],
    ids=cases.model_name,
)
def test_single_precision(model):
    """Single precision in, single precision throughout, whatever the default is."""
    model = jax.tree.map(lambda x: x.astype(jnp.float32), model)
    omega = np.array([0.1, 0.2, 3.0], np.float32)
    state = rj.State(angular_velocity=omega)
    solution = rj.simulate(model, state, 2.0, ts=[0.5, 2.0], rtol=1e-5, atol=1e-5)
    assert solution.ts.dtype == jnp.float32
    assert {leaf.dtype for leaf in jax.tree.leaves(solution.ys)} == {np.dtype(np.float32)}
    states = jax.vmap(model.decode)(solution.ts, solution.ys)
    assert states.orientation.dtype == jnp.float32
    energy = jax.vmap(model.energy)(solution.ts, solution.ys)
    # 0.5 * (3 * 0.01 + 2 * 0.04 + 9) + 2, conserved to ten times the tolerance.
    assert np.allclose(energy, 6.555, rtol=1e-4)
    assert np.max(jax.vmap(model.drift)(solution.ts, solution.ys)) < 1e-6
