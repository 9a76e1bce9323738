"""A run as one kernel, which XLA's flags ask for before JAX starts: in a program of its own."""

import os
import pathlib
import subprocess
import sys

import pytest
from _one_kernel import ONE_KERNEL

FOLDER = pathlib.Path(__file__).resolve().parents[2]
HIRES = """
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_enable_x64", True)
import _ivp as ivp, peers, rigidjax as rj
problem = ivp.hires()
for solver in (rj.solvers.Radau5(), rj.solvers.BDF()):
    run, start = peers.our_run(problem, solver), jnp.asarray(problem.y0)
    text = run.lower(start, jnp.asarray(1e-6)).as_text()
    y, ok, _, _ = run(start, jnp.asarray(1e-6))
    print(bool(ok), "lapack" in text, np.max(ivp.scaled_errors(problem, y)) / 1e-5)
"""
# Articulated bodies there, the dense mass matrix elsewhere; rates and their derivatives.
CHAIN = """
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_enable_x64", True)
import chains
from rigidjax.system.dynamics import motion
for count in (3, 8):
    model, y = chains.start(count)
    field = jax.jit(lambda y: model.vector_field(jnp.zeros(()), y))
    dense = jax.jit(lambda y: model.rates_by(motion, jnp.zeros(()), y))
    error = np.max(np.abs(field(y) - dense(y))) / np.max(np.abs(dense(y)))
    project = jax.jit(lambda y: model.project(jnp.zeros(()), y))
    _, move = jax.jvp(project, (y,), (jnp.ones_like(y),))
    change, expected = (jax.jvp(f, (y,), (move,))[1] for f in (field, dense))
    slope = np.max(np.abs(change - expected)) / np.max(np.abs(expected))
    text = field.lower(y).as_text()
    print(bool(np.all(np.isfinite(change))), "lapack" in text, max(error, slope) / 1e-10)
"""


@pytest.mark.exhaustive("chain")
@pytest.mark.parametrize("program", [HIRES, CHAIN], ids=["hires", "chain"])
def test_one_kernel(program):
    """No call of LAPACK, and errors below the limit."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} {ONE_KERNEL}"
    path = os.pathsep.join([str(FOLDER), str(FOLDER / "benchmarks")])
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True,
        env={**os.environ, "XLA_FLAGS": flags, "PYTHONPATH": path}, timeout=120,
    )  # fmt: skip
    for line in done.stdout.splitlines():
        okay, has_lapack, error_over_limit = line.split()
        assert (okay, has_lapack) == ("True", "False")
        assert float(error_over_limit) < 1.0
    assert len(done.stdout.splitlines()) == 2
