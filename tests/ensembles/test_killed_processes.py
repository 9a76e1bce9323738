"""Workers that die in each phase of a shard: the next one finds all that it needs."""

import os
import signal
import subprocess
import sys

import jax
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.ensembles import Store, StoreError, ensemble
from rigidjax.ensembles.leases import Lease

PARAMETERS = {"start": np.arange(12.0)}
# Shards that are done when a worker dies at its second one, and those that are claimed. It claims
# one ahead of what it computes.
PHASES = {
    "before it claims": (set(), {"0"}),
    "after it claimed": (set(), {"0", "1"}),
    "before it computes": ({0}, {"0", "1", "2"}),
    "while it writes": ({0}, {"0", "1", "2"}),
    "before the mark": ({0}, {"0", "1", "2"}),
    "after the mark": ({0, 1}, {"0", "1", "2"}),
}


class Killed(BaseException):
    """No handler of the package takes it for an error."""


def run(p):
    return {"value": p["start"] ** 2, "root": p["start"] ** 0.5}


def whole(path, **options):
    return rj.ensemble(run, PARAMETERS, out=path, batch=4, progress=False, threads=1, **options)


def dies(phase, monkeypatch):
    """Kill the process at the second call of a function in this phase."""
    module = sys.modules[ensemble.__module__]
    owner, name, after = {
        "before it claims": (Lease, "acquire", False),
        "after it claimed": (Lease, "acquire", True),
        "before it computes": (module, "evaluate", False),
        "while it writes": (Store, "_open", True),
        "before the mark": (Store, "_mark_complete", False),
        "after the mark": (Store, "_mark_complete", True),
    }[phase]
    own, calls = getattr(owner, name), []

    def count_and_die(*args, **kwargs):
        calls.append(name)
        if len(calls) == 2 and not after:
            raise Killed
        found = own(*args, **kwargs)
        if len(calls) == 2:
            if phase == "while it writes":
                found["value"][4:6] = -1.0
            raise Killed
        return found

    monkeypatch.setattr(owner, name, count_and_die)
    # Killed processes neither return nor touch leases.
    monkeypatch.setattr(Store, "release", lambda self, *numbers: None)
    monkeypatch.setattr(Lease, "__enter__", lambda self: self)


@pytest.mark.parametrize("phase", PHASES)
def test_process_killed_in_each_phase(phase, tmp_path):
    path = tmp_path / "s.zarr"
    with pytest.MonkeyPatch.context() as monkeypatch:
        dies(phase, monkeypatch)
        with pytest.raises(Killed):
            whole(path, worker=(0, 2))
    done, claimed = PHASES[phase]
    assert Store(path).done() == done
    with pytest.raises(StoreError, match="shards are missing"):
        Store(path).read()
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    leases = path / "progress" / "leases"
    assert set(os.listdir(leases)) == claimed
    for lease in leases.iterdir():
        # As the one that died would have left it.
        lease.write_text(lease.read_text().rpartition(":")[0] + f":{ended.pid}")
    found = whole(path, worker=(1, 2))
    assert np.array_equal(found.outputs["value"], PARAMETERS["start"] ** 2)
    assert np.allclose(found.outputs["root"], PARAMETERS["start"] ** 0.5, rtol=1e-15)
    assert Store(path).missing() == []


def test_kill_between_shard_and_mark(tmp_path):
    """SIGKILL of a process that has written a shard and not marked it."""
    path = tmp_path / "s.zarr"
    program = f"""
import os, signal, sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
import test_killed_processes
mark = test_killed_processes.Store._mark_complete
def killed(self, number, failed):
    mark(self, number, failed) if number == 0 else os.kill(os.getpid(), signal.SIGKILL)
test_killed_processes.Store._mark_complete = killed
test_killed_processes.whole({str(path)!r}, worker=(0, 2))
"""
    # In the precision of this process, which the plan names.
    variables = {**os.environ, "JAX_ENABLE_X64": str(int(jax.config.read("jax_enable_x64")))}
    killed = subprocess.run([sys.executable, "-c", program], env=variables)
    assert killed.returncode == -signal.SIGKILL
    assert Store(path).done() == {0} and "1" in os.listdir(path / "progress" / "leases")
    found = whole(path, worker=(1, 2))
    assert np.array_equal(found.outputs["value"], PARAMETERS["start"] ** 2)
