"""A run as one kernel, which XLA's flags ask for before JAX starts: in a program of its own."""

import os
import pathlib
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parents[2]
FLAG = "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=10000000"
PROGRAM = """
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_enable_x64", True)
import _ivp as ivp, peers, rigidjax as rj
problem = ivp.hires()
for solver in (rj.solvers.Radau5(), rj.solvers.BDF()):
    run, start = peers.our_run(problem, solver), jnp.asarray(problem.y0)
    text = run.lower(start, jnp.asarray(1e-6)).as_text()
    y, ok, _, _ = run(start, jnp.asarray(1e-6))
    print(bool(ok), "lapack" in text, np.max(ivp.scaled_errors(problem, y)))
"""


def test_hires():
    """No call of LAPACK, and errors of 10 tolerances at the most."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} {FLAG}"
    path = os.pathsep.join([str(FOLDER), str(FOLDER / "benchmarks")])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True,
        env={**os.environ, "XLA_FLAGS": flags, "PYTHONPATH": path}, timeout=120,
    )  # fmt: skip
    for line in done.stdout.splitlines():
        ok, has_lapack, error = line.split()
        assert (ok, has_lapack) == ("True", "False")
        assert float(error) < 1e-5
    assert len(done.stdout.splitlines()) == 2
