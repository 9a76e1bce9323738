"""Ensembles in files: kills at any moment, other plans, invalid folders."""

import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray
from ensembles import study

import rigidjax as rj
from rigidjax.ensembles import Store, StoreError
from rigidjax.ensembles.members import Members
from rigidjax.ensembles.traced_run import TracedRun

COUNT, SHARD = 200, 10
PARAMETERS = {"start": np.arange(float(COUNT)), "shift": np.linspace(0.0, 1.0, COUNT)}


@pytest.fixture(scope="module")
def undisturbed_ensemble():
    return rj.ensemble(study.run, PARAMETERS, batch=SHARD, progress=False)


def store_ensemble(path, run=study.run, parameters=PARAMETERS, **options):
    return rj.ensemble(run, parameters, out=path, progress=False, **{"batch": SHARD, **options})


def equal(first, second):
    return all(
        np.array_equal(a, b, equal_nan=True)
        for a, b in zip(first.leaves, second.leaves, strict=True)
    ) and np.array_equal(first.result, second.result)


def test_store_holds_the_outputs(tmp_path, undisturbed_ensemble):
    """Stored outputs equal those in memory; a complete store is read."""
    path = tmp_path / "s.zarr"
    found = store_ensemble(path)
    assert equal(found, undisturbed_ensemble) and found.failed.tolist() == [17]
    with xarray.open_zarr(path, consolidated=False, chunks=None) as data:
        assert np.array_equal(data["value"], undisturbed_ensemble.outputs["value"], equal_nan=True)
        assert np.array_equal(data["shift"], PARAMETERS["shift"])
        assert data["value"].dims == ("member",)
    store = Store(path)
    assert store.missing() == [] and store.failed() == 1
    before = {
        k: os.stat(path / "progress" / "done" / str(k)).st_mtime_ns for k in range(store.num_shards)
    }
    assert equal(store_ensemble(path, batch=None), undisturbed_ensemble)
    assert before == {k: os.stat(path / "progress" / "done" / str(k)).st_mtime_ns for k in before}


def test_missing_shards_are_computed(tmp_path, undisturbed_ensemble):
    """A shard that was written but not marked, or not written at all, is not read as done."""
    path = tmp_path / "s.zarr"
    store_ensemble(path)
    for number in (0, 7, 19):
        (path / "progress" / "done" / str(number)).unlink()
    shutil.rmtree(path / "value" / "c" / "7", ignore_errors=True)
    with pytest.raises(StoreError, match="3 of 20 shards are missing"):
        Store(path).read()
    assert equal(store_ensemble(path), undisturbed_ensemble)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"run": study.other}, "program was .*, is"),
        ({"parameters": {**PARAMETERS, "shift": PARAMETERS["shift"] + 1}}, "values was"),
        ({"parameters": {k: v[:50] for k, v in PARAMETERS.items()}}, "members was 200, is 50"),
        ({"batch": 20}, "shard was 10, is 20"),
        ({"run": lambda p: {"other": p["start"]}}, "outputs was .*, is"),
    ],
    ids=["program", "values", "members", "shards", "outputs"],
)
def test_other_plans_are_rejected(complete, options, message):
    with pytest.raises(StoreError, match=message):
        store_ensemble(complete, **options)


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "s.zarr"
    store_ensemble(path)
    return path


def test_plans_depend_on_the_function():
    """A run is one operation of the traced function, and contains the forces."""

    def fingerprint(potential):
        body = rj.FixedPointBody(jnp.array([0.5, 0.5, 0.25]), potential=potential)

        def run(p):
            state = rj.State(angular_velocity=p["rate"] * jnp.ones((1, 3)))
            return rj.simulate(rj.NullSpace(body), state, 1.0, dt=0.1).ys[-1]

        return TracedRun(run, Members({"rate": np.ones(3)})).fingerprint()

    first = fingerprint(lambda R: 5.0 * R[2, 2])
    assert fingerprint(lambda R: 5.0 * R[2, 2]) == first
    assert fingerprint(lambda R: 5.0 * R[2, 2] ** 2) != first
    assert fingerprint(lambda R: 6.0 * R[2, 2]) != first


def test_invalid_stores_are_rejected(complete, tmp_path):
    with pytest.raises(FileExistsError, match="exists. Choose another name"):
        store_ensemble(complete, resume=False)
    with pytest.raises(StoreError, match=r"folders named \*.zarr"):
        store_ensemble(tmp_path / "s.nc")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        store_ensemble(tmp_path / "nowhere" / "s.zarr")
    foreign = tmp_path / "foreign.zarr"
    foreign.mkdir()
    (foreign / "mine.txt").write_text("kept")
    with pytest.raises(StoreError, match="is not a store of an ensemble"):
        store_ensemble(foreign)
    assert [p.name for p in foreign.iterdir()] == ["mine.txt"]
    (foreign / "progress").mkdir()
    for plan in ('{"members": 3}', '{"mem', "3"):
        (foreign / "progress" / "plan.json").write_text(plan)
        with pytest.raises(StoreError, match="is not a store of an ensemble"):
            store_ensemble(foreign)
    (tmp_path / "file.zarr").touch()
    with pytest.raises(StoreError, match="is not a store of an ensemble"):
        store_ensemble(tmp_path / "file.zarr")
    (tmp_path / "file.zarr").unlink()
    with pytest.raises(OSError, match="Cannot write /proc/s.zarr: "):
        store_ensemble("/proc/s.zarr")
    with pytest.raises(StoreError, match="names two arrays"):
        store_ensemble(tmp_path / "t.zarr", run=lambda p: p)
    assert list(tmp_path.iterdir()) == [foreign]
    with pytest.raises(ValueError, match="not both"):
        store_ensemble(tmp_path / "t.zarr", statistics={"value": rj.ensembles.Moments()})


def test_full_disk_is_reported(tmp_path, monkeypatch, undisturbed_ensemble):
    """Completed shards are kept, and the same call resumes."""
    path, write = tmp_path / "s.zarr", Store._write

    def full(self, number, arrays):
        if number == 4:
            raise OSError(28, "No space left on device")
        write(self, number, arrays)

    monkeypatch.setattr(Store, "_write", full)
    with pytest.raises(
        OSError, match="No space left.* 4 of 20 shards are complete and kept; free disk space"
    ):
        store_ensemble(path, threads=1)
    assert Store(path).done() == {0, 1, 2, 3}
    monkeypatch.setattr(Store, "_write", write)
    assert equal(store_ensemble(path), undisturbed_ensemble)


PROGRAM = """
import sys
sys.path.insert(0, {tests!r})
from ensembles.test_stores import store_ensemble
store_ensemble({path!r}, batch={shard}, {option})
"""


def kill_at_random(path, kills, shard, option):
    """Compute an ensemble by a process that is killed and started again."""
    rng = random.Random(kills)
    tests = str(pathlib.Path(__file__).parents[1])
    program = PROGRAM.format(tests=tests, path=str(path), shard=shard, option=option)
    # In the precision of this process, which the plan names.
    variables = {**os.environ, "JAX_ENABLE_X64": str(int(jax.config.read("jax_enable_x64")))}
    done = 0
    for _ in range(kills):
        with subprocess.Popen([sys.executable, "-c", program], env=variables) as process:
            # Until the store grows: at any moment of the work, not of the imports alone.
            end = time.monotonic() + 120
            while not path.exists() or len(Store(path).done()) <= done:
                assert time.monotonic() < end and process.poll() is None
                time.sleep(0.01)
            time.sleep(rng.uniform(0.0, 0.3))
            process.send_signal(signal.SIGKILL)
        done = len(Store(path).done())
        if done == Store(path).num_shards:
            return


@pytest.mark.exhaustive("1-10-workers=2")
@pytest.mark.parametrize(
    ("kills", "shard", "option"), [(3, 1, "threads=1"), (1, SHARD, "workers=2")]
)
def test_killed_processes_lose_no_shard(tmp_path, kills, shard, option, undisturbed_ensemble):
    path = tmp_path / "s.zarr"
    kill_at_random(path, kills, shard, option)
    found = store_ensemble(path, batch=shard)
    if shard == SHARD:
        assert equal(found, undisturbed_ensemble)
    for values, expected in zip(found.leaves, undisturbed_ensemble.leaves, strict=True):
        assert np.allclose(values, expected, rtol=1e-15, atol=0, equal_nan=True)
    assert found.failed.tolist() == [17]
    assert sorted(os.listdir(path / "progress" / "done"), key=int) == [
        str(k) for k in range(Store(path).num_shards)
    ]


def test_page_of_a_store(tmp_path, complete):
    page, plan = tmp_path / "page.html", complete / "progress" / "plan.json"
    data = Store(complete).to_xarray()
    rj.plotting.write_ensemble_page(data, page, files=[plan])
    text = page.read_text()
    assert "200 members, 1 of them failed" in text and text.count("<img") == 4
    assert "<h2>Outputs against parameters</h2>" in text and "plan.json</td>" in text
    with pytest.raises(FileExistsError, match=r"page.html exists"):
        rj.plotting.write_ensemble_page(data, page)


def test_incomplete_stores_have_no_dataset(tmp_path):
    path = tmp_path / "s.zarr"
    store_ensemble(path)
    (path / "progress" / "done" / "3").unlink()
    store = Store(path)
    assert (store.num_done(), store.count, store.failed()) == (190, 200, 1)
    with pytest.raises(StoreError, match="is not complete: 1 of 20 shards"):
        store.to_xarray()
    with pytest.raises(FileNotFoundError, match="There is no store"):
        Store(tmp_path / "nowhere.zarr")
