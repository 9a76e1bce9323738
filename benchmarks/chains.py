"""Accelerations of pendulum chains against Pinocchio's articulated-body algorithm.

Accelerations are computed in a loop, each from the previous one, for chains of N ball joints and
for a batch of chains, by a native kernel and by XLA. Install Pinocchio (`pip install pin`) to get
its rows in the same run. Processor time on one core is measured, since the machine may be shared
and idle threads that wait for work on another core count.
"""

import os

from _one_core import ONE_CORE

os.environ.setdefault("XLA_FLAGS", ONE_CORE)
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import sys
import time
from typing import Any

import _common as common
import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj

INERTIA = (0.01, 0.09, 0.08)


def chain(count: int) -> rj.System:
    """Return a straight chain of rods of 1 m and 1 kg on ball joints."""
    bodies = [rj.Body(f"{i}", 1.0, INERTIA, position=(i + 0.5, 0, 0)) for i in range(count)]
    names = ["ground", *(body.name for body in bodies)]
    joints = [rj.Spherical(names[i], names[i + 1], (i, 0, 0)) for i in range(count)]
    return rj.System(bodies, joints, rj.Gravity((0, 0, -9.81)))


def start(count: int):
    """Return the formulation and unknowns with random joint rates."""
    model = rj.NullSpace(chain(count))
    y = np.array(model.encode(model.system.reference_state()))
    y[7 * count :] = np.random.default_rng(count).normal(size=3 * count)
    return model, jnp.asarray(y)


def best(run, repeats: int) -> float:
    """Return the smallest processor time of a run, s."""
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        run()
        times.append(time.process_time() - begin)
    return min(times)


def ours(
    count: int, turns: int, repeats: int, batch: int | None = None, backend: str = "native"
) -> dict[str, Any]:
    """Return the time of one acceleration of a chain, us; `batch` chains at once."""
    model, y = start(count)
    model, t = model.prepare(), jnp.zeros(())

    def step(_, y):
        return y + 1e-12 * model.vector_field(t, y)

    def loop(y):
        return jax.lax.fori_loop(0, turns, step, y)

    run = rj.native.jit(loop) if backend == "native" else loop
    run = run if batch is None else jax.vmap(run)
    y = y if batch is None else jnp.tile(y, (batch, 1))
    begin = time.process_time()
    compiled = jax.jit(run).lower(y).compile()
    seconds = time.process_time() - begin
    compiled(y).block_until_ready()
    used = best(lambda: compiled(y).block_until_ready(), repeats)
    return {
        "case": "chain of ball joints",
        "program": "rigidjax",
        "backend": backend,
        "bodies": count,
        "batch": batch or 1,
        "microseconds": 1e6 * used / turns / (batch or 1),
        "compile_seconds": seconds,
    }


def pinocchio(count: int, turns: int, repeats: int) -> dict[str, Any] | None:
    """Return the time of one acceleration by Pinocchio's ABA, or nothing if it is not installed."""
    try:
        import pinocchio as pin  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    model, parent = pin.Model(), 0
    for i in range(count):
        place = pin.SE3(np.eye(3), np.array([1.0 if i else 0.0, 0, 0]))
        parent = model.addJoint(parent, pin.JointModelSpherical(), place, f"{i}")
        body = pin.Inertia(1.0, np.array([0.5, 0, 0]), np.diag(INERTIA))
        model.appendBodyToJoint(parent, body, pin.SE3.Identity())
    data, q = model.createData(), pin.neutral(model)
    v = np.random.default_rng(count).normal(size=model.nv)
    force = np.zeros(model.nv)

    def run():
        for _ in range(turns):
            pin.aba(model, data, q, v, force)

    return {
        "case": "chain of ball joints",
        "program": f"Pinocchio {pin.__version__}",
        "backend": None,
        "bodies": count,
        "batch": 1,
        "microseconds": 1e6 * best(run, repeats) / turns,
        "compile_seconds": 0.0,
    }


def measure(counts: tuple[int, ...], repeats: int, turns: int | None = None, batch: int = 1_024):
    """Return rows of Pinocchio, if it is installed, and of rigidjax, alone and in a batch."""
    rows = []
    for count in counts:
        # The loop takes some 20 ms, since the clock of processor time is coarse.
        number = turns or max(300, 16_000 // count)
        # Pinocchio's data for 256 ball joints exhaust the memory.
        found = [pinocchio(count, number, repeats) if count <= 128 else None]
        for backend in ("native", "xla"):
            found.append(ours(count, number, repeats, None, backend))
            several = max(3, number // 100)
            found.append(ours(count, several, min(repeats, 3), batch, backend))
        rows += [row for row in found if row is not None]
        for row in found:
            print(row, file=sys.stderr, flush=True)
    return rows


if __name__ == "__main__":
    options = common.arguments(__doc__)
    common.double_precision()
    if options.smoke:
        rows = measure((2,), 1, 10, 16)
    else:
        rows = measure((2, 4, 8, 16, 32, 64, 128, 256), 7)
    common.write("chains", rows, options.smoke)
