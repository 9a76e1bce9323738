"""Ensembles by workers of Dask: equal results, processes that crash, errors."""

import os
import sys

import distributed
import numpy as np
import pytest
from ensembles import study

import rigidjax as rj
from rigidjax.ensembles import WorkerError, executors

PARAMETERS = {"start": np.arange(40.0), "shift": np.linspace(0.0, 1.0, 40)}


def evaluate(run=study.run, batch=8, **options):
    return rj.ensemble(run, PARAMETERS, batch=batch, progress=False, **options)


def assert_equal(found, expected):
    for name in ("leaves", "result", "num_steps", "reached"):
        for first, second in zip(getattr(found, name), getattr(expected, name), strict=True):
            assert np.array_equal(first, second, equal_nan=np.asarray(first).dtype.kind == "f")


@pytest.fixture(scope="module")
def client():
    """Return a client whose workers are threads of this process."""
    with distributed.Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0"
    ) as client:
        yield client


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0"
    ) as cluster:
        yield cluster


@pytest.mark.parametrize(("batch", "lengths"), [(8, None), (16, "shift")])
def test_a_client_gives_equal_results(client, batch, lengths):
    """Also where the last chunk is not full. All chunks share one trace of a closure."""

    def run(p):
        return study.run(p)

    executors._trace.cache_clear()
    found = evaluate(run, batch, lengths=lengths, executor=client)
    assert executors._trace.cache_info().misses == 1
    assert_equal(found, evaluate(run, batch, lengths=lengths))
    assert found.failed.tolist() == [17]


def test_workers_give_equal_results(tmp_path):
    """By XLA, in memory and in a store, of which only missing shards are computed."""
    expected, out = evaluate(), tmp_path / "s.zarr"
    assert_equal(evaluate(workers=2, out=out), expected)
    assert_equal(evaluate(workers=2, out=out), expected)


def test_statistics_through_a_client(client):
    chosen = {"value": [rj.ensembles.Moments(), rj.ensembles.Quantiles((0.5,))]}
    found = evaluate(statistics=chosen, executor=client).statistics["value"]
    expected = evaluate(statistics=chosen).statistics["value"]
    assert all(np.array_equal(found[name], expected[name]) for name in expected)


class Harmful:
    """An object whose reading in a worker calls a function."""

    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


def raise_error():
    raise ArithmeticError("no result")


def test_errors_of_workers_are_passed_on(client):
    harmful = Harmful(raise_error)
    with pytest.raises(ArithmeticError, match="no result"):
        evaluate(lambda p: p["start"] if harmful else None, executor=client)


def test_invalid_arguments_raise(client, monkeypatch, tmp_path):
    def call(**options):
        return evaluate(out=tmp_path / "s.zarr", **options)

    with pytest.raises(ValueError, match="`executor` or `workers`, not both"):
        call(executor=client, workers=2)
    with pytest.raises(TypeError, match=r"takes a `distributed.Client`; got 3"):
        call(executor=3)
    with pytest.raises(ValueError, match=r"`ensemble\(workers=...\)` must be positive; got 0"):
        call(workers=0)
    with pytest.raises(ValueError, match="`devices` and `threads` are those of this process"):
        call(workers=2, threads=2)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "rigidjax\[ensembles\]"'):
        call(workers=2)
    assert not (tmp_path / "s.zarr").exists()


def test_members_that_crash_workers_are_named(cluster, monkeypatch):
    harmful = Harmful(os._exit, 1)
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    with distributed.Client(cluster) as client:
        with pytest.raises(WorkerError, match=r"crashed its worker processes.*members \[ ?0 +1 "):
            evaluate(lambda p: p["start"] if harmful else None, executor=client)
