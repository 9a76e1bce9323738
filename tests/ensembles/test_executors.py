"""Ensembles by executors of others: threads, processes that die."""

import concurrent.futures
import os
import signal

import distributed
import numpy as np
import pytest
from ensembles import study

import rigidjax as rj
from rigidjax.ensembles import WorkerError

PARAMETERS = {"start": np.arange(40.0), "shift": np.linspace(0.0, 1.0, 40)}


def test_chunks_through_futures():
    expected = rj.ensemble(study.run, PARAMETERS, batch=8, progress=False)
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        found = rj.ensemble(study.run, PARAMETERS, batch=8, executor=executor, progress=False)
    assert np.array_equal(found.outputs["value"], expected.outputs["value"], equal_nan=True)
    assert found.failed.tolist() == [17]


class Dying:
    """An executor whose workers die: the first ones, or all."""

    def __init__(self, deaths):
        self.deaths = deaths

    def submit(self, function, *arguments):
        future = concurrent.futures.Future()
        if self.deaths > 0:
            self.deaths -= 1
            future.set_exception(ConnectionResetError("the worker is gone"))
        else:
            future.set_result(function(*arguments))
        return future


def test_work_of_crashed_processes_is_repeated(tmp_path):
    expected = rj.ensemble(study.run, PARAMETERS, batch=8, progress=False)
    out = tmp_path / "s.zarr"
    found = rj.ensemble(study.run, PARAMETERS, batch=8, executor=Dying(4), out=out, progress=False)
    assert np.array_equal(found.outputs["value"], expected.outputs["value"], equal_nan=True)
    with pytest.raises(WorkerError, match="Members 0 to 7 crashed 5 workers; .*is gone"):
        rj.ensemble(study.run, PARAMETERS, batch=8, executor=Dying(1000), progress=False)


@pytest.mark.exhaustive
def test_dask_with_a_killed_worker():
    expected = rj.ensemble(study.run, PARAMETERS, batch=4, progress=False)
    with distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            (first, *_) = client.run(os.getpid).values()
            killed = client.submit(os.kill, first, signal.SIGKILL)
            found = rj.ensemble(study.run, PARAMETERS, batch=4, executor=client, progress=False)
            killed.cancel()
    assert np.array_equal(found.outputs["value"], expected.outputs["value"], equal_nan=True)
