"""Throughput of batches: Lang's heavy top for 1 s, from 1 to 1,000,000 tops at once.

Dopri5 at 1e-5 with projection, initial rates spread by 0.5 rad/s, in float64 and float32, on JAX's
default device, which may be a GPU. Each precision has its own process, as a process of JAX has one
default. Large batches are split into chunks that fit the caches of a processor or the memory of a
GPU; within a chunk all tops wait for the slowest one.
"""

import argparse
import json
import math
import os
import subprocess
import sys
from typing import Any

import _common as common
import diffrax
import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj
from rigidjax import problems

SIZES = (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000)
CHUNK = {"cpu": 1_000, "gpu": 1_000_000}
TOLERANCE = 1e-5
SPREAD = 0.5
T1 = 1.0

# The heavy top after 1 s with 40 digits, from `tools.exact.tops.integrate`.
ORIENTATION = (-0.562182773793076855, -0.58110743600098982, 0.07984850569954006, -0.58299990807223)
OMEGA = (0.43057379048769770, 0.89758702461599255, 19.994562859929486)


@jax.jit
def run(model, orientation, omega):
    """Return final states and numbers of steps of a chunk."""

    def single_top(omega):
        solution = rj.simulate(
            model,
            rj.State(orientation=orientation, angular_velocity=omega),
            T1,
            solver=diffrax.Dopri5(),
            rtol=TOLERANCE,
            atol=TOLERANCE,
            max_steps=10_000,
        )
        return solution.states, solution.stats["num_steps"]

    return jax.vmap(single_top)(omega)


def measure(size: int, dtype: str, chunk: int, budget: float) -> dict[str, Any]:
    """Return one row from 20 repetitions, or fewer (at least 3) if they take more than `budget`
    s.
    """
    problem = problems.heavy_top()
    cast = lambda x: x.astype(dtype) if isinstance(x, jax.Array) else x  # noqa: E731
    model = jax.tree.map(cast, rj.NullSpace(problem.system))
    orientation = problem.state0.orientation.astype(dtype)
    omega = np.random.default_rng(20260101).uniform(-SPREAD, SPREAD, (size, 3))
    omega[0] = 0.0
    omega = (omega + np.array([0.0, 0.0, 20.0])).astype(dtype)
    parts = [jnp.asarray(omega[i : i + chunk]) for i in range(0, size, chunk)]

    def all_parts():
        return [run(model, orientation, part) for part in parts]

    compile_times = common.compile_times(run, model, orientation, parts[0], repeats=1)
    once = common.seconds(all_parts)
    repeats = max(3, min(20, math.floor(budget / once)))
    found = common.summary(common.time_in_turn({"run": all_parts}, repeats)["run"])
    out = all_parts()
    steps = np.concatenate([np.asarray(n) for _, n in out])
    first = jax.tree.map(lambda x: x[0, -1], out[0][0])
    reference = rj.State(orientation=jnp.asarray(ORIENTATION), angular_velocity=jnp.asarray(OMEGA))
    return {
        "case": f"{size} tops",
        "batch": size,
        "chunk": min(size, chunk),
        "dtype": str(out[0][0].orientation.dtype),
        "tolerance": TOLERANCE,
        **compile_times,
        **found,
        "num_steps": int(steps.sum()),
        "most_steps": int(steps.max()),
        "steps_per_second": float(steps.sum() / found["run_seconds_min"]),
        # The processor time of the host is meaningless for a run on a GPU.
        **(
            {"steps_per_cpu_second": float(steps.sum() / found["cpu_seconds"])}
            if jax.default_backend() == "cpu"
            else {}
        ),
        "simulations_per_second": size / found["run_seconds_min"],
        "error": max(common.errors(first, reference)),
    }


def child(options: argparse.Namespace) -> None:
    """Print rows of one precision as JSON lines on standard output."""
    jax.config.update("jax_enable_x64", options.dtype == "float64")
    jax.config.update("jax_enable_compilation_cache", False)
    chunk = options.chunk or CHUNK["cpu" if jax.default_backend() == "cpu" else "gpu"]
    for size in (4,) if options.smoke else SIZES:
        if size <= options.most:
            row = measure(size, options.dtype, chunk, 0.1 if options.smoke else options.budget)
            print(json.dumps({**row, **common.environment()}), flush=True)


def more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dtype", choices=("float64", "float32"), help="one precision alone")
    parser.add_argument("--chunk", type=int, default=0, help="tops at once; 0 chooses by device")
    parser.add_argument("--most", type=int, default=SIZES[-1], help="largest batch")
    parser.add_argument("--budget", type=float, default=30.0, help="seconds of repetitions a row")


if __name__ == "__main__":
    options = common.arguments(__doc__, more)
    if options.dtype:
        child(options)
        sys.exit()
    rows: list[dict[str, Any]] = []
    for dtype in ("float64", "float32"):
        command = [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--dtype", dtype]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                rows.append(json.loads(line))
                row = rows[-1]
                if not options.smoke:
                    print(
                        f"{row['dtype']} {row['batch']:>8} {row['run_seconds_min']:.4g} s "
                        f"{row['steps_per_second']:.3g} steps/s, error {row['error']:.1e}",
                        flush=True,
                    )
        if process.returncode:
            sys.exit(process.returncode)
    backend = rows[0]["device"].split(":")[0]
    common.write("throughput" if backend == "cpu" else f"throughput_{backend}", rows, options.smoke)
