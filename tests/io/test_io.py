"""Trajectories as labelled arrays, and their files."""

import os

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import rigidjax as rj
from rigidjax import io, problems
from rigidjax.io.names import unknown_names

TS = np.linspace(0.0, 0.4, 5)


@pytest.fixture(scope="module")
def racket():
    return problems.tennis_racket()


@pytest.fixture(scope="module")
def solution(racket):
    return rj.simulate(rj.NullSpace(racket.system), racket.state0, 0.4, ts=TS)


@pytest.fixture(scope="module")
def dataset(solution):
    return solution.to_xarray()


def test_dataset_has_the_values_of_the_solution(solution, dataset):
    np.testing.assert_array_equal(dataset.time, TS)
    for name in ("position", "orientation", "velocity", "angular_velocity"):
        np.testing.assert_array_equal(dataset[name], getattr(solution.states, name))
    quantities = "energy", "linear_momentum", "angular_momentum", "position_drift", "velocity_drift"
    for name in quantities:
        np.testing.assert_array_equal(dataset[name], getattr(solution, name))
    parts = dataset.kinetic_energy + dataset.potential_energy
    np.testing.assert_array_equal(dataset.energy, parts)
    np.testing.assert_array_equal(dataset.unknowns, solution.ys)
    np.testing.assert_array_equal(
        dataset.inertia.sel(body="body"), np.diag(solution.model.system.inertia)
    )


def test_dimensions_have_names_and_units(dataset):
    assert dataset.orientation.dims == ("time", "body", "quaternion")
    assert dataset.position.dims == ("time", "body", "space")
    assert dataset.angular_velocity.dims == ("time", "body", "axis")
    assert dataset.angular_velocity.attrs["units"] == "rad s-1"
    assert dataset.angular_velocity.attrs["frame"] == "body"
    assert dataset.position.attrs["frame"] == "space"
    assert dataset.angular_momentum.attrs["units"] == "kg m2 s-1"
    assert dataset.time.attrs["units"] == "s"
    for variable in dataset.data_vars.values():
        assert "units" in variable.attrs
        assert variable.dtype != object
    assert list(dataset.unknown.values) == ["a1", "a2", "a3", "a4", "w1", "w2", "w3"]


def test_attributes_record_the_settings(racket, solution, dataset):
    assert dataset.attrs["formulation"] == "NullSpace"
    assert dataset.attrs["rotation"] == "Quaternion(zero)"
    assert dataset.attrs["rates"] == "body"
    assert "scalar first" in dataset.attrs["conventions"]
    assert dataset.attrs["num_steps"] == int(solution.stats["num_steps"])
    assert dataset.attrs["result"] == "successful"
    assert dataset.attrs["rigidjax_version"] == rj.__version__
    labelled = io.to_dataset(solution, {"source": racket.source})
    assert labelled.attrs["source"] == racket.source


def test_file_round_trip(tmp_path, solution, dataset):
    path = io.save(solution, tmp_path / "racket.nc")
    back = io.load(path)
    xarray.testing.assert_identical(back, dataset)
    assert {v.dtype for v in back.variables.values()} == {
        v.dtype for v in dataset.variables.values()
    }
    assert os.listdir(tmp_path) == ["racket.nc"]


def test_charts_are_saved(racket):
    model = rj.NullSpace(racket.system, rj.RotationVector())
    sol = rj.simulate(model, racket.state0, 0.4, ts=TS)
    data = sol.to_xarray()
    assert data.chart.dims == ("time", "body", "quaternion")
    np.testing.assert_array_equal(data.chart, sol.ys.reference)
    np.testing.assert_array_equal(data.unknowns, sol.ys.values)
    assert data.attrs["recharting"] == "True"


def test_bodies_that_translate_have_names_and_masses():
    bodies = [rj.Body("hammer", 2.0, (1.0, 2.0, 2.5)), rj.Body("nail", 0.1, (0.1, 0.2, 0.2))]
    system = rj.System(bodies, forces=rj.Gravity((0.0, 0.0, -9.81)))
    sol = rj.simulate(rj.NullSpace(system), system.reference_state(), 1.0, ts=[0.0, 1.0])
    data = sol.to_xarray()
    assert list(data.body.values) == ["hammer", "nail"]
    np.testing.assert_array_equal(data.mass.sel(body="nail"), 0.1)
    assert data.mass.attrs["units"] == "kg"
    fall = data.position.sel(body="nail", space="z").isel(time=-1)
    assert float(fall) == pytest.approx(-9.81 / 2, rel=1e-12)
    names = list(data.unknown.values)
    assert len(names) == sol.model.num_unknowns
    assert names[:4] == ["hammer.x1", "hammer.x2", "hammer.x3", "hammer.a1"]
    assert names[-6:] == ["nail.v1", "nail.v2", "nail.v3", "nail.w1", "nail.w2", "nail.w3"]


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (
            rj.NullSpace,
            [
                *["crank.x1", "crank.x2", "crank.x3", "crank.a1", "crank.a2", "crank.a3"],
                *["crank.a4", "rod.x1", "rod.x2", "rod.x3", "rod.a1", "rod.a2", "rod.a3", "rod.a4"],
                *["pin.rate1", "knee.rate1", "pin.angle"],
            ],
        ),
        (rj.JointStart, "pin.angle"),
        (lambda system: rj.Absolute(system, rj.RotationVector(), index=3), "knee.lambda5"),
        (lambda system: rj.Absolute(system, index=2, stabilized=True), "knee.mu5"),
    ],
    ids=["null space", "joint start", "index 3", "stabilized"],
)
def test_unknowns_of_systems_with_joints_have_names(model, names):
    bodies = [
        rj.Body("crank", 1.0, (1e-3, 1e-2, 1e-2), position=(0.5, 0.0, 0.0)),
        rj.Body("rod", 1.0, (1e-3, 1e-2, 1e-2), position=(1.5, 0.0, 0.0)),
    ]
    joints = [
        rj.Revolute("ground", "crank", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), name="pin"),
        rj.Revolute("crank", "rod", (1.0, 0.0, 0.0), (0.0, 0.0, 1.0), name="knee"),
    ]
    built = model(rj.System(bodies, joints, rj.TorsionSpring("pin", 1.0)))
    found = unknown_names(built)
    assert len(found) == len(set(found)) == built.num_unknowns
    assert names in (found, found[-1])


@pytest.fixture(scope="module")
def batch(racket):
    @eqx.filter_jit
    @jax.vmap
    def run(factor):
        inertia = factor * jnp.array([41.6, 11.6, 50.0])
        model = rj.NullSpace(rj.FixedPointBody(inertia))
        return rj.simulate(model, racket.state0, 0.4, ts=TS)

    return run(jnp.array([1.0, 2.0]))


def test_batch_has_samples_in_front(tmp_path, batch, solution):
    data = batch.to_xarray()
    assert data.orientation.dims == ("sample", "time", "body", "quaternion")
    assert data.sizes["sample"] == 2
    assert data.num_steps.dims == ("sample",)
    np.testing.assert_allclose(data.energy.isel(sample=1), 2 * data.energy.isel(sample=0))
    np.testing.assert_array_equal(data.inertia[:, 0, 0, 0], [41.6, 83.2])
    np.testing.assert_allclose(data.unknowns.isel(sample=0), solution.ys, atol=1e-12)
    xarray.testing.assert_identical(io.load(io.save(data, tmp_path / "batch.nc")), data)


def test_batch_with_failed_lanes(tmp_path, racket):
    """Unreached values are NaN, and `result` gives the reason; the other lanes are complete."""
    slow, fast = 1.0, 100.0

    @eqx.filter_jit
    @jax.vmap
    def run(speed, moment):
        model = rj.NullSpace(rj.FixedPointBody(moment * jnp.array([41.6, 11.6, 50.0])))
        state = rj.State(angular_velocity=speed * racket.state0.angular_velocity)
        return rj.simulate(model, state, 0.4, ts=TS[1:], max_steps=300, throw=False)

    solution = run(jnp.array([slow, slow, fast]), jnp.array([1.0, np.nan, 1.0]))
    data = solution.to_xarray()
    assert list(data.result.values[:1]) == ["successful"]
    assert "not admissible" in str(data.result.values[1])
    assert "maximum number of solver steps" in str(data.result.values[2])
    np.testing.assert_array_equal(data.time, TS[1:])
    for name in ("orientation", "angular_velocity", "energy", "unknowns"):
        finite = np.isfinite(data[name].values).reshape(3, len(TS) - 1, -1).all(axis=2)
        np.testing.assert_array_equal(finite, np.isfinite(solution.ts))
    assert finite[0].all() and not finite[1].any() and not finite[2].all()
    xarray.testing.assert_identical(io.load(io.save(data, tmp_path / "failed.nc")), data)


def test_batch_with_differing_times(batch):
    times = batch.ts.at[1, 0].set(0.05)
    with pytest.raises(ValueError, match="different times, which one `time` axis cannot hold"):
        eqx.tree_at(lambda s: s.ts, batch, times).to_xarray()


def test_batch_of_batches(batch):
    nested = jax.tree.map(lambda leaf: leaf[None], eqx.filter(batch, eqx.is_array))
    nested = eqx.combine(nested, batch)
    with pytest.raises(ValueError, match=r"one batch dimension at most.*\(1, 2, 5\)"):
        nested.to_xarray()


def test_unreached_times_are_omitted(racket):
    def half_a_turn(t, y, args, **kwargs):
        return y[0]

    sol = rj.simulate(
        rj.NullSpace(racket.system),
        racket.state0,
        0.4,
        ts=np.linspace(0, 0.4, 41),
        event=diffrax.Event(half_a_turn),
    )
    data = sol.to_xarray()
    assert 0 < data.sizes["time"] < 41
    assert np.all(np.isfinite(data.unknowns))
    assert "event" in data.attrs["result"].lower()


def test_solution_without_times(solution):
    empty = eqx.tree_at(lambda s: s.ts, solution, None)
    with pytest.raises(ValueError, match="No times were saved: pass `ts=`"):
        empty.to_xarray()


def test_existing_file_is_not_overwritten_without_force(tmp_path, dataset):
    path = tmp_path / "racket.nc"
    path.write_text("precious")
    with pytest.raises(FileExistsError, match=r"racket\.nc exists. .* or pass `force=True`"):
        io.save(dataset, path)
    with pytest.raises(FileExistsError, match="exists"):
        io.check_target(path)
    assert path.read_text() == "precious"
    assert io.check_target(path, force=True) == path
    assert path.read_text() == "precious"
    io.save(dataset, path, force=True)
    assert io.load(path).sizes["time"] == 5


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("missing/a.nc", FileNotFoundError, r"Cannot write .*a\.nc: No such file or directory"),
        ("file/a.nc", NotADirectoryError, r"Cannot write .*a\.nc: Not a directory"),
        ("folder", IsADirectoryError, r"Cannot write .*folder: it is a folder. Name a file"),
    ],
)
@pytest.mark.parametrize("force", [False, True])
def test_unwritable_path_raises(tmp_path, dataset, name, error, message, force):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    before = sorted(tmp_path.rglob("*"))
    for write in (lambda p: io.save(dataset, p, force=force), lambda p: io.check_target(p, force)):
        with pytest.raises(error, match=message):
            write(tmp_path / name)
    assert sorted(tmp_path.rglob("*")) == before


def test_no_partial_files(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def write():
        with io.replacing(path, force=True) as temporary:
            temporary.write_text("half")
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        write()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_missing_file_raises(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no file .*nothing\.nc"):
        io.load(tmp_path / "nothing.nc")


@pytest.mark.float32
def test_precision_is_preserved(tmp_path):
    body = problems.free_body()
    sol = rj.simulate(
        rj.NullSpace(body.system), body.state0, 0.1, ts=[0.0, 0.1], rtol=1e-4, atol=1e-4
    )
    back = io.load(io.save(sol, tmp_path / "a.nc"))
    assert back.orientation.dtype == jnp.result_type(float)
