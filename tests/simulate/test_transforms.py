"""`simulate` under jit and vmap, compiled once, and in single precision."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from formulations import cases

import rigidjax as rj

LOOSE = dict(rtol=1e-7, atol=1e-7)


def top(inertia, weight):
    return rj.FixedPointBody(inertia, rj.AxialGravityPotential(weight))


def test_batch_over_all_inputs():
    """States, leaves of the model and times at once: each trajectory as if it were alone."""

    def run(inertia, weight, orientation, omega, t1):
        model = rj.NullSpace(top(inertia, weight))
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
        assert cases.error(ys[i], ys_i) < 1e-9
        assert cases.error(cases.attitude(found)[i], cases.attitude(found_i)) < 1e-9


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


@pytest.mark.float32
def test_single_precision():
    """Single precision in, single precision throughout, whatever the default is."""
    model = rj.NullSpace(top((3.0, 2.0, 1.0), 2.0))
    model = jax.tree.map(lambda x: x.astype(jnp.float32), model)
    omega = np.array([0.1, 0.2, 3.0], np.float32)
    state = rj.State(angular_velocity=omega)
    solution = rj.simulate(model, state, 2.0, ts=[0.5, 2.0], rtol=1e-5, atol=1e-5)
    assert solution.ts.dtype == jnp.float32
    assert solution.ys.dtype == jnp.float32
    states = jax.vmap(model.decode)(solution.ts, solution.ys)
    assert states.orientation.dtype == jnp.float32
    energy = jax.vmap(model.energy)(solution.ts, solution.ys)
    # 0.5 * (3 * 0.01 + 2 * 0.04 + 9) + 2, conserved to ten times the tolerance.
    assert np.allclose(energy, 6.555, rtol=1e-4)
    assert np.max(jax.vmap(model.drift)(solution.ts, solution.ys)) < 1e-6
