"""Cost of ensembles beside their kernels: heavy tops for 2 s, Dopri5 at 1e-9.

- `kernel`: chunks of 16,384 tops, one core, without `rj.ensemble`;
- `ensemble`: `rj.ensemble` with one thread and with all cores, outputs in memory;
- `statistics`: without outputs; `store`: into a Zarr store;
- `mixed lengths`: 64 members that take 100 times longer than 20,000 others, in any order and sorted
  by `lengths`: the time that they add, over the time that they take alone.

Memory is the largest resident size of the process of the row; every row has its own process.
"""

import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
from typing import Any

import _common as common
import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj

CHUNK = 16384
ROWS = ("kernel", "ensemble", "all cores", "statistics", "store", "mixed lengths")


def top(p: dict[str, Any]) -> dict[str, Any]:
    """Simulate a heavy top whose spin is multiplied; `time` is the end time, s."""
    problem = rj.problems.heavy_top()
    rates = problem.state0.angular_velocity * p["spin"]
    state = eqx.tree_at(lambda s: s.angular_velocity, problem.state0, rates)
    solution = rj.simulate(
        rj.NullSpace(problem.system), state, p["time"], solver=diffrax.Dopri5(), rtol=1e-9,
        atol=1e-9, max_steps=10_000_000,
    )  # fmt: skip
    return {"attitude": solution.states.orientation[-1, 0], "energy": solution.energy[-1]}


def members(count: int, time: float = 2.0) -> dict[str, np.ndarray]:
    return {**rj.ensembles.uniform(count, spin=(0.9, 1.1)), "time": np.full(count, time)}


def kernel(count: int) -> float:
    """Return the seconds of all chunks without `rj.ensemble`."""
    function = jax.jit(jax.vmap(top))
    chunks = [jax.tree.map(jnp.asarray, members(CHUNK)) for _ in range(max(count // CHUNK, 1))]
    jax.block_until_ready(function(chunks[0]))
    begin = time.perf_counter()
    for chunk in chunks:
        jax.block_until_ready(function(chunk))
    return (time.perf_counter() - begin) * count / (CHUNK * len(chunks))


def ensemble(count: int, **options: Any) -> float:
    """Return the seconds of an ensemble less those of a single chunk, after a call that
    compiles.
    """
    given = {"progress": False, "batch": CHUNK, "threads": 1, **options}
    times = []
    for n in (CHUNK, CHUNK, count + CHUNK):
        with tempfile.TemporaryDirectory() as folder:
            if "out" in options:
                given["out"] = pathlib.Path(folder) / "s.zarr"
            begin = time.perf_counter()
            rj.ensemble(top, members(n), **given)
            times.append(time.perf_counter() - begin)
    return times[2] - times[1]


def measure_mixed_lengths(count: int, long: int = 64) -> dict[str, float]:
    """Return the seconds of all members together, and the time that long ones add over the time
    that they take alone.

    Tracing and compilation of all calls are subtracted.
    """
    short, slow, base = members(count), members(long, 200.0), members(long, 1e-3)
    both = {name: np.concatenate([short[name], slow[name]]) for name in short}
    order = np.random.default_rng(0).permutation(count + long)
    both = {name: values[order] for name, values in both.items()}
    cases = {"base": base, "short": short, "slow": slow, "any order": both, "sorted": both}
    best = dict.fromkeys(cases, np.inf)
    for _ in range(5):
        for name, given in cases.items():
            lengths = "time" if name == "sorted" else None
            batch = 1024 if given is short or given is both else None
            begin = time.perf_counter()
            rj.ensemble(top, given, progress=False, batch=batch, threads=1, lengths=lengths)
            best[name] = min(best[name], time.perf_counter() - begin)
    alone = best["slow"] - best["base"]
    return {
        "seconds": best["sorted"],
        "short_seconds": best["short"],
        "long_seconds": alone,
        "added_over_alone": (best["sorted"] - best["short"]) / alone,
        "added_over_alone_any_order": (best["any order"] - best["short"]) / alone,
    }


def row(name: str, count: int) -> dict[str, Any]:
    found: dict[str, Any] = {"case": name, "members": count}
    if name == "mixed lengths":
        found |= measure_mixed_lengths(count)
    elif name == "kernel":
        found["seconds"] = kernel(count)
    else:
        options: dict[str, Any] = {
            "ensemble": {},
            "all cores": {"threads": None},
            "statistics": {"statistics": {"energy": rj.ensembles.Moments()}},
            "store": {"out": ""},
        }[name]
        found["seconds"] = ensemble(count, **options)
    found["members_per_second"] = count / found["seconds"]
    found["peak_bytes"] = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return found


def main() -> None:
    args = common.arguments(str(__doc__), _arguments)
    common.double_precision()
    if args.row is not None:
        print(json.dumps(row(args.row, args.members)))
        return
    count = 64 if args.smoke else args.members
    if args.smoke:
        global CHUNK
        CHUNK = 32
        found = [row(name, count) for name in ("ensemble", "store")]
    else:
        command = [sys.executable, __file__, "--members", str(count), "--row"]
        found = [
            json.loads(subprocess.run([*command, name], check=True, capture_output=True).stdout)
            for name in ROWS
        ]
    common.write("ensemble_cost", found, args.smoke)


def _arguments(parser: Any) -> None:
    parser.add_argument("--members", type=int, default=1_000_000)
    parser.add_argument("--row", choices=ROWS, help="this row alone, in this process")


if __name__ == "__main__":
    main()
