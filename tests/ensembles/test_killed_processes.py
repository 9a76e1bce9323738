"""A process is killed in each phase of a shard; the next process computes the missing shards."""

import numpy as np
import pytest

import rigidjax as rj
from rigidjax.ensembles import Store, StoreError, chunks

PARAMETERS = {"start": np.arange(12.0)}
# Shards that are complete when a process dies at its second one.
PHASES = {
    "before it computes": {0},
    "while it writes": {0},
    "before the mark": {0},
    "after the mark": {0, 1},
}


class Killed(BaseException):
    """No handler of the package takes it for an error."""


def run(p):
    return {"value": p["start"] ** 2, "root": p["start"] ** 0.5}


def whole(path, **options):
    return rj.ensemble(run, PARAMETERS, out=path, batch=4, progress=False, threads=1, **options)


def dies(phase, monkeypatch):
    """Kill the process at the second call of a function in this phase."""
    owner, name, after = {
        "before it computes": (chunks, "evaluate", False),
        "while it writes": (Store, "_write", False),
        "before the mark": (Store, "_mark_complete", False),
        "after the mark": (Store, "_mark_complete", True),
    }[phase]
    own, calls = getattr(owner, name), []

    def count_and_die(*args, **kwargs):
        calls.append(name)
        if len(calls) == 2 and phase == "while it writes":
            args[0]._group["value"][4:6] = -1.0
        if len(calls) == 2 and not after:
            raise Killed
        found = own(*args, **kwargs)
        if len(calls) == 2:
            raise Killed
        return found

    monkeypatch.setattr(owner, name, count_and_die)


@pytest.mark.parametrize("phase", PHASES)
def test_process_killed_in_each_phase(phase, tmp_path):
    path = tmp_path / "s.zarr"
    with pytest.MonkeyPatch.context() as monkeypatch:
        dies(phase, monkeypatch)
        with pytest.raises(Killed):
            whole(path)
    assert Store(path).done() == PHASES[phase]
    with pytest.raises(StoreError, match="shards are missing"):
        Store(path).read()
    found = whole(path)
    assert np.array_equal(found.outputs["value"], PARAMETERS["start"] ** 2)
    assert np.allclose(found.outputs["root"], PARAMETERS["start"] ** 0.5, rtol=1e-15)
    assert Store(path).missing() == []
