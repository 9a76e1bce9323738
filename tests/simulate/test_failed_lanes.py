"""One bad lane of a batch is that lane's result; the others run on."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj

GOOD, NONE = (1.0, 2.0, 2.5), np.nan
UNIT = (1.0, 0.0, 0.0, 0.0)
# Inertia, mass, orientation, rate and end of each lane.
LANES = {
    "sound": (GOOD, 1.0, UNIT, 1.0, 0.5),
    "inertia NaN": ((1.0, NONE, 2.0), 1.0, UNIT, 1.0, 0.5),
    "inertia not physical": ((1.0, 2.0, 9.0), 1.0, UNIT, 1.0, 0.5),
    "mass negative": (GOOD, -1.0, UNIT, 1.0, 0.5),
    "mass zero": (GOOD, 0.0, UNIT, 1.0, 0.5),
    "quaternion zero": (GOOD, 1.0, (0.0,) * 4, 1.0, 0.5),
    "quaternion NaN": (GOOD, 1.0, (NONE,) * 4, 1.0, 0.5),
    "rates infinite": (GOOD, 1.0, UNIT, np.inf, 0.5),
    "end before start": (GOOD, 1.0, UNIT, 1.0, -0.5),
    "end NaN": (GOOD, 1.0, UNIT, 1.0, NONE),
    "sound too": (GOOD, 2.0, UNIT, 2.0, 0.4),
}
SOUND = np.array([name.startswith("sound") for name in LANES])


def run(inertia, mass, orientation, rate, t1, throw=False):
    body = rj.Body("a", mass, inertia)
    state = rj.State(orientation=orientation, angular_velocity=rate * jnp.array([0.1, 0.2, 3.0]))
    model = rj.NullSpace(rj.System(body, (), rj.Gravity((0.0, 0.0, -9.81))))
    return rj.simulate(model, state, t1, rtol=1e-6, atol=1e-6, throw=throw)


def columns():
    parts = zip(*(lane for lane in LANES.values()), strict=True)
    return [jnp.asarray(np.array(part, float)) for part in parts]


def outcome(solution):
    return np.asarray(solution.result == rj.RESULTS.invalid_input)


def test_failed_lanes_do_not_affect_others():
    solution = jax.jit(jax.vmap(run))(*columns())
    np.testing.assert_array_equal(outcome(solution), ~SOUND)
    np.testing.assert_array_equal(np.isfinite(solution.ts[:, 0]), SOUND)
    assert np.all(np.isfinite(np.asarray(solution.ys)[SOUND]))
    assert np.all(np.asarray(solution.result == rj.RESULTS.successful) == SOUND)
    # A bad lane makes no steps, for which the others would wait.
    assert np.all(np.asarray(solution.stats["num_steps"])[~SOUND] == 0)


def test_failed_lane_raises_by_name():
    """Outside a batch, the error names the invalid part of the state."""
    arguments = [column[0] for column in columns()]
    arguments[0] = jnp.array([1.0, 2.0, 9.0])
    with pytest.raises(eqx.EquinoxRuntimeError, match="principal Euler value E3 ="):
        jax.block_until_ready(eqx.filter_jit(run)(*arguments, throw=True))
    some = [column[jnp.array([0, 2])] for column in columns()]
    with pytest.raises(eqx.EquinoxRuntimeError, match="not admissible .*Build this model outside"):
        batch = eqx.filter_jit(jax.vmap(lambda *lane: run(*lane, throw=True)))
        jax.block_until_ready(batch(*some))
