"""Without kernels, as on platforms where they are not tested, XLA computes the same."""

import json
import os
import subprocess
import sys
import warnings

import jax
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.native.runtime import platforms

# Prints a run, its gradient and a function of `native.jit`, as numbers.
SCRIPT = """
import json, warnings
import equinox as eqx, jax
jax.config.update("jax_enable_x64", True)
import rigidjax as rj
problem = rj.problems.heavy_top()
model, start = rj.NullSpace(problem.system), problem.state0
def end(factor):
    state = eqx.tree_at(lambda s: s.angular_velocity, start, factor * start.angular_velocity)
    solution = rj.simulate(model, state, 0.1, rtol=1e-9, atol=1e-9)
    return solution.states.velocity.sum(), solution.stats["backend"]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    (value, backend), gradient = jax.value_and_grad(end, has_aux=True)(1.0)
    values = [float(value), float(gradient), float(rj.native.jit(lambda x: x * x)(3.0))]
names = [str(w.message) for w in caught if "by XLA" in str(w.message)]
"""


def test_switch_leaves_runs_to_xla_with_one_warning():
    script = SCRIPT + "print(json.dumps([str(backend), names, values]))"
    command, switch = [sys.executable, "-c", script], {platforms.SWITCH: "off"}
    run = subprocess.run(command, env=os.environ | switch, stdout=subprocess.PIPE, check=True)
    backend, names, values = json.loads(run.stdout)
    assert backend == "xla" and len(names) == 1 and "RIGIDJAX_KERNELS is off" in names[0]
    here = {}
    exec(SCRIPT, here)
    assert here["backend"] == "native" and not here["names"]
    np.testing.assert_allclose(values, here["values"], rtol=1e-11)


def test_other_platforms_and_values(monkeypatch):
    monkeypatch.delenv(platforms.SWITCH, raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert platforms.why_no_kernels.__wrapped__() == []
    monkeypatch.setattr(platforms.platform, "machine", lambda: "aarch64")
    with pytest.warns(UserWarning, match="run by XLA, which is slower: .* linux aarch64"):
        reasons = platforms.why_no_kernels.__wrapped__()
    assert "RIGIDJAX_KERNELS=on" in reasons[0]
    monkeypatch.setattr(rj.native.backend, "why_no_kernels", lambda: reasons)
    closed = jax.make_jaxpr(lambda x: x)(1.0)
    with pytest.raises(ValueError, match="cannot run this as a kernel: native kernels are tested"):
        rj.native.backend.choose_backend("native", closed, None)
    monkeypatch.setenv(platforms.SWITCH, "no")
    with pytest.raises(ValueError, match='must be "on" or "off"; got \'no\''):
        platforms.why_no_kernels.__wrapped__()
