"""Batches of runs of a heavy top as native kernels, by one thread and by all that there are."""

import os
from typing import Any

import _common as common
import jax
import jax.numpy as jnp
import native


def rows(smoke: bool) -> list[dict[str, Any]]:
    """Batches by one thread and by all, in turn."""
    out = []
    for batch in (64,) if smoke else (native.BATCH, 16 * native.BATCH, 1_000_000):
        args, compiled = native.members(batch), {}
        for threads in ("1", "0"):
            os.environ["RIGIDJAX_KERNEL_THREADS"] = threads
            compiled[threads] = jax.jit(jax.vmap(native.end("native", **native.TIGHT)))
            jax.block_until_ready(compiled[threads](*args))
        calls = {k: (lambda f=f, args=args: f(*args)) for k, f in compiled.items()}
        found = common.interleaved(calls, 3 if smoke or batch > 100_000 else 20)
        one, all_threads = (common.summary(found[k])["run_seconds_min"] for k in ("1", "0"))
        steps = float(jnp.sum(compiled["1"](*args)[1]))
        out.append(
            {
                "case": "top, Dopri5 at 1e-9: threads",
                "batch": batch,
                "one_thread_seconds": one,
                "all_threads_seconds": all_threads,
                "times_faster": one / all_threads,
                "million_steps_per_second": steps / all_threads / 1e6,
                "million_steps_per_second_one_thread": steps / one / 1e6,
            }
        )
        print(out[-1], flush=True)
    return out


if __name__ == "__main__":
    options = common.arguments(__doc__)
    common.double_precision()
    common.write("threads", rows(options.smoke), options.smoke)
