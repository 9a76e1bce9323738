"""Ensembles in memory: against `jax.vmap`, with failed members, on devices and threads."""

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import rigidjax as rj
from rigidjax.ensembles.chunks import sort_by_duration
from rigidjax.ensembles.members import Members

PENDULUM = rj.problems.simple_pendulum()
TS = np.linspace(0.0, 1.0, 5)


def simulate_pendulum(p, ts: Any = TS, solver=None, **options):
    state = PENDULUM.state0
    # The bob is 1 m from the hinge, in the direction of x.
    moving = p["rate"] * jnp.array([[0.0, 0.0, 1.0]]), p["rate"] * jnp.array([[0.0, 1.0, 0.0]])
    state = eqx.tree_at(lambda s: (s.angular_velocity, s.velocity), state, moving)
    model = rj.NullSpace(PENDULUM.system)
    return rj.simulate(model, state, 1.0, ts=ts, solver=solver, rtol=1e-6, atol=1e-6, **options)


def formula(p):
    return {"sum": p["a"] + p["b"].sum(), "product": p["a"] * p["b"]}


def parameters(count):
    return {"a": np.arange(count) / 7, "b": np.arange(3.0 * count).reshape(count, 3)}


@pytest.mark.parametrize(("count", "batch", "threads"), [(1, None, None), (100, 7, 3), (64, 64, 1)])
def test_ensemble_equals_vmap(count, batch, threads):
    given = parameters(count)
    found = rj.ensemble(formula, given, batch=batch, threads=threads, progress=False)
    expected = jax.vmap(formula)(jax.tree.map(jnp.asarray, given))
    assert len(found) == count and len(found.failed) == 0
    for name, value in expected.items():
        assert np.array_equal(found.outputs[name], value)
    assert found.outputs["sum"].dtype == jnp.asarray(given["a"]).dtype


def test_pytrees_and_random_keys_as_parameters():
    """Any pytree, random keys and integers among its leaves."""
    keys = jax.random.split(jax.random.key(3), 10)
    run = lambda p: jax.random.normal(p[0], (2,)) + p[1].stack.astype(float)  # noqa: E731
    stacked = Stacked(jnp.arange(10))
    found = rj.ensemble(run, (keys, stacked), batch=3, progress=False)
    expected = jax.vmap(lambda *p: run(p))(keys, stacked)
    np.testing.assert_allclose(found.outputs, expected, rtol=1e-14)
    assert found.names == ("value",)


class Stacked(eqx.Module):
    stack: jax.Array


@pytest.fixture(scope="module")
def pendulums():
    """Return members, one with an infinite rate and two that exceed the step limit."""
    rates = np.array([0.0, 1.0, np.nan, 300.0, 2.0, 200.0, -1.0])
    run = lambda p: simulate_pendulum(p, max_steps=100)  # noqa: E731
    return rates, rj.ensemble(run, {"rate": rates}, progress=False)


def test_failed_members_are_nan_and_listed(pendulums):
    """Other members are not affected."""
    rates, found = pendulums
    assert found.failed.tolist() == [2, 3, 5]
    assert found.failures == {"invalid_input": 1, "max_steps_reached": 2}
    assert "3 failed: 1 invalid_input, 2 max_steps_reached; numbers 2, 3, 5" in repr(found)
    energy = found.outputs["energy"]
    assert np.isnan(energy[[2, 3, 5]]).all()
    for k in (0, 1, 4, 6):
        alone = simulate_pendulum({"rate": jnp.asarray(rates[k])})
        # Energies are 2e-5 J off at this tolerance. One member and several are two kernels, which
        # round differently (1.3e-12 J with the few optimisations of the tests, 2e-15 J without).
        assert np.allclose(energy[k], alone.energy, rtol=1e-12, atol=1e-11)
        assert found.num_steps[k] == alone.stats["num_steps"]
        assert found.reached[k] == 1.0
    assert found.num_steps[3] == 100 and 0 <= found.reached[3] < 1
    # Outside of an ensemble the same run raises, whatever was compiled inside.
    with pytest.raises(rj.SimulationError, match="maximum number of solver steps"):
        simulate_pendulum({"rate": jnp.asarray(300.0)}, max_steps=100)


def test_rerun_of_failed_members(pendulums):
    """Only failed members are computed, with another solver."""
    rates, _ = pendulums
    run = lambda p, max_steps=100: simulate_pendulum(p, max_steps=max_steps).energy[-1]  # noqa: E731
    found = rj.ensemble(run, {"rate": rates[[0, 3]]}, progress=False)
    assert found.failed.tolist() == [1]
    again = found.rerun(max_steps=10_000)
    assert len(again) == 1 and len(again.failed) == 0
    expected = simulate_pendulum({"rate": jnp.asarray(rates[3])}).energy[-1]
    assert np.allclose(again.outputs, expected, rtol=1e-12)
    with pytest.raises(ValueError, match="none failed"):
        again.rerun()
    with pytest.raises(ValueError, match="indices 0 to 1"):
        found.rerun([2])


def test_dataset_has_names_and_units(pendulums):
    rates, found = pendulums
    data = found.to_xarray(units={"rate": "rad/s"})
    sizes = {"member": 7, "time": 5, "body": 1, "space": 3, "quaternion": 4, "axis": 3}
    assert dict(data.sizes) == sizes
    assert np.array_equal(data["rate"], rates, equal_nan=True)
    assert data["rate"].units == "rad/s" and data["angular_velocity"].units == "rad s-1"
    assert data["result"].values[3] == "max_steps_reached"
    with pytest.raises(ValueError, match="no output or parameter 'energie'"):
        found.to_xarray(units={"energie": "J"})
    with pytest.raises(ValueError, match="must name 1 dimensions"):
        found.to_xarray(dims={"energy": ("a", "b")})


def test_statistics_agree_with_outputs():
    given = parameters(1000)
    given["a"][5] = np.nan
    chosen = {"sum": [rj.ensembles.Moments(), rj.ensembles.Quantiles((0.5,))]}
    found = rj.ensemble(formula, given, batch=64, statistics=chosen, progress=False)
    sums = np.delete(given["a"] + given["b"].sum(axis=1), 5)
    assert found.outputs is None and found.failed.tolist() == [5]
    assert found.statistics["sum"]["count"] == 999
    assert np.allclose(found.statistics["sum"]["mean"], sums.mean(), rtol=1e-6)
    assert np.allclose(found.statistics["sum"]["quantiles"], np.median(sums), rtol=2e-3)
    with pytest.raises(ValueError, match="names 'total'"):
        rj.ensemble(formula, given, statistics={"total": rj.ensembles.Moments()})


def test_parameters_from_a_dataset_and_files(tmp_path):
    given = parameters(6)
    data = xarray.Dataset({"a": ("member", given["a"]), "b": (("k", "member"), given["b"].T)})
    data.to_netcdf(tmp_path / "p.nc")
    expected = rj.ensemble(formula, given, progress=False).outputs
    for one in (data, tmp_path / "p.nc", str(tmp_path / "p.nc")):
        found = rj.ensemble(formula, one, progress=False).outputs
        assert np.array_equal(found["product"], expected["product"])
    # The dataset of an ensemble has its parameters as coordinates.
    returned = rj.ensemble(formula, given, progress=False).to_xarray(units={"a": "seconds"})
    returned = returned.assign_coords(member=np.arange(6) + 10)
    returned.to_netcdf(tmp_path / "returned.nc", engine="h5netcdf")
    for one in (returned, returned[["a", "b"]], tmp_path / "returned.nc"):
        found = rj.ensemble(formula, one, progress=False)
        assert found.members.names == ["a", "b"]
        assert np.array_equal(found.outputs["product"], expected["product"])
    with pytest.raises(ValueError, match=r"contains no parameters: it has neither.*'result'"):
        rj.ensemble(formula, returned.drop_vars(["a", "b"]))
    (tmp_path / "p.csv").write_text("a,b\n1.0,2\n3.0,4\n")
    found = rj.ensemble(
        lambda p: (p["a"] / p["b"].astype(float), p["b"] + 1), tmp_path / "p.csv", progress=False
    )
    # Integers remain integers.
    assert found.outputs[0].tolist() == [0.5, 0.75]
    assert found.outputs[1].tolist() == [3, 5] and found.outputs[1].dtype.kind == "i"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1.0,x\n", "cannot be read as parameters: 'x' in the column 'b' is not a number"),
        ("a,b\n", "needs a line of names and a line for each member"),
        ("", "p.csv cannot be read as parameters: No columns"),
        ("a,b\n1,2\n1,2,3\n", "Expected 2 fields in line 3, saw 3"),
    ],
    ids=["text", "no lines", "empty", "ragged"],
)
def test_invalid_parameter_files_raise(text, message, tmp_path):
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        rj.ensemble(formula, tmp_path / "p.csv")
    (tmp_path / "p.nc").write_text("junk")
    with pytest.raises(ValueError, match="p.nc cannot be read as parameters: did not find a match"):
        rj.ensemble(formula, tmp_path / "p.nc")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "contains no arrays"),
        ({"a": 1.0}, "one common leading axis of members"),
        ({"a": np.ones(3), "b": np.ones(4)}, r"a: \(3,\), b: \(4,\)"),
        ({"a": np.ones(0)}, "no members"),
        (xarray.Dataset({"a": ("x", [1.0]), "b": ("y", [1.0])}), "share one dimension"),
    ],
    ids=["none", "number", "unequal", "empty", "dimensions"],
)
def test_invalid_parameters_raise(parameters, message):
    with pytest.raises(ValueError, match=message):
        rj.ensemble(formula, parameters)
    if not isinstance(parameters, xarray.Dataset):
        with pytest.raises(ValueError, match="one common leading axis of members"):
            rj.ensembles.mean(formula, parameters)


def test_invalid_input_raises(tmp_path):
    given = parameters(4)
    with pytest.raises(ValueError, match=r"`ensemble\(batch=...\)` must be positive"):
        rj.ensemble(formula, given, batch=0)
    with pytest.raises(ValueError, match=r"`ensemble\(threads=...\)` must be positive"):
        rj.ensemble(formula, given, threads=0)
    with pytest.raises(TypeError, match="takes JAX devices"):
        rj.ensemble(formula, given, devices=["cpu"])
    with pytest.raises(ValueError, match="returns no arrays"):
        rj.ensemble(lambda p: None, given)
    for run in (lambda p: jnp.ones(int(p["a"])), lambda p: p["b"] if p["a"] > 1 else p["a"]):
        with pytest.raises(TypeError, match="traced once for all members: shapes of its outputs"):
            rj.ensemble(run, given)
    with pytest.raises(TypeError, match="must contain numbers"):
        rj.ensemble(formula, {"a": np.array(["x", "y"])})
    with pytest.raises(FileNotFoundError, match="There is no parameter file"):
        rj.ensemble(formula, tmp_path / "p.nc")
    with pytest.raises(ValueError, match="read from .nc and .csv"):
        (tmp_path / "p.txt").touch()
        rj.ensemble(formula, tmp_path / "p.txt")
    with pytest.raises(ValueError, match="pass `ts` to `simulate`"):
        rj.ensemble(
            lambda p: simulate_pendulum(p, ts=None, saveat=diffrax.SaveAt(dense=True)),
            {"rate": np.ones(2)},
        )


@pytest.mark.parametrize("batch", [7, 64])
def test_mean_and_its_gradient(batch):
    """Values and gradients by closed-over values, for whole chunks and a remainder."""
    given = parameters(20)

    def cost(x):
        return rj.ensembles.mean(lambda p: jnp.sin(x * p["a"]) * p["b"], given, batch=batch)

    expected = np.sin(0.3 * given["a"])[:, None] * given["b"]
    assert np.allclose(cost(0.3), expected.mean(axis=0), rtol=1e-6)
    slope = jax.jit(jax.grad(lambda x: cost(x)[0]))(0.3)
    expected = given["a"] * np.cos(0.3 * given["a"]) * given["b"][:, 0]
    assert np.allclose(slope, expected.mean(), rtol=1e-6)


@pytest.mark.parametrize("place", ["memory", "store"])
def test_members_sorted_by_length(place, tmp_path):
    """The longest start first; results are in the order of the members."""
    given = parameters(50)
    lengths = np.random.default_rng(0).permutation(50)
    options: dict[str, Any] = {"memory": {}, "store": {"out": tmp_path / "s.zarr"}}[place]
    run = lambda p: {"total": p["a"] + p["b"].sum()}  # noqa: E731
    found = rj.ensemble(run, given, batch=8, lengths=lengths, progress=False, **options)
    assert np.array_equal(found.outputs["total"], given["a"] + given["b"].sum(axis=1))
    if place == "store":
        with pytest.raises(ValueError, match="is not a parameter"):
            rj.ensemble(run, given, lengths="c", out=tmp_path / "t.zarr")
        assert not (tmp_path / "t.zarr").exists()
        with pytest.raises(rj.ensembles.StoreError, match="lengths was"):
            rj.ensemble(run, given, batch=8, lengths="a", out=tmp_path / "s.zarr", progress=False)


def test_lengths_do_not_change_the_order():
    """Members are sorted as a whole, or in each chunk."""
    members = Members({"a": np.array([1.0, 3.0, 2.0, 5.0, 4.0])})
    assert sort_by_duration(members, "a", 5).tolist() == [3, 4, 1, 2, 0]
    assert sort_by_duration(members, "a", 2).tolist() == [1, 0, 3, 2, 4]
    assert sort_by_duration(members, None, 2).tolist() == [0, 1, 2, 3, 4]
    for bad in ("b", np.ones(4), np.array(["x"] * 5)):
        with pytest.raises(ValueError, match=r"`ensemble\(lengths="):
            sort_by_duration(members, bad, 5)
