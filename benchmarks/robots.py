"""Forward dynamics of published robots against Pinocchio: batches, and single calls.

Kernels of `forward_dynamics` with random forces for 1,024 states, and `pinocchio.aba` for the same
number of states in a loop, in one process on one core, by the time of the processor: least of eight
runs each. Single calls are those of a compiled function from Python, and those in a compiled loop.
"""

import os

from _one_core import ONE_CORE

os.environ.setdefault("XLA_FLAGS", ONE_CORE)
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import time
import warnings
from typing import Any

import _common as common
import jax
import jax.numpy as jnp
import numpy as np
from _model_files import PACKAGES, SMOKE, find_models

import rigidjax as rj

BATCH = 1024
# Files of example-robot-data, and the unsupported features to ignore in them.
ROBOTS = {
    "xarm7": ("xarm_description/urdf/xarm7.urdf", ()),
    "solo12": ("solo_description/robots/solo12.urdf", ()),
    "G1": ("g1_description/urdf/g1_29dof_rev_1_0.urdf", ()),
    "talos": ("talos_data/robots/talos_reduced.urdf", ("transmission",)),
}


def processor_time(function: Any, repeats: int = 8) -> float:
    """Return the least time of the processor that a call takes, s."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def measure(name: str, path: Any, ignore: tuple[str, ...]) -> dict[str, Any]:
    """Return times of both programs for a robot, in microseconds for each state."""
    import pinocchio as pin

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of inertias that are not physical
        model = rj.models.load(path, ignore, mimic=False, friction_velocity=None)
    trees, rng = rj.Relative(model.system), np.random.default_rng(0)
    f = trees.num_rates
    start = np.asarray(trees.encode(model.state))
    ys = np.tile(start, (BATCH, 1))
    hinges = sum(kind in ("revolute", "prismatic") for kind in model.names.kinds)
    n = len(start) - f
    ys[:, n - hinges : n] += rng.standard_normal((BATCH, hinges))
    ys[:, n:] = rng.standard_normal((BATCH, f))
    ys, forces = jnp.asarray(ys), jnp.asarray(rng.standard_normal((BATCH, f)))
    t = jnp.zeros(())
    kernel = rj.native.jit(lambda y, tau: trees.forward_dynamics(t, y, tau))
    batch, single = jax.jit(jax.vmap(kernel)), jax.jit(kernel)
    calls = 200

    @jax.jit
    def loop(y, tau):
        # Each call depends on the one before.
        step = lambda _, y: y.at[n : n + f].add(1e-12 * kernel(y, tau))  # noqa: E731
        return jax.lax.fori_loop(0, calls, step, y)

    first = time.process_time()
    jax.block_until_ready(batch(ys, forces))
    first = time.process_time() - first
    y, tau = ys[0], forces[0]
    jax.block_until_ready((single(y, tau), loop(y, tau)))
    base = (pin.JointModelFreeFlyer(),) if "floating" in model.names.kinds else ()
    peer = pin.buildModelFromUrdf(str(path), *base)
    data = peer.createData()
    qs = [
        pin.integrate(peer, pin.neutral(peer), rng.standard_normal(peer.nv)) for _ in range(BATCH)
    ]
    v, generalised = rng.standard_normal((2, peer.nv))

    def run_peer() -> None:
        for q in qs:
            pin.aba(peer, data, q, v, generalised)

    times = {
        "batch": processor_time(lambda: jax.block_until_ready(batch(ys, forces))) / BATCH,
        "single": processor_time(
            lambda: [jax.block_until_ready(single(y, tau)) for _ in range(calls)]
        ) / calls,
        "inside": processor_time(lambda: jax.block_until_ready(loop(y, tau))) / calls,
        "pinocchio": processor_time(run_peer) / BATCH,
    }  # fmt: skip
    row = {f"{key}_us": round(1e6 * value, 3) for key, value in times.items()}
    ratios = {
        f"{key}_ratio": round(value / times["pinocchio"], 3)
        for key, value in times.items()
        if key != "pinocchio"
    }
    return {"case": name, "rates": f, **row, **ratios, "first_call_s": round(first, 2)}


def main() -> None:
    """Measure all robots; with `--smoke` the arm of the tests."""
    options = common.arguments(__doc__ or "")
    common.double_precision()
    if options.smoke:
        common.write("robots", [measure("arm", SMOKE, ())], True)
        return
    files = {name: path for path, name in find_models(PACKAGES[0])}
    rows = [measure(name, files[path], ignore) for name, (path, ignore) in ROBOTS.items()]
    common.write("robots", rows, False)


if __name__ == "__main__":
    main()
