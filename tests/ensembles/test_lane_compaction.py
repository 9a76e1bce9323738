"""Lane compaction of XLA loops: against `jax.vmap`, with counts of iterations."""

import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.native.jaxrules import lane_compaction

COUNT = 1100
# One in fifty needs 100 times as many iterations; some need none.
LENGTHS = np.where(np.arange(COUNT) % 50 == 7, 400, np.arange(COUNT) % 5)


def plain(p):
    """Iterate, with a value that depends on the number of iterations and a constant of the lane."""
    start = 0, p["x"], jnp.zeros(3)
    turn = lambda s: (s[0] + 1, 0.5 * s[1] + p["x"], s[2].at[s[0] % 3].add(s[1]))  # noqa: E731
    return jax.lax.while_loop(lambda s: s[0] < p["n"], turn, start)


def iterate_guarded(p):
    """Iterate in a loop of Equinox, whose condition is evaluated for the whole batch."""
    turn = lambda s: (s[0] + 1, 0.5 * s[1] + p["x"])  # noqa: E731
    going = lambda s: s[0] < p["n"]  # noqa: E731
    return eqxi.while_loop(going, turn, (jnp.array(0), p["x"]), max_steps=1000, kind="lax")


def iterate_nested(p):
    """Iterate in two batched loops, the inner one over few elements."""
    inner = lambda k: plain({"n": p["n"] + k, "x": p["x"]})[:2]  # noqa: E731
    return jax.vmap(inner)(jnp.arange(3))


def members(count=COUNT):
    x = np.random.default_rng(0).normal(size=count)
    return {"n": jnp.asarray(LENGTHS[:count]), "x": jnp.asarray(x)}


def by_lanes(function, given):
    tree = jax.tree.structure(given)
    one = [x[0] for x in jax.tree.leaves(given)]
    closed = jax.make_jaxpr(lambda *x: function(tree.unflatten(x)))(*one)
    run = lambda p: lane_compaction.evaluate_with_lane_compaction(closed, jax.tree.leaves(p))  # noqa: E731
    return jax.jit(jax.vmap(run))(given)


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (plain, COUNT),
        (plain, lane_compaction.LANES + 1),
        (iterate_guarded, COUNT),
        (iterate_nested, COUNT),
    ],
)
def test_lane_compaction_equals_vmap(function, count):
    expected = jax.tree.leaves(jax.jit(jax.vmap(function))(members(count)))
    for value, right in zip(by_lanes(function, members(count)), expected, strict=True):
        assert value.dtype == right.dtype and np.allclose(value, right, rtol=1e-14, atol=0)


def test_members_are_computed_in_turn():
    """Against `jax.vmap`; finished elements are replaced, so that few lanes are idle."""
    count, lanes = 60, 7
    given = members(count) | {"n": jnp.asarray(np.arange(count) % 9)}
    turns = []

    def turn(p, s, running):
        jax.debug.callback(lambda r: turns.append(bool(r)), running)
        return s[0] + 1, p["n"], 0.5 * s[2] + p["x"]

    @jax.jit
    def map_members(given):
        return lane_compaction.map_with_lane_compaction(
            given, lambda p: (0, p["n"], p["x"]), lambda s: s[0] < s[1], turn,
            lambda p, s: {"value": s[2], "twice": 2 * p["n"]}, lanes,
        )  # fmt: skip

    result = jax.block_until_ready(map_members(given))
    jax.effects_barrier()
    _, value, _ = jax.vmap(plain)(given)
    assert np.allclose(result["value"], value, rtol=1e-14, atol=0)
    assert np.array_equal(result["twice"], 2 * given["n"])
    total, width = int(given["n"].sum()), lanes
    # Under `vmap` the callback is one for each lane; those that wait for others are refilled when
    # as many turns are lost as there are lanes, and the last ones end alone.
    assert sum(turns) == total <= len(turns) <= total + 9 * width + 2 * count


def test_runs_with_lane_compaction():
    """Members of an ensemble end at different times, and one never does."""
    body = rj.FixedPointBody(jnp.array([0.5, 0.5, 0.25]), potential=lambda R: 5.0 * R[2, 2])
    model = rj.NullSpace(body)

    def run(p):
        state = rj.State(angular_velocity=p["spin"] * jnp.array([[0.1, 0.0, 1.0]]))
        solution = rj.simulate(
            model, state, p["end"], rtol=1e-6, atol=1e-6, max_steps=200, backend="native"
        )
        return {"y": solution.ys[-1]}

    count = lane_compaction.LANES + 20
    ends = np.where(np.arange(count) % 40 == 3, 1.0, 0.02)
    spins = np.linspace(1.0, 5.0, count)
    spins[10] = 1e6
    found = rj.ensemble(run, {"spin": spins, "end": ends}, progress=False, threads=1)
    assert found.failures == {"max_steps_reached": 1} and found.failed.tolist() == [10]
    for k in (0, 3, count - 1):
        alone = run({"spin": jnp.asarray(spins[k]), "end": jnp.asarray(ends[k])})
        assert np.allclose(found.outputs["y"][k], alone["y"], rtol=1e-11, atol=1e-12)
        assert found.reached[k] == ends[k]
