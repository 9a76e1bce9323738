"""Batches of runs of a heavy top as native kernels, by one thread and by all available ones.

Each has its own process, since a kernel is compiled for a number of threads.
"""

import json
import os
import subprocess
import sys
from typing import Any

import _common as common
import jax
import jax.numpy as jnp
import native

# Members of a batch, and number of runs of which the fastest counts.
BATCHES = {1_024: 20, 16_384: 10, 1_000_000: 2}


def measure(batches: dict[int, int]) -> list[tuple[float, float]]:
    """Return the seconds of a batch, and the steps of all its members."""
    run, out = jax.jit(jax.vmap(native.end("native", **native.TIGHT))), []
    for batch, repeats in batches.items():
        args = native.members(batch)
        steps = float(jnp.sum(run(*args)[1]))
        out.append(
            (min(common.seconds(lambda args=args: run(*args)) for _ in range(repeats)), steps)
        )
    return out


def with_threads(threads: int, batches: dict[int, int]) -> list[tuple[float, float]]:
    """Return the measurement with a number of threads, 0 for all."""
    program = (
        "import json, _common, threads; _common.double_precision(); "
        f"print(json.dumps(threads.measure({batches!r})))"
    )
    added = {"RIGIDJAX_KERNEL_THREADS": str(threads), "PYTHONPATH": str(common.HERE)}
    path = os.pathsep.join([added["PYTHONPATH"], os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, check=True,
        env={**os.environ, **added, "PYTHONPATH": path},
    )  # fmt: skip
    return json.loads(done.stdout)


def rows(smoke: bool) -> list[dict[str, Any]]:
    batches = {64: 2} if smoke else BATCHES
    found = zip(batches, with_threads(1, batches), with_threads(0, batches), strict=True)
    return [
        {
            "case": "top, Dopri5 at 1e-9: threads",
            "batch": batch,
            "one_thread_seconds": one,
            "all_threads_seconds": together,
            "times_faster": one / together,
            "million_steps_per_second_one_thread": steps / one / 1e6,
            "million_steps_per_second": steps / together / 1e6,
        }
        for batch, (one, steps), (together, _) in found
    ]


if __name__ == "__main__":
    options = common.arguments(__doc__)
    common.double_precision()
    common.write("threads", rows(options.smoke), options.smoke)
